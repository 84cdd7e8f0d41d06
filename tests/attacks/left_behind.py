"""Damage to what earlier runs have left behind: trained models, saved states, folders and files to go on from."""

from __future__ import annotations

import dataclasses
import io
import json
import pickle
import random
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml

from gpusched_env import compare
from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policy_file import METADATA, read_members, write_game_policy
from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.agents.training.folder import Checkpoints, read_record
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.errors import InputError
from gpusched_env.experiments.fuzz.case import KernelCounterexample
from gpusched_env.experiments.fuzz.draw import draw_case
from gpusched_env.experiments.fuzz.stored import Difference, read_counterexample
from gpusched_env.experiments.load_curve.curve import load_sweep
from gpusched_env.experiments.ranking.run import rank
from gpusched_env.games.child_launches.agents.rule import (
    SHAPES,
    LaunchPolicyInfo,
)
from gpusched_env.games.child_launches.experiments.fuzz_cases import LaunchCounterexample, draw_launches
from gpusched_env.scenarios.scenario import load_scenario
from tests.agents.made_up import made_up, written
from tests.attacks.mutations import NASTY, garbled
from tests.attacks.test_files import as_json, as_yaml, damage_tables
from tests.attacks.trials import Trial, loaded, of_bytes, of_values


def as_policy(members: dict[str, Any], data: Any) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **{METADATA: np.frombuffer(as_json(data), np.uint8)}, **members)
    return stream.getvalue()


def of_policy(path: Path, load: Any) -> Trial:
    members = read_members(path)
    info = json.loads(bytes(members.pop(METADATA)))
    return of_values(path, info, partial(as_policy, members), partial(load, path))


def rules(folder: Path) -> dict[str, Trial]:
    """Policies of the two kinds that need something else than ``Toy``."""
    serve = made_up(load_scenario("ServingPoisson"), "serve", interval_us=250.0)
    launch = folder / "launch.npz"
    write_game_policy(
        launch, LaunchPolicyInfo(algorithm="cma-es"), {n: np.zeros(s, np.float32) for n, s in SHAPES.items()}
    )
    return {
        "policy serve": of_policy(written(serve, folder / "serve.npz"), ExportedPolicy.load),
        "policy launch": of_policy(launch, LaunchPolicyInfo.read),
    }


def small() -> TrainingConfig:
    settings = {"algo": "a2c", "timesteps": 32, "envs": 4, "n_steps": 8, "validation_seeds": 1}
    return config_of({"scenario": load_scenario("Toy"), **settings})


def trainings(folder: Path) -> dict[str, Trial]:
    """A training's folder, file by file; its model also without the configuration that lies beside it."""
    from gpusched_env.agents.model_file import read_model

    run = folder / "run"
    config = small()
    train(config, run)
    foreign = Path(shutil.copy(run / "best.zip", folder / "foreign.zip"))
    kept = Checkpoints(run / "checkpoints")
    goes_on = partial(train, config, run, resume=True)
    curve, result = (json.loads((run / f"{name}.json").read_bytes()) for name in ("validation", "result"))
    settings = yaml.safe_load((run / "config.yaml").read_text())
    return {
        "model": of_bytes(run / "best.zip", partial(read_model, run / "best.zip")),
        "model of elsewhere": of_bytes(foreign, partial(read_model, foreign)),
        "checkpoint": of_bytes(kept.file(kept.steps()[-1]), kept.last),
        "learning curve": of_values(run / "validation.json", curve, as_json, partial(read_record, run)),
        "training's result": of_values(run / "result.json", result, as_json, goes_on),
        "training's configuration": of_values(run / "config.yaml", settings, as_yaml, goes_on),
    }


def states(folder: Path) -> dict[str, Trial]:
    """Saved states as pickles, and with a field replaced."""
    single, several = GpuSchedulingEnv("Toy"), GpuSchedulingVectorEnv("Toy", num_envs=2)
    found: dict[str, Trial] = {}
    for name, env in (("state", single), ("states", several)):
        env.reset(seed=0)
        found[f"{name} pickled"] = partial(of_pickle, env, pickle.dumps(env.save_state()))
        found[name] = partial(of_fields, env)
    return found


def of_pickle(env: Any, whole: bytes, dice: random.Random) -> None:
    try:
        state = pickle.loads(garbled(whole, dice))
    except Exception as error:  # Of pickle itself, or of the seal.
        raise InputError("no pickle") from error
    env.restore_state(state)


def of_fields(env: Any, dice: random.Random) -> None:
    state = env.save_state()
    name = dice.choice([field.name for field in dataclasses.fields(state)])
    object.__setattr__(state, name, dice.choice(NASTY))
    env.restore_state(state)


def sweeps(folder: Path) -> dict[str, Trial]:
    """Comparisons over a load, and searches for hyper-parameters."""
    from gpusched_env.experiments.sweep import local

    curve = folder / "curve"
    compare("Toy", "fifo,sjf", 2, sweep={"load": [0.5, 2.0]}, device="reference", workers=1).save(curve)
    result, load = curve / "result.json", partial(load_sweep, curve)
    search = folder / "search"
    config = small()
    local.sweep(config, 1, search)
    database = search / local.STORAGE
    goes_on = partial(local.sweep, config, 0, search)
    kept = database.read_bytes()

    def tables(dice: random.Random) -> object:
        damage_tables(database, dice)
        try:
            return loaded(search, goes_on)
        finally:
            database.write_bytes(kept)

    return {
        "load sweep": of_values(result, json.loads(result.read_bytes()), as_json, load),
        "load sweep's jobs": of_bytes(curve / "jobs.parquet", load),
        "search": of_bytes(database, goes_on),
        "search's tables": tables,
    }


def resumed(folder: Path) -> dict[str, Trial]:
    """Result files that are gone on from, and counterexamples that are played again."""
    from gpusched_env.experiments.tuning.search import tune

    ranking, tuning = folder / "ranking.json", folder / "tuning.json"
    rank("Toy", ["sjf", "fifo"], 2, ranking, workers=1)
    loaded_scenario = load_scenario("PriorityFill", horizon_us=5_000.0)
    assert loaded_scenario.workload_sets is not None
    few = msgspec.structs.replace(loaded_scenario.workload_sets, train=loaded_scenario.workload_sets.train[:1])
    scenario = msgspec.structs.replace(loaded_scenario, workload_sets=few)
    names = ["exclusive", "preemptive-priority"]
    tune(scenario, names, 2, path=tuning, workers=1)
    found = {
        "ranking": (ranking, partial(rank, "Toy", ["sjf", "fifo"], 2, ranking, workers=1, resume=True)),
        "tuning": (tuning, partial(tune, scenario, names, 2, path=tuning, workers=1, resume=True)),
    }
    difference = Difference(kind="time", where="time_us", step=1, time_us=5.0, expected="1", found="2")
    about: dict[str, Any] = {"device": "compiled", "against": "reference", "seed": 0, "episode": 1}
    kinds: list[tuple[str, Any, Any]] = [
        ("counterexample", KernelCounterexample, draw_case(0, 1)),
        ("counterexample of launches", LaunchCounterexample, draw_launches(0, 1)),
    ]
    for name, kind, case in kinds:
        path = folder / f"{name}.json"
        path.write_bytes(msgspec.json.encode(kind(**about, difference=difference, case=case)))
        found[name] = (path, partial(read_counterexample, path, kind))
    return {name: of_values(path, json.loads(path.read_bytes()), as_json, load) for name, (path, load) in found.items()}

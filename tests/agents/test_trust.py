"""Files of others: what is read of them without running code, and what needs to be trusted first."""

from __future__ import annotations

import functools
import json
import pickle
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.agents.training.folder import Checkpoints, read_record
from gpusched_env.devices import make_device
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.contract import Scheduler
from tests.refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Payload:
    """Leaves a file when it is unpickled."""

    def __init__(self, ran: Path) -> None:
        self.ran = ran

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.ran,)


def spiked(path: Path, ran: Path) -> Path:
    """A model's file with a payload among the attributes that stable-baselines3 unpickles."""
    from stable_baselines3.common.save_util import data_to_json

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    data = {**json.loads(members["data"]), **json.loads(data_to_json({"payload": Payload(ran)}))}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**members, "data": json.dumps(data).encode()}.items():
            archive.writestr(name, content)
    return path


def cost(scheduler: Scheduler) -> float:
    return episode_metrics(run_episode(scheduler, build_problem(load_scenario("Toy")), make_device("compiled"), 0)).cost


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As the README trains and saves a model, and exports it."""
    from gpusched_env.agents.model_file import export_policy
    from tests.agents.learners import learner_class

    folder = tmp_path_factory.mktemp("saved")
    env = gym.make("gpusched_env:gpusched/Toy-v0")
    model = learner_class("maskable-ppo")("MultiInputPolicy", env, n_steps=64, seed=0)
    model.learn(total_timesteps=64)
    model.save(folder / "toy_ppo")
    export_policy(model, folder / "toy_ppo.npz")
    return folder


def test_a_saved_model_decides_as_its_export(saved: Path) -> None:
    from gpusched_env.agents.model_file import export_policy, read_model
    from gpusched_env.agents.model_scheduler import ModelScheduler

    assert ExportedPolicy.load(saved / "toy_ppo.npz").info.scenario == "Toy"
    expected = cost(LearnedScheduler(saved / "toy_ppo.npz"))
    assert cost(ModelScheduler(saved / "toy_ppo.zip", trust=True)) == expected
    model = read_model(saved / "toy_ppo.zip", trust=True)
    assert (model.algorithm, model.seed, model.timesteps) == ("maskable-ppo", 0, 64)
    with refused(InputError, "trained"):
        export_policy(model, saved / "again.npz")
    export_policy(model, saved / "again.npz", scenario=load_scenario("Toy"))
    assert (saved / "again.npz").read_bytes() == (saved / "toy_ppo.npz").read_bytes()
    with refused(InputError, "2 tenant", "ThreeTenants has 3"):
        ModelScheduler(saved / "toy_ppo.zip", trust=True).prepare(load_scenario("ThreeTenants"))


@pytest.mark.parametrize("told", [True, False])
def test_a_saved_model_is_told_of_futures_as_in_its_training(told: bool, tmp_path: Path) -> None:
    """Its file says of its environment only what was seen last."""
    from gpusched_env.agents.model_file import read_model
    from tests.agents.learners import learner_class

    busy = load_scenario("ServingPoisson", load=5.0, horizon_us=20_000.0)
    env = gym.make("gpusched_env:gpusched/ServingPoisson-v0", scenario=busy, futures=told)
    model = learner_class("maskable-ppo")("MultiInputPolicy", env, n_steps=16, batch_size=16, seed=0)
    model.learn(total_timesteps=16)
    model.save(tmp_path / "model")
    assert read_model(tmp_path / "model.zip", trust=True).layout_in(busy).futures == told


def test_a_model_of_elsewhere_runs_its_code_only_if_it_is_trusted(saved: Path, tmp_path: Path) -> None:
    from gpusched_env.agents.model_scheduler import ModelScheduler

    model, ran = spiked(Path(shutil.copy(saved / "toy_ppo.zip", tmp_path)), tmp_path / "ran"), tmp_path / "ran"
    with refused(InputError, "--trust", "export_policy"):
        ModelScheduler(model)
    assert not ran.exists()
    ModelScheduler(model, trust=True)
    assert ran.exists(), "else the payload is none, and the test cannot fail"


@pytest.mark.parametrize("trust", [False, True])
def test_what_is_no_model_is_refused(trust: bool, saved: Path, tmp_path: Path) -> None:
    from gpusched_env.agents.model_file import read_model

    path = tmp_path / "model.zip"
    for content in (b"", b"PK", b"nothing of the kind"):
        path.write_bytes(content)
        with refused(InputError, "model.zip", "stable-baselines3"):
            read_model(path, trust=trust)
    spiked(Path(shutil.copy(saved / "toy_ppo.zip", path)), tmp_path / "ran")
    with zipfile.ZipFile(path) as archive:
        data = archive.read("data")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", data)
    with refused(InputError, "model.zip", "policy.pth"):
        read_model(path, trust=trust)
    assert not (tmp_path / "ran").exists()


def training(**values: Any) -> TrainingConfig:
    return config_of(
        {
            **{"scenario": load_scenario("Toy"), "timesteps": 64, "envs": 4, "n_steps": 8, "validation_seeds": 1},
            **values,
        }
    )


def test_the_model_of_a_training_is_read_without_its_code(tmp_path: Path) -> None:
    from gpusched_env.agents.model_file import export_policy, read_model
    from gpusched_env.agents.model_scheduler import ModelScheduler

    train(training(policy="slots", seed=3, batch_size=16), tmp_path / "run")
    spiked(tmp_path / "run" / "final.zip", tmp_path / "ran")
    model = read_model(tmp_path / "run" / "final.zip")
    assert (model.algorithm, model.seed, model.timesteps) == ("maskable-ppo", 3, 64)
    export_policy(model, tmp_path / "final.npz")
    assert cost(ModelScheduler(tmp_path / "run" / "final.zip")) == cost(LearnedScheduler(tmp_path / "final.npz"))
    assert not (tmp_path / "ran").exists()


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    """Bytes changed or missing anywhere in what a training leaves: one clear error, or no harm done."""
    from gpusched_env.agents.model_file import read_model

    run = tmp_path / "run"
    train(training(batch_size=16), run)
    rng = np.random.default_rng(0)
    refused: list[tuple[str, str]] = []
    checkpoint = Checkpoints(run / "checkpoints").file(Checkpoints(run / "checkpoints").steps()[-1])
    readers: dict[Path, Callable[[], object]] = {
        run / "best.zip": lambda: read_model(run / "best.zip"),
        run / "best.npz": lambda: ExportedPolicy.load(run / "best.npz"),
        run / "config.yaml": lambda: read_record(run),
        run / "validation.json": lambda: read_record(run),
        checkpoint: lambda: Checkpoints(run / "checkpoints").last(),
    }
    for path, read in readers.items():
        content = path.read_bytes()
        read()
        for _ in range(40):
            damaged = bytearray(content)
            at = int(rng.integers(len(damaged)))
            if rng.random() < 0.5:
                damaged = damaged[:at]
            else:
                damaged[at : at + 16] = rng.bytes(16)
            path.write_bytes(damaged)
            try:
                read()
            except InputError as error:
                refused.append((path.name, str(error)))
        path.write_bytes(content)
    assert all(name in message for name, message in refused)
    assert len(refused) > 100


@pytest.mark.parametrize(("algo", "settings"), [("a2c", {"envs": 4, "n_steps": 8}), ("cma-es", {"population": 4})])
def test_a_checkpoint_of_somebody_else_needs_trust(
    algo: str, settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of(timesteps: int) -> TrainingConfig:
        return config_of(
            {"scenario": load_scenario("Toy"), "algo": algo, "timesteps": timesteps, "validation_seeds": 1, **settings}
        )

    run, ran, mine, yours = (tmp_path / name for name in ("run", "ran", "mine", "yours"))
    monkeypatch.setenv("XDG_STATE_HOME", str(mine))
    reached = train(of(64), run).timesteps
    kept = Checkpoints(run / "checkpoints")
    checkpoint = kept.file(reached)
    content = checkpoint.read_bytes()
    for state_home, found in ((yours, content), (checkpoint, content), (mine, pickle.dumps(Payload(ran)) + bytes(32))):
        monkeypatch.setenv("XDG_STATE_HOME", str(state_home))
        checkpoint.write_bytes(found)
        with refused(InputError, "--trust", "changed"):
            train(of(2 * reached), run, resume=True)
    assert not ran.exists()
    kept.last(trust=True)
    assert ran.exists(), "else the payload is none, and the test cannot fail"
    checkpoint.write_bytes(content)
    monkeypatch.setenv("XDG_STATE_HOME", str(yours))
    went_on = train(of(2 * reached), run, resume=True, trust=True)
    assert went_on.timesteps >= 2 * reached
    # What this user has written since is his own.
    assert train(of(went_on.timesteps + 1), run, resume=True).timesteps > went_on.timesteps


@pytest.mark.parametrize("algo", ["maskable-ppo", "ppo", "a2c", "dqn"])
def test_what_vec_normalize_has_scaled_is_refused(algo: str, tmp_path: Path) -> None:
    """Its statistics are in another file; without them the policy would decide on what it never saw."""
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    from gpusched_env.agents.model_file import export_policy, read_model
    from tests.agents.learners import learner_class

    settings: dict[str, Any] = {"learning_starts": 4, "buffer_size": 50} if algo == "dqn" else {"n_steps": 64}
    make = functools.partial(gym.make, "gpusched_env:gpusched/Toy-v0")
    scaled, plain = VecNormalize(DummyVecEnv([make])), DummyVecEnv([make])
    for name, env in (("scaled", scaled), ("plain", plain)):
        model = learner_class(algo)("MultiInputPolicy", env, seed=0, device="cpu", **settings)
        model.learn(64)
        model.save(tmp_path / name)
        if env is scaled:
            with refused(InputError, "VecNormalize", "norm_obs=False"):
                export_policy(model, tmp_path / "policy.npz")
    with refused(InputError, "scaled.zip", "VecNormalize"):
        read_model(tmp_path / "scaled.zip", trust=True)
    read_model(tmp_path / "plain.zip", trust=True)
    assert not (tmp_path / "policy.npz").exists()


def test_wrappers_that_a_scheduler_would_not_have_are_refused(tmp_path: Path) -> None:
    from gpusched_env.agents.model_file import export_policy
    from tests.agents.learners import learner_class

    env = gym.wrappers.TransformObservation(
        gym.make("gpusched_env:gpusched/Toy-v0"),
        lambda tables: {k: np.clip(2 * v, -1, 1) for k, v in tables.items()},
        None,
    )
    model = learner_class("ppo")("MultiInputPolicy", env, n_steps=64, device="cpu")
    with refused(InputError, "ObservationWrapper"):
        export_policy(model, tmp_path / "policy.npz")

"""Every kind of input with something wrong, many at once: it loads, or one error says why it does not."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import yaml

from gpusched_env import compare, load_comparison
from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.training.config import config_of
from gpusched_env.agents.training.folder import read_config, write_config
from gpusched_env.baselines.tuning import SCHEMA, Tuning
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.files import read_struct
from gpusched_env.experiments.lib.rows import Rows
from gpusched_env.experiments.settings import apply_settings
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.workload.importers import import_trace
from tests.agents.made_up import made_up, written
from tests.attacks.left_behind import of_policy, resumed, rules, states, sweeps, trainings
from tests.attacks.mutations import damaged, garbled
from tests.attacks.test_files import as_json, as_yaml, damage_tables, import_whole
from tests.attacks.trials import Trial, loaded, of_bytes, of_values
from tests.workload.execution_traces import launched, node, operator, tensor
from tests.workload.kineto_traces import write
from tests.workload.nsys_exports import three_kernels as nsys_kernels
from tests.workload.test_import_kineto import three_kernels as kineto_kernels

TUNED = Path(__file__).parents[2] / "baselines" / "tuned" / "PriorityFill.json"
POLICIES: tuple[Literal["slots", "mlp", "rule", "release"], ...] = ("slots", "mlp", "rule", "release")
RESULTS = ("result.json", "jobs.parquet", "timelines.npz")


def zipped(data: Any) -> bytes:
    return gzip.compress(as_json(data), 1)


def scenarios(folder: Path) -> dict[str, Trial]:
    toy = load_scenario("Toy")
    plain = json.loads(msgspec.json.encode(toy))
    path, gpu = folder / "scenario.yaml", folder / "gpu.yaml"

    def setting(dice: random.Random) -> object:
        field = dice.choice(sorted(plain))
        value = yaml.safe_dump(damaged({"x": plain[field]}, dice), default_flow_style=True)[4:-2]
        return apply_settings(toy, [garbled(f"{field}={value}".encode(), dice).decode("utf-8", "surrogateescape")])

    data = json.loads(msgspec.json.encode(load_gpu("v100-sxm"))) | {"name": "mine"}
    return {
        "scenario": of_values(path, plain, as_yaml, lambda: build_problem(load_scenario(path))),
        "setting": setting,
        "gpu": of_values(gpu, data, as_yaml, lambda: load_gpu(gpu)),
    }


def traces(folder: Path) -> dict[str, Trial]:
    plain, zip_, report = folder / "net.json", folder / "net.json.gz", folder / "report.sqlite"
    whole = json.loads(write(plain, kineto_kernels()).read_bytes())
    both, operators = folder / "both.json", folder / "operators.json"
    write(both, [operator(1, "aten::add"), *launched(1, 1), *launched(2, 1)])
    ran = {"schema": "1.1.1-chakra.0.0.4", "nodes": [node(1, "aten::add", [tensor(1, [4])], [tensor(2, [4])])]}
    exported = nsys_kernels(report).close().read_bytes()

    def nsys(dice: random.Random) -> None:
        report.write_bytes(exported if dice.randrange(2) else garbled(exported, dice))
        if report.read_bytes() == exported:
            damage_tables(report, dice)
        import_whole(report)

    return {
        "kineto": of_values(plain, whole, as_json, lambda: import_whole(plain)),
        "kineto gzipped": of_values(zip_, whole, zipped, lambda: import_whole(zip_)),
        "execution trace": of_values(operators, ran, as_json, lambda: import_trace(both, execution_trace=operators)),
        "nsys": nsys,
    }


def policies(folder: Path) -> dict[str, Trial]:
    found = {kind: written(made_up("Toy", kind), folder / f"{kind}.npz") for kind in POLICIES}
    return {f"policy {kind}": of_policy(path, ExportedPolicy.load) for kind, path in found.items()}


def results(folder: Path) -> dict[str, Trial]:
    target = folder / "compared"
    compare("Toy", ["fifo", "sjf"], 2, device="reference", record="kernels", workers=1).save(target)
    load = partial(load_comparison, target)
    found: dict[str, Trial] = {f"result {name}": of_bytes(target / name, load) for name in RESULTS}
    values = folder / "values"
    shutil.copytree(target, values)
    whole = json.loads((values / RESULTS[0]).read_bytes())
    found["result values"] = of_values(values / RESULTS[0], whole, as_json, partial(load_comparison, values))
    tuning, config, rows = folder / "tuning.json", folder / "config.yaml", folder / "rows.jsonl"
    found["tuning"] = of_values(
        tuning, json.loads(TUNED.read_bytes()), as_json, lambda: read_struct(tuning, Tuning, SCHEMA, "none", "x")
    )
    write_config(config_of({"scenario": load_scenario("Toy")}), {}, config)
    settings = yaml.safe_load(config.read_text())
    found["training"] = of_values(config, settings, as_yaml, lambda: read_config(config))

    def recording(dice: random.Random) -> object:
        rows.write_bytes(garbled(b'{"schema": 1}\n{"what": "launch", "us": 5.0}\n', dice))
        return loaded(folder, lambda: Rows(folder, "rows", {"schema": 1}, resume=True))

    found["recording"] = recording
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("make", [scenarios, traces, policies, rules, results, trainings, states, sweeps, resumed])
@pytest.mark.parametrize("count", [25, pytest.param(400, marks=pytest.mark.slow)])
def test_it_loads_or_is_one_error(make: Callable[[Path], dict[str, Trial]], count: int, tmp_path: Path) -> None:
    failed, refused = [], 0
    trials = list(make(tmp_path).items())
    for seed in range(count):
        name, trial = trials[seed % len(trials)]
        try:
            trial(random.Random(seed))
        except InputError:
            refused += 1
        except Exception as error:
            failed.append(f"{name}, seed {seed}: {type(error).__name__}: {error}"[:300])
    assert not failed, "\n".join(failed)
    assert refused > count // 10

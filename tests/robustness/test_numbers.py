"""Numbers beyond all sense: they are refused by name, or simulated alike by both devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gpusched_env import build_problem, load_scenario, make_device
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices.compiled import arena
from gpusched_env.devices.reference import world
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.workload.importers import import_trace
from gpusched_env.workload.workload import Workload, decode_workload, encode_workload
from tests.workload.kineto_traces import write
from tests.workload.test_import_kineto import three_kernels

DEVICES = ("compiled", "reference")


def changed(**fields: float) -> Workload:
    """``toy_batch`` with fields of every kernel replaced."""
    workload = load_workload("toy_batch")
    return msgspec.structs.replace(
        workload, kernels=tuple(msgspec.structs.replace(kernel, **fields) for kernel in workload.kernels)
    )


def episode(problem: Problem, device: str) -> Episode:
    return run_episode(make_scheduler("pass-through"), problem, make_device(device), 0, record="kernels")


@pytest.mark.parametrize("fields", [{"dram_bytes": 1e308}, {"dram_bytes": 1e100}, {"duration_us": 1e308}], ids=str)
def test_kernels_beyond_all_sense_are_refused(fields: dict[str, float]) -> None:
    workload = changed(**fields)
    with pytest.raises(InputError, match=r"takes .* us and moves .* bytes, must be at most"):
        build_problem(load_scenario("Toy"), workloads={"toy_batch": workload})
    with pytest.raises(InputError, match=next(iter(fields))):
        decode_workload(encode_workload(workload), "toy.json")


@pytest.mark.parametrize(
    ("field", "value"), [("weight", 1e308), ("host_us", 1e13), ("iteration_us", 1e308), ("jobs", 2**63)]
)
def test_fields_of_tenants_have_limits(field: str, value: float) -> None:
    with pytest.raises(InputError, match=rf"tenants\[0\]\.{field}: Expected .* <= "):
        load_scenario("Toy", tenants={"batch": {field: value}})


def test_rewards_have_limits() -> None:
    with pytest.raises(InputError, match=r"reward\.turnaround: Expected .* <= "):
        load_scenario("Toy", reward={"turnaround": 1e308})


@pytest.mark.parametrize("times", [1e300, 1e13])
def test_a_trace_of_endless_kernels_is_refused(times: float, tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    trace = json.loads(write(path, three_kernels()).read_bytes())
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            event["dur"] *= times
    path.write_text(json.dumps(trace))
    with pytest.raises(InputError, match=r"net\.json.* at most"):
        import_trace(path)


def periodic(period_us: float) -> list[dict[str, Any]]:
    arrivals = {"kind": "periodic", "period_us": period_us}
    return [msgspec.to_builtins(of) | {"arrivals": arrivals, "jobs": 4} for of in load_scenario("Toy").tenants]


@pytest.mark.parametrize("period_us", [1e11, 1e12])
def test_months_are_simulated_to_the_picosecond(period_us: float) -> None:
    problem = build_problem(load_scenario("Toy", tenants=periodic(period_us), horizon_us=3.9e12))
    ours, theirs = (episode(problem, device) for device in DEVICES)
    assert ours.done
    assert ours.timeline.jobs.ps("arrived_us").max() == 3 * int(period_us) * 10**6
    assert np.array_equal(ours.timeline.jobs.exact, theirs.timeline.jobs.exact)
    assert np.array_equal(ours.timeline.kernels.exact, theirs.timeline.kernels.exact)
    assert np.isfinite(episode_metrics(ours).cost)


@pytest.mark.parametrize("device", DEVICES)
def test_jobs_at_once_have_a_limit(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (arena, world):
        monkeypatch.setattr(module, "MOST_JOBS", 1000)
    problem = build_problem(load_scenario("Toy", tenants={"batch": {"jobs": 2**53}}))
    with pytest.raises(InputError, match="scenario Toy: at 0 us more jobs wait than there is room for"):
        episode(problem, device)
    few = build_problem(load_scenario("Toy", tenants={"batch": {"jobs": 60}}, horizon_us=1e6))
    assert episode(few, device).done

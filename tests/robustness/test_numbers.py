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
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.scenarios.building import load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import Wait
from gpusched_env.workload.importers import import_trace
from gpusched_env.workload.workload import OpKind, Workload, decode_workload, encode_workload
from tests.refusals import refused
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
    with refused(InputError, "takes"):
        build_problem(load_scenario("Toy"), workloads={"toy_batch": workload})
    with pytest.raises(InputError, match=next(iter(fields))):
        decode_workload(encode_workload(workload), "toy.json")


@pytest.mark.parametrize(
    ("field", "value"), [("weight", 1e308), ("host_us", 1e13), ("iteration_us", 1e308), ("jobs", 2**63)]
)
def test_fields_of_tenants_have_limits(field: str, value: float) -> None:
    with refused(InputError, field, "tenants[0]", "<="):
        load_scenario("Toy", tenants={"batch": {field: value}})


TIMES: list[dict[str, Any]] = [
    {"horizon_us": 1e18}, {"horizon_us": 1.1e12}, {"decision_us": 3e12}, {"interval_us": 1e13},
    {"arrivals_until_us": 1e18}, {"tenants": {"batch": {"slo_us": 1e13}}}, {"window": {"insert_us": 1e13}},
    {"tenants": {"batch": {"arrivals": {"kind": "periodic", "period_us": 1e13}}}},
    {"tenants": {"batch": {"arrivals": {"kind": "closed-loop", "think_us": 1e13}}}},
    {"tenants": {"batch": {"arrivals": {"kind": "poisson", "rate_per_s": 1, "start_us": 1e13}}}},
    {"tenants": {"batch": {"arrivals": {
        "kind": "regimes", "rate_per_s": 1, "busy_rate_per_s": 2, "calm_us": 1e13, "busy_us": 1,
    }}}},
]  # fmt: skip


@pytest.mark.parametrize("changes", TIMES, ids=str)
def test_times_beyond_the_clock_are_refused(changes: dict[str, Any]) -> None:
    with refused(InputError, "_us", "<= 1000000000000.0"):
        load_scenario("Toy", **changes)


def test_slow_motion_does_not_lead_beyond_the_clock() -> None:
    with refused(InputError, "1000 times", "horizon_us", "<="):
        build_problem(load_scenario("Toy", horizon_us=1e12, stretch=1000.0))


def test_a_job_beyond_the_clock_is_refused() -> None:
    """Each of its kernels is short enough."""
    workload = load_workload("toy_batch")
    kernel = next(op for op in workload.variants[0].ops if op.kind is OpKind.KERNEL)
    ops = (msgspec.structs.replace(kernel, duration_us=9e11),) * 2
    long = msgspec.structs.replace(workload, variants=(msgspec.structs.replace(workload.variants[0], ops=ops),))
    with refused(InputError, "1e+12", "alone"):
        build_problem(load_scenario("Toy"), workloads={"toy_batch": long})


@pytest.mark.parametrize("value", [1.1e12, float("inf"), float("nan")])
def test_intervals_of_environments_have_an_end(value: float) -> None:
    with refused(InputError, value, "interval_us", "1e+12"):
        GpuSchedulingEnv("Toy", interval_us=value)


@pytest.mark.parametrize("device", DEVICES)
def test_the_last_times_of_the_clock_are_played_to_the_end(device: str) -> None:
    """Each decision lasts as long as the whole episode may."""
    env = GpuSchedulingEnv("Toy", device=device, horizon_us=1e12, decision_us=1e12, wait_us=1e12)
    _, info = env.reset(seed=0)
    truncated = terminated = False
    while not (truncated or terminated):
        _, reward, terminated, truncated, info = env.step(np.flatnonzero(info["action_mask"])[-1])
        assert np.isfinite([reward, info["time_us"]]).all()


@pytest.mark.parametrize("device", DEVICES)
def test_a_wait_ends_within_the_clock(device: str) -> None:
    made = make_device(device)
    view = made.reset(build_problem(load_scenario("Toy")), 0)
    for until_us in (view.time_us + 1.1e12, 1e18, float("nan"), "soon"):
        with refused(IllegalCommand, "until_us"):
            made.apply(Wait(until_us))  # type: ignore[arg-type]


def test_rewards_have_limits() -> None:
    with refused(InputError, "reward.turnaround", "<="):
        load_scenario("Toy", reward={"turnaround": 1e308})


@pytest.mark.parametrize("times", [1e300, 1e13])
def test_a_trace_of_endless_kernels_is_refused(times: float, tmp_path: Path) -> None:
    path = tmp_path / "net.json"
    trace = json.loads(write(path, three_kernels()).read_bytes())
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            event["dur"] *= times
    path.write_text(json.dumps(trace))
    with refused(InputError, "net.json"):
        import_trace(path)


def periodic(period_us: float) -> list[dict[str, Any]]:
    arrivals = {"kind": "periodic", "period_us": period_us}
    return [msgspec.to_builtins(of) | {"arrivals": arrivals, "jobs": 4} for of in load_scenario("Toy").tenants]


@pytest.mark.parametrize("period_us", [1e11, 3e11])
def test_days_are_simulated_to_the_picosecond(period_us: float) -> None:
    problem = build_problem(load_scenario("Toy", tenants=periodic(period_us), horizon_us=1e12))
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
    with refused(InputError, "0 us", "room"):
        episode(problem, device)
    few = build_problem(load_scenario("Toy", tenants={"batch": {"jobs": 60}}, horizon_us=1e6))
    assert episode(few, device).done

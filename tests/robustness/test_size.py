"""Sizes at the edge: many tenants, jobs and blocks, a GPU of one SM."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from gpusched_env import build_problem, load_scenario, make_device
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.scenarios.building import load_workload
from gpusched_env.scenarios.problem import Problem
from gpusched_env.workload.workload import Workload
from tests.refusals import refused
from tests.robustness.playing import play

TOY = load_scenario("Toy")
DEVICES = ["compiled", "reference"]


def tenants(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Those of ``Toy`` in turn."""
    return [msgspec.to_builtins(TOY.tenants[i % 2]) | {"name": f"tenant{i}"} | fields for i in range(count)]


def episode(problem: Problem, device: str = "compiled") -> Episode:
    return run_episode(make_scheduler("pass-through"), problem, make_device(device), 0, record="jobs")


@pytest.mark.parametrize("contexts", ["shared", "per-tenant"])
def test_two_hundred_tenants(contexts: str) -> None:
    problem = build_problem(load_scenario("Toy", tenants=tenants(200), contexts=contexts, horizon_us=1e6))
    ours, theirs = episode(problem), episode(problem, "reference")
    assert ours.done
    assert len(ours.timeline.jobs) == 200
    assert np.array_equal(ours.timeline.jobs.exact, theirs.timeline.jobs.exact)


def test_two_hundred_tenants_in_an_environment() -> None:
    env = GpuSchedulingEnv("Toy", tenants=tenants(200), horizon_us=20_000.0)
    rewards, _ = play(env, 300)
    assert env.action_space.n == 1 + 200
    assert np.isfinite(rewards).all()


def test_a_burst_of_ten_thousand_jobs() -> None:
    batch = tenants(1, arrivals={"kind": "backlog"}, jobs=10_000)
    result = episode(build_problem(load_scenario("Toy", tenants=batch, horizon_us=1e8)))
    assert result.done
    assert len(result.timeline.jobs) == 10_000
    # One stream, one job after the other: 100 us and 200 us of kernels each.
    assert result.end_us == pytest.approx(10_000 * 300.0)


@pytest.mark.parametrize("device", DEVICES)
def test_a_gpu_of_one_sm(device: str) -> None:
    gpu = msgspec.structs.replace(load_gpu("toy-4sm"), sms=1, name="one")
    result = episode(build_problem(TOY, gpu=gpu), device)
    assert result.done
    assert result.end_us == 1220.0


def with_blocks(blocks: int, times: float) -> Workload:
    """``toy_batch`` with larger grids that take so many times as long."""
    workload = load_workload("toy_batch")
    kernels = tuple(
        msgspec.structs.replace(k, grid=(blocks, 1, 1), duration_us=times * k.duration_us) for k in workload.kernels
    )
    variants = tuple(
        msgspec.structs.replace(
            v, ops=tuple(msgspec.structs.replace(op, duration_us=times * op.duration_us) for op in v.ops)
        )
        for v in workload.variants
    )
    return msgspec.structs.replace(workload, kernels=kernels, variants=variants)


def test_kernels_of_two_to_the_31_blocks() -> None:
    alone = load_scenario("Toy", tenants=tenants(1), horizon_us=1e9)
    result = episode(build_problem(alone, workloads={"toy_batch": with_blocks(2**31 - 1, 1e5)}))
    assert result.done
    # Block times are rounded to picoseconds.
    assert result.end_us == pytest.approx(300.0 * 1e5, rel=1e-5)
    with refused(InputError, "nanosecond"):
        build_problem(alone, workloads={"toy_batch": with_blocks(2**31 - 1, 1.0)})

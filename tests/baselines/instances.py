"""Schedulers on hand-worked instances: kernels of the teaching GPU with their spans."""

from __future__ import annotations

from gpusched_env.devices.compiled.device import CompiledDevice
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.contract import Scheduler

SAVED_BYTES = 4 * 32 * 1024
"""What a block of 1024 threads with 32 registers of 4 bytes leaves to be saved."""


QUICK = {"hindsight": "hindsight(rounds=2,portfolio=edf+wspt)", "conservative": "conservative(pause_s=0.001)"}
"""Options with which an episode takes seconds, not minutes, and pauses end before it does."""


def quick(name: str) -> str:
    """A scheduler with options, if it needs any, that make it quick."""
    return QUICK.get(name, name)


def started(arrives_us: float) -> dict[str, object]:
    """Arrivals of a tenant whose jobs are all there at ``arrives_us``."""
    return {"kind": "backlog", "start_us": arrives_us}


def spans(scheduler: Scheduler, problem: Problem) -> list[tuple[int, float, float, int]]:
    """(tenant, start, end, preemptions) of each kernel in order of issue, once all work is done."""
    kernels = episode(scheduler, problem).timeline.kernels.dict()
    columns = (kernels[name].tolist() for name in ("id", "tenant", "started_us", "ended_us", "preemptions"))
    rows = sorted(zip(*columns, strict=True))
    return [(int(tenant), round(start, 3), round(end, 3), int(times)) for _, tenant, start, end, times in rows]


def launches(scheduler: Scheduler, problem: Problem, tenant: int) -> list[float]:
    """When each kernel of a tenant was launched, in order of issue."""
    kernels = episode(scheduler, problem).timeline.kernels.dict()
    rows = sorted(zip(kernels["id"].tolist(), kernels["tenant"].tolist(), kernels["launched_us"].tolist(), strict=True))
    return [round(launched, 3) for _, owner, launched in rows if owner == tenant]


def episode(scheduler: Scheduler, problem: Problem) -> Episode:
    done = run_episode(scheduler, problem, CompiledDevice(), 0, record="kernels")
    assert done.done
    return done

"""The state of a fleet, in flat arrays that plain Python and compiled functions share."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from gpusched_env.games.fleet.co_location import NOW
from gpusched_env.games.fleet.problem import FleetProblem
from gpusched_env.games.fleet.workload.jobs import JOB

WAITS, FINISHED = -1, -2
"""In place of a GPU."""
CLIENTS: Final = 48
"""Most jobs on a GPU: clients of an MPS server on Volta and later (NVIDIA, *Multi-Process Service*, Limitations)."""
NEXT, TOP = NOW + 1, NOW + 2
"""Columns of the clock behind the time: the first job that no rule has placed yet, GPUs that were ever in use."""


class FleetState(NamedTuple):
    """By job, by GPU, and the clock. Times in us."""

    arrival_us: Any
    training: Any
    utilisation: Any
    memory_gb: Any
    step_us: Any
    slo_us: Any
    """As in :data:`~gpusched_env.games.fleet.workload.jobs.JOB`."""
    gpu_of: Any
    """A GPU, :data:`WAITS` or :data:`FINISHED`."""
    left_us: Any
    ready_us: Any
    """When its restart is over."""
    ended_us: Any
    """-1: not yet."""
    pace: Any
    """Training: work done a microsecond. Inference: mean latency over its SLO."""
    lost: Any
    """Part of its time that goes into restarts."""
    served_us: Any
    ratio_us: Any
    late_us: Any
    """Inference: time in which its batches were served, the integral of ``pace`` over it, and time whose batches came
    during a restart or later than the SLO."""
    count: Any
    slots: Any
    """(GPUs, :data:`CLIENTS`) jobs that are there."""
    load: Any
    """Sum of utilisations."""
    claimed_gb: Any
    size_gb: Any
    speed: Any
    sleep_us: Any
    share: Any
    ratio: Any
    """Share of the SMs that training may use, and worst mean latency over SLO of the last report (0: no inference)."""
    used_us: Any
    busy_us: Any
    """Time in which it had jobs, and the integral of their activities, together at most 1, over it."""
    clock: Any


def new_state(problem: FleetProblem) -> FleetState:
    """All jobs wait, all GPUs are empty."""
    jobs, gpus = len(problem.jobs), problem.gpus
    counts = [kind.count for kind in problem.kinds]
    return FleetState(
        **{name: problem.jobs[name].copy() for name in JOB.names or () if name != "work_us"},
        gpu_of=np.full(jobs, WAITS),
        left_us=problem.jobs["work_us"].copy(),
        ready_us=np.zeros(jobs, np.int64),
        ended_us=np.full(jobs, -1),
        **{name: np.zeros(jobs) for name in ("pace", "lost", "served_us", "ratio_us", "late_us")},
        count=np.zeros(gpus, np.int64),
        slots=np.zeros((gpus, CLIENTS), np.int64),
        **{name: np.zeros(gpus) for name in ("load", "claimed_gb", "sleep_us", "ratio", "used_us", "busy_us")},
        size_gb=np.repeat([float(kind.memory_gb) for kind in problem.kinds], counts),
        speed=np.repeat([float(kind.speed) for kind in problem.kinds], counts),
        share=np.ones(gpus),
        clock=np.zeros(3, np.int64),
    )

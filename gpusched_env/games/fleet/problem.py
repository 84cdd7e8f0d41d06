"""Problems of a fleet: GPUs and the jobs that come to them from outside.

A run's state is flat arrays that plain Python and compiled functions share.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.co_location import NOW, RateModel
from gpusched_env.games.fleet.workload.jobs import JOB, MOST_US, check_jobs


@dataclass(frozen=True)
class GpuKind:
    """Equal GPUs of a fleet."""

    name: str
    count: int
    memory_gb: float
    speed: float = 1.0
    """Speed of kernels, over those of the GPU that utilisations and steps were measured on."""
    spec: str = "v100-sxm"
    """Name of the GPU whose power law it has, and which is simulated block by block."""


@dataclass(frozen=True, eq=False)
class FleetProblem:
    """A fleet, its jobs in order of arrival, and what is known of sharing a GPU.

    Raises:
        InputError: a value out of its range, or jobs that are not in order; names job and field.
    """

    name: str
    jobs: NDArray[np.void]
    """(jobs,) rows of :data:`~gpusched_env.games.fleet.workload.jobs.JOB`."""
    kinds: tuple[GpuKind, ...]
    rates: RateModel
    horizon_us: int
    report_us: int = 60_000_000
    """Time between two reports (paper: 1 s). Rates are constant in between, so a minute is exact but for jobs that end
    within it."""
    restart_us: int = 10_000_000
    """Time to restart a job that is moved or gets another share (paper, Section 3: 5 to 15 s)."""
    programs: tuple[str, ...] = ()
    """The workload that each job runs where GPUs are simulated block by block; rates need none."""

    def __post_init__(self) -> None:
        if not self.kinds or any(kind.count < 1 or kind.memory_gb <= 0 or kind.speed <= 0 for kind in self.kinds):
            raise InputError(f"{self.name}: each kind of GPU needs a count of at least 1, memory and speed above 0")
        for what, least in (("report_us", 1), ("horizon_us", 1), ("restart_us", 0)):
            if not least <= getattr(self, what) <= MOST_US:
                raise InputError(f"{self.name}: {what} is {getattr(self, what)}, must be {least} to {MOST_US}")
        check_jobs(self.jobs, self.name, max(kind.memory_gb for kind in self.kinds))

    @property
    def gpus(self) -> int:
        return sum(kind.count for kind in self.kinds)


WAITS, FINISHED = -1, -2
"""What stands in place of a GPU."""
CLIENTS: Final = 48
"""Most jobs on a GPU: clients of an MPS server on Volta and later (NVIDIA, *Multi-Process Service*, Limitations)."""
NEXT, TOP = NOW + 1, NOW + 2
"""Columns of the clock behind the time: the first job that no rule has placed yet, GPUs that were ever in use."""


class FleetState(NamedTuple):
    """State of the jobs, of the GPUs, and the clock. Times in us."""

    arrival_us: Any
    training: Any
    utilisation: Any
    memory_gb: Any
    step_us: Any
    slo_us: Any
    """The columns of :data:`~gpusched_env.games.fleet.workload.jobs.JOB` up to here."""
    gpu_of: Any
    """The GPU of a job, :data:`WAITS` or :data:`FINISHED`."""
    left_us: Any
    ready_us: Any
    """The time at which a job's restart is over."""
    ended_us: Any
    """The time at which a job ended; -1: not yet."""
    pace: Any
    """Training: work done a microsecond. Inference: mean latency over its SLO."""
    lost: Any
    """Part of a job's time that goes into restarts."""
    served_us: Any
    ratio_us: Any
    late_us: Any
    """Inference: time in which its batches were served, the integral of ``pace`` over it, and time whose batches came
    during a restart or later than the SLO."""
    count: Any
    slots: Any
    """(GPUs, :data:`CLIENTS`) jobs that are on each GPU."""
    load: Any
    """Sum of the utilisations of a GPU's jobs."""
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

"""Problems of a fleet: GPUs, and the jobs that come to them from outside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.hardware.co_location import RateModel
from gpusched_env.games.fleet.workload.jobs import MOST_US, check_jobs


@dataclass(frozen=True)
class GpuKind:
    """Equal GPUs of a fleet."""

    name: str
    count: int
    memory_gb: float
    speed: float = 1.0
    """Of kernels, over those of the GPU that utilisations and steps were measured on."""
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
    """(jobs,) of :data:`~gpusched_env.games.fleet.workload.jobs.JOB`."""
    kinds: tuple[GpuKind, ...]
    rates: RateModel
    horizon_us: int
    report_us: int = 60_000_000
    """Time between two reports (paper: 1 s). Rates are constant in between, so a minute is exact but for jobs that end
    within it."""
    restart_us: int = 10_000_000
    """Of a job that is moved or gets another share (paper, Section 3: 5 to 15 s)."""
    programs: tuple[str, ...] = ()
    """By job: the workload that it runs where GPUs are simulated block by block; rates need none."""

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

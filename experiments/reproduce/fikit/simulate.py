"""One run, and what the paper's figures are made of."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpusched_env.experiments.lib.names import new_device
from gpusched_env.experiments.reproduce.fikit.setting import EXCLUSIVE, Cell, problem_of, scheduler_of
from gpusched_env.scheduling.session import Episode, run_episode

SEED = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one run."""

    high_us: float
    """Mean job completion time (turnaround) of the high-priority service; NaN if no job completed."""
    low_us: float
    """The same of the low-priority service; NaN without one."""
    low_share: float
    """Profiled device time of the low-priority service's finished kernels over the length of the run."""


@dataclass(frozen=True, slots=True)
class Simulate:
    """The task of worker processes."""

    device: str

    def __call__(self, cell: Cell) -> Outcome:
        problem = problem_of(cell)
        episode = run_episode(scheduler_of(cell), problem, new_device(self.device), SEED, record="kernels")
        return outcome(episode, skip=int(cell.mode == EXCLUSIVE))


def outcome(episode: Episode, skip: int = 0) -> Outcome:
    """The figures of a run; the first ``skip`` jobs of the high-priority service do not count."""
    jobs = episode.timeline.jobs.dict()
    took = jobs["completed_us"] - jobs["arrived_us"]
    high = took[(jobs["tenant"] == 0) & (jobs["job"] >= skip)]
    low = took[jobs["tenant"] == 1]
    kernels = episode.timeline.kernels.dict()
    durations = np.array([kernel.duration_us for kernel in episode.problem.kernels])
    filled_us = durations[kernels["identity"][kernels["tenant"] == 1].astype(int)].sum()
    return Outcome(_mean(high), _mean(low), float(filled_us) / episode.end_us)


def _mean(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
    return float(values.mean()) if len(values) else math.nan

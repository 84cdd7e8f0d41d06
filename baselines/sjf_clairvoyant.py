"""One kernel at a time, from the job with the least work left as it will turn out: a reference.

The rule of :mod:`.sjf` without its error: profiles say how long kernels take on average over the recorded iterations,
this scheduler is told which iteration a job repeats and how long each kernel of it takes alone. What it costs less than
``sjf`` is what better predictions could be worth to it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.in_flight import FewInFlight
from gpusched_env.baselines.iterations import Iterations
from gpusched_env.baselines.pending import ID, JOB, JOB_LEFT, TENANT, launchable_rows
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


class ShortestJobFirstClairvoyant(FewInFlight):
    """Reference: one kernel at a time, or a few, from the job with the least true device time left."""

    reads: Reads = ("requests", "completions", "truth")
    clairvoyant = True

    def see(self, truth: Problem, seed: int) -> None:
        """Take the true durations, and the random numbers that choose each job's iteration."""
        self._left_us = [
            [_left_us([op.device_us for op in ops if op.identity >= 0]) for ops in program.variants]
            for program in truth.programs
        ]
        """True time of each kernel and all later ones of its job, by tenant, iteration and kernel."""
        self._iterations = Iterations(truth, seed)
        self._engines = [program.engine is not None for program in truth.programs]

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No job has arrived."""
        self._launched = [(0, 0)] * len(knowledge.tenants)
        """The job in service of each tenant, and how many of its kernels were launched."""

    def decide(self, view: View) -> Command:
        """Launch the next kernel of the shortest job if there is room for it in flight; ties: the older kernel."""
        if self.is_full(view):
            return WAIT
        table = view.pending.array
        found = min(
            ((self._left(table[r]), float(table[r, ID]), r) for r in launchable_rows(view)),
            default=None,
        )
        if found is None:
            return WAIT
        row = table[found[-1]]
        tenant, job = int(row[TENANT]), int(row[JOB])
        self._launched[tenant] = job, self._kernels(tenant, job) + 1
        return Launch(int(row[ID]))

    def _left(self, row: NDArray[np.float64]) -> float:
        """True device time of what is left of a job whose next kernel is pending; of an engine's step the profiled one,
        since its steps come of who is there."""
        tenant, job = int(row[TENANT]), int(row[JOB])
        if self._engines[tenant]:
            return float(row[JOB_LEFT])
        return self._left_us[tenant][self._iterations.of(tenant, job)][self._kernels(tenant, job)]

    def _kernels(self, tenant: int, job: int) -> int:
        last, kernels = self._launched[tenant]
        return kernels if last == job else 0


def _left_us(durations_us: list[float]) -> list[float]:
    """Time of each kernel and all later ones."""
    found: list[float] = np.cumsum(durations_us[::-1])[::-1].tolist()
    return found

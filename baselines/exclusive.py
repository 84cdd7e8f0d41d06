"""One job at a time over all tenants: the whole GPU until the job is complete.

The "sequential" baseline of the co-scheduling literature (FIKIT, arXiv 2311.10359, *exclusive* mode;
Gilman and Walls, Performance 2021, baseline turnaround): no interference, no sharing.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.pending import ID, JOB, TENANT, launchable_rows
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import TenantColumn, View

PRIORITY = int(TenantColumn.PRIORITY)
WAITING = int(TenantColumn.JOBS_WAITING)
DONE = int(TenantColumn.JOBS_DONE)
OLDEST_ARRIVED = int(TenantColumn.OLDEST_ARRIVED_US)


class Exclusive:
    """A tenant holds the GPU until its job is complete; the most urgent, then oldest, job is next."""

    reads: Reads = ("priorities", "requests")

    def __init__(self) -> None:
        self._holder: int | None = None
        self._job = 0

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """The GPU is free."""
        self._holder = None
        self._batches = [tenant.max_batch > 1 for tenant in knowledge.tenants]

    def decide(self, view: View) -> Command:
        """Launch the holder's next kernel, choosing a new holder if its job is done."""
        tenants = view.tenants.array.tolist()
        if self._holder is None or tenants[self._holder][DONE] > self._job:
            self._holder = self._next_holder(tenants)
            if self._holder is None:
                return WAIT
            # Jobs of a tenant are numbered from 0 and complete in order, unless it serves several together.
            self._job = int(tenants[self._holder][DONE])
        pending = view.pending.array
        for row in launchable_rows(view):
            mine = pending[row, TENANT] == self._holder
            if mine and (pending[row, JOB] == self._job or self._batches[self._holder]):
                return Launch(int(pending[row, ID]))
        return WAIT

    @staticmethod
    def _next_holder(tenants: list[list[float]]) -> int | None:
        busy = [tenant for tenant, row in enumerate(tenants) if row[WAITING] > 0]
        return min(busy, key=lambda tenant: (tenants[tenant][PRIORITY], tenants[tenant][OLDEST_ARRIVED]), default=None)

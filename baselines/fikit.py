"""FIKIT: kernels of less urgent tenants fill the gaps between an urgent tenant's kernels.

W. Wu, *FIKIT: Priority-Based Real-time GPU Multi-tasking Scheduling with Kernel Identification* (arXiv
2311.10359v5, 2024). There is no code. Of its constants two are known, ten queues and an overhead below 5 %; all others
are assumptions here, and parameters.

================================================= ==================================================================
As published                                      Here
================================================= ==================================================================
Launches are intercepted and identified by kernel The same. ``interception_us``, off by default: what all schedulers
name, grid and block                              that hold launches back are charged is the scenario's matter
A measurement stage gives each identity its mean  What is known beforehand; ``measure_profiles`` of the
duration and the mean gap that follows it         reproduction runs such a stage. One that was never measured lasts
                                                  as long as its tenant's others do on average, and leaves no gap
The most urgent tenant with work holds the GPU:   The same; ``queues``, 10, of which the last has all less urgent
its kernels go at once. Ten priority queues       tenants
When it leaves a gap, *BestPrioFit* takes, from   The same. Gaps begin with the predicted end of the holder's kernel
the highest waiting priority, the longest kernel  (``ahead``), and there is one before the first kernel of a job, as
that fits into the predicted rest, and again,     long as for the tenant's earlier jobs on average (``first_gap``).
until the holder's next kernel arrives            ``in_flight``: fillers launched and unfinished at one time
Gaps below a threshold are left idle              ``epsilon_us``, 3: of the size of a launch latency
Running kernels are never preempted               The same
A service's host is blocked in the launch call    The host goes on, and its kernels wait in order
until the kernel is released
Services are processes that the GPU switches      ``contexts``: as the scenario says by default
between
================================================= ==================================================================
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gpusched_env.baselines.evict import SETTLED_US
from gpusched_env.baselines.pending import launchable_rows
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.scenario import Contexts
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import JobColumn, PendingColumn, RunningColumn, TenantColumn, View

J, P, R, T = JobColumn, PendingColumn, RunningColumn, TenantColumn


class Fikit:
    """Gap filling: urgent kernels at once, in their predicted gaps the longest less urgent kernel that fits."""

    reads: Reads = ("priorities", "requests", "profiles", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        "epsilon_us": Range(0.5, 100.0, log=True),
        "in_flight": Range(1, 8),
        "ahead": Choice((True, False)),
        "first_gap": Choice((True, False)),
    }

    def __init__(
        self,
        epsilon_us: float = 3.0,
        queues: int = 10,
        in_flight: int = 2,
        interception_us: float = 0.0,
        contexts: Contexts | None = None,
        ahead: bool = True,
        first_gap: bool = True,
    ) -> None:
        """All but ``queues`` are assumptions, to be swept.

        Args:
            epsilon_us: a rest of a gap up to this long is left idle. Between processes it should be longer than a
                context switch there and back.
            queues: priority queues (ten in the paper); the least urgent tenants share the last one.
            in_flight: kernels of tenants that can be outranked, launched and unfinished at one time. They cannot
                be recalled, so this bounds how long they delay an urgent kernel; with 1 the GPU idles for a launch
                latency between two of them.
            interception_us: host time of a decision on top of the scenario's ``decision_us``, which is how all
                schedulers that hold launches back are charged alike: a launch reaches the scheduler's process and its
                release comes back.
            contexts: ``per-tenant``, services are processes that the GPU switches between; ``shared``, they run
                under MPS; ``None``, as the scenario says.
            ahead: fill from the predicted end of the holder's kernel on, a launch latency before it; off, once the end
                is seen.
            first_gap: fill before the first kernel of a job too; off, gaps are only those that follow a kernel.

        Raises:
            InputError: a value is out of range.
        """
        if not (epsilon_us >= 0.0 and interception_us >= 0.0):
            raise InputError(f"fikit: epsilon_us {epsilon_us}, interception_us {interception_us}; must not be negative")
        if queues < 1 or in_flight < 1:
            raise InputError(f"fikit: queues {queues}, in_flight {in_flight}; must be at least 1")
        if contexts not in (None, "shared", "per-tenant"):
            raise InputError(f"fikit: contexts is {contexts!r}; shared, per-tenant or None")
        self.set_up = SetUp(contexts=contexts, interception_us=interception_us)
        self._epsilon_us, self._queues, self._in_flight = epsilon_us, queues, in_flight
        self._ahead, self._first_gap = ahead, first_gap

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Take the profiles of the measurement stage; nobody holds the GPU."""
        self._duration_us = _estimates(knowledge).tolist()
        self._gap_us: list[float] = knowledge.gap_us.tolist()
        urgencies = [tenant.priority for tenant in knowledge.tenants]
        ranks = {urgency: rank for rank, urgency in enumerate(sorted(set(urgencies)))}
        self._queue = [min(ranks[urgency], self._queues - 1) for urgency in urgencies]
        """Queue of each tenant, by its priority."""
        self._batches = [tenant.max_batch > 1 for tenant in knowledge.tenants]
        self._holder: int | None = None
        self._held_job = 0
        self._last = [(-1, -1)] * len(urgencies)
        """Job and identity of the kernel of each tenant that was launched last."""
        self._leads = [(0, 0.0)] * len(urgencies)
        """Jobs of each tenant whose first kernel was seen; their mean time from the start of the host to its issue."""
        self._latency_us = knowledge.gpu.timing.launch_latency_us

    def decide(self, view: View) -> Command:
        """The holder's next kernel, or one that fits into its gap."""
        tenants = view.tenants.array.tolist()
        holder = self._holder = self._choose_holder(tenants)
        if holder is None:
            return WAIT
        heads = {int(view.pending.array[row, P.TENANT]): row for row in launchable_rows(view)}
        if holder in heads:
            outranked = self._queue[holder] > min(self._queue)
            full = outranked and tenants[holder][T.KERNELS_LAUNCHED] >= self._in_flight
            return WAIT if full else self._launch(view, heads[holder])
        ends_us = float(tenants[holder][T.LAST_END_US])
        if tenants[holder][T.KERNELS_LAUNCHED]:
            ends_us = view.time_us + float(tenants[holder][T.LAUNCHED_LEFT_US])
            if not self._ahead:
                return WAIT
            early_us = ends_us - self._latency_us - view.time_us
            if early_us > SETTLED_US:
                return Wait(view.time_us + early_us)
        row = self._best_prio_fit(view, heads, self._rest_of_gap_us(view, holder, ends_us))
        return WAIT if row is None else self._launch(view, row)

    def _choose_holder(self, tenants: list[list[float]]) -> int | None:
        """The tenant of the most urgent queue that has a job; in a queue the present holder, then the oldest job."""
        busy = [tenant for tenant, row in enumerate(tenants) if row[T.JOBS_WAITING] > 0]

        def order(tenant: int) -> tuple[int, bool, float]:
            row = tenants[tenant]
            goes_on = tenant == self._holder and row[T.JOBS_DONE] == self._held_job
            return self._queue[tenant], not goes_on, row[T.OLDEST_ARRIVED_US]

        holder = min(busy, key=order, default=None)
        if holder is not None:
            # Jobs of a tenant are numbered from 0 and complete in order, unless it serves several together.
            self._held_job = int(tenants[holder][T.JOBS_DONE])
        return holder

    def _rest_of_gap_us(self, view: View, holder: int, ends_us: float) -> float:
        """Predicted idle time before the holder's next kernel, less what is in flight; NaN if it is not known.

        Args:
            view: the present.
            holder: whose gap.
            ends_us: when its last kernel ended, or will.
        """
        job, identity = self._last[holder]
        if job == self._held_job or (job >= 0 and self._batches[holder]):
            rest_us = ends_us + self._gap_us[identity] - view.time_us
        else:
            rest_us = self._first_issue_us(view, holder) - view.time_us
        others = view.running.array[view.running.array[:, R.TENANT] != holder]
        if len(others) >= self._in_flight:
            return 0.0
        for kernel in others:
            rest_us -= max(0.0, self._duration_us[int(kernel[R.IDENTITY])] - float(kernel[R.ELAPSED_US]))
        return rest_us

    def _first_issue_us(self, view: View, holder: int) -> float:
        """When the first kernel of the holder's job is expected; NaN if no job of it was seen before."""
        seen, mean_us = self._leads[holder]
        if not (self._first_gap and seen):
            return math.nan
        # A host that has not taken up the job will not do so before now.
        return min(self._started_us(view, holder, self._held_job), view.time_us) + mean_us

    @staticmethod
    def _started_us(view: View, tenant: int, job: int) -> float:
        """When the host of a tenant took up an unfinished job; ``inf`` before."""
        jobs = view.jobs.array
        (row,) = jobs[(jobs[:, J.TENANT] == tenant) & (jobs[:, J.JOB] == job)]
        return float(row[J.STARTED_US])

    def _best_prio_fit(self, view: View, heads: dict[int, int], rest_us: float) -> int | None:
        """Row of the longest kernel, of the most urgent queue that has a fitting one; the oldest of equal ones."""
        if not rest_us > self._epsilon_us:
            return None
        fitting = []
        for tenant, row in heads.items():
            kernel = view.pending.array[row]
            duration_us = self._duration_us[int(kernel[P.IDENTITY])]
            if duration_us <= rest_us:
                fitting.append((self._queue[tenant], -duration_us, float(kernel[P.ID]), row))
        return min(fitting)[-1] if fitting else None

    def _launch(self, view: View, row: int) -> Launch:
        kernel = view.pending.array[row]
        tenant, job = int(kernel[P.TENANT]), int(kernel[P.JOB])
        if job != self._last[tenant][0]:
            lead_us = float(kernel[P.ISSUED_US]) - self._started_us(view, tenant, job)
            seen, mean_us = self._leads[tenant]
            self._leads[tenant] = seen + 1, mean_us + (lead_us - mean_us) / (seen + 1)
        self._last[tenant] = job, int(kernel[P.IDENTITY])
        return Launch(int(kernel[P.ID]))


def _estimates(knowledge: Knowledge) -> NDArray[np.float64]:
    """Durations by identity, with the mean of the tenant's measured kernels for those that are missing."""
    told_us = knowledge.duration_us
    durations_us = told_us.copy()
    for tenant in knowledge.tenants:
        own = np.array(tenant.kernels, np.int64)
        unknown = np.isnan(told_us[own])
        if not unknown.all():
            durations_us[own[unknown]] = told_us[own[~unknown]].mean()
    return durations_us

"""Moore and Lawler's rule on streams: serve the jobs that can all be in time and are worth most, by their deadlines.

On one machine the jobs that are to be in time go in order of deadlines, and which of them these are is a matter of
dynamic programming (J. M. Moore, Management Science 1968; E. L. Lawler, J. M. Moore, Management Science 1969:
:mod:`gpusched_env.planning.plans`). Here it is solved anew whenever a job has come or gone, for all jobs in the
system:

======================================== ===============================================================================
As published                             Here
======================================== ===============================================================================
Jobs are all there at the beginning      Those that are there now. Of what is to come nothing is known; that it will
                                         need the GPU too, ``price`` says: a job that is worth less than the time that
                                         it takes is not kept
Processing times                         Profiled device time left, times ``scale``: streams share the GPU, so that it
                                         does more than one job's work at a time. No job is kept that would be late
                                         alone on the GPU
Late jobs go last, in any order          Those before a job of their tenant that is kept, and hopeless ones, are
                                         rejected where the scenario offers that; others wait for room. Where it does
                                         not, late ones before a job that is kept are done with it, and their time is
                                         counted with that job's; others go before tenants without a deadline
The others go by deadline, one by one    Stream priorities by deadline; all jobs but the first are held to ``others``
                                         kernels
======================================== ===============================================================================

A tenant answers its jobs in order of arrival, which is the order of their deadlines, so that no plan asks for more than
streams can do.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.pending import ARRIVED, JOB, KERNEL_DEADLINE, TENANT
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.baselines.ranked_streams import (
    DEADLINE,
    JOB_NUMBER,
    JOB_TENANT,
    REJECTABLE,
    UNLIMITED,
    Rank,
    RankedStreams,
    Row,
)
from gpusched_env.errors import InputError
from gpusched_env.planning.in_time import add_late_before
from gpusched_env.planning.plans import ON_TIME_SCRATCH, worth_most
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command, Reject
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View

JobId = tuple[int, int]
"""A job by the row of its tenant and its number."""


def job_id(job: Row) -> JobId:
    """Tenant and number of a job, from its row of ``view.jobs``."""
    return int(job[JOB_TENANT]), int(job[JOB_NUMBER])


class Moore(RankedStreams):
    """Moore and Lawler: of all jobs those that can be in time together and earn most, by deadline; others last."""

    reads: Reads = ("weights", "objectives", "requests", "profiles", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        "depth": Range(1, 64, log=True),
        "others": Range(1, UNLIMITED, log=True),
        "scale": Range(0.2, 1.5),
        "price": Range(0.0, 2.0),
        "reject": Choice((True, False)),
    }

    def __init__(
        self, depth: int = 16, others: int = 16, scale: float = 1.0, price: float = 0.0, reject: bool = True
    ) -> None:
        """``depth``, ``others``: see :class:`~gpusched_env.baselines.ranked_streams.RankedStreams`.

        ``scale``: what a job takes of the machine, in multiples of its device time alone (> 0). ``price``: what a
        microsecond of the GPU could earn otherwise, in multiples of what it earns on average over the tenants with an
        objective, their weights over their times alone (>= 0). ``reject``: jobs that
        are in the way of others, or cannot be in time, are rejected where the scenario offers that.

        Raises:
            InputError: a value is out of range.
        """
        super().__init__("one", depth, others)
        if not (0.0 < scale < math.inf and 0.0 <= price < math.inf) or not isinstance(reject, bool):
            raise InputError(
                f"moore: scale {scale}, price {price}, reject {reject!r}; must be above 0, at least 0, true or false"
            )
        self._scale, self._price, self._reject = scale, price, reject
        self._scratch = np.empty(ON_TIME_SCRATCH)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No job is there."""
        super().reset(knowledge, rng)
        self.waits_for = None
        self._rejects = self._reject and "reject" in knowledge.commands
        self._there: list[JobId] = []
        """Jobs with a deadline of which the plan was made."""
        earns = [tenant.weight / tenant.alone_us for tenant in knowledge.tenants if tenant.slo_us < math.inf]
        self._price_a_us = self._price * statistics.fmean(earns) if earns else 0.0
        self._kept: set[JobId] = set()
        self._first_kept_us: dict[int, float] = {}
        """Deadline of each tenant's first job that is kept, where nothing can be rejected."""

    def decide(self, view: View) -> Command:
        """Plan if other jobs are there; reject what is in the way; launch as the ranks say."""
        jobs = [job for job in view.jobs.rows if job[DEADLINE] < math.inf]
        there = [job_id(job) for job in jobs]
        if there != self._there:
            self._there = there
            self._kept = self.kept(view, jobs)
            if not self._rejects:
                deadlines_us = {job_id(job): job[DEADLINE] for job in reversed(jobs)}
                kept = {number: us for number, us in deadlines_us.items() if number in self._kept}
                self._first_kept_us = {tenant: us for (tenant, _), us in kept.items()}
        if self._rejects:
            last = {tenant: number for tenant, number in there if (tenant, number) in self._kept}
            for number, job in zip(there, jobs, strict=True):
                in_the_way = number not in self._kept and number[1] < last.get(number[0], -1)
                if job[REJECTABLE] and (in_the_way or self.hopeless(view, job)):
                    return Reject(*number)
        return super().decide(view)

    def kept(self, view: View, jobs: Sequence[Row]) -> set[JobId]:
        """The jobs of the plan; ``jobs``: rows of ``view.jobs`` with a deadline."""
        left_us = np.array([self.left_us(view, job) for job in jobs])
        deadline_us = np.array([job[DEADLINE] for job in jobs]) - view.time_us
        value = np.array([self._knowledge.tenants[int(job[JOB_TENANT])].weight for job in jobs])
        needs_us = left_us.copy()
        if jobs and not self._rejects:
            add_late_before(np.array(jobs), deadline_us, needs_us)
        plan = worth_most(
            deadline_us, self._scale * needs_us, needs_us, value - self._price_a_us * left_us, self._scratch
        )
        return {job_id(job) for k, job in enumerate(jobs) if plan >> k & 1}

    def rank(self, view: View, kernel: Row, left_us: float) -> Rank:
        """Jobs that are kept, those without a deadline, and the others, each in order of deadline or arrival; without
        rejections late jobs before a kept one with that, and the others before those without a deadline."""
        number = self.number(view, kernel, left_us)
        # What cannot be rejected holds up all that will come.
        best_effort, unkept = (1, 2) if self._rejects else (2, 1)
        if kernel[KERNEL_DEADLINE] == math.inf:
            return best_effort, number
        tenant = int(kernel[TENANT])
        if (tenant, int(kernel[JOB])) in self._kept:
            return 0, number
        return (0, self._first_kept_us[tenant]) if tenant in self._first_kept_us else (unkept, number)

    def number(self, view: View, kernel: Row, left_us: float) -> float:
        """Deadline, or without one arrival, in microseconds."""
        deadline_us = kernel[KERNEL_DEADLINE]
        return deadline_us if deadline_us < math.inf else kernel[ARRIVED]

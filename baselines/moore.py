"""Moore and Lawler's rule on streams: serve the jobs that can all be in time and are worth most, by their deadlines.

On one machine the jobs that are to be in time go in order of deadlines, and which of them these are is a matter of
dynamic programming: J. M. Moore, *An n Job, One Machine Sequencing Algorithm for Minimizing the Number of Late Jobs*
(Management Science 1968); E. L. Lawler, J. M. Moore, *A Functional Equation and Its Application to Resource Allocation
and Sequencing Problems* (Management Science 1969) for jobs of different weights. Here it is solved anew whenever a job
has come or gone, for all jobs in the system:

======================================== ===============================================================================
As published                             Here
======================================== ===============================================================================
Jobs are all there at the beginning      Those that are there now; of what is to come nothing is known
Processing times                         Profiled device time left, times ``scale``: streams share the GPU, so that it
                                         does more than one job's work at a time. No job is kept that would be late
                                         alone on the GPU
Late jobs go last, in any order          Those before a job of their tenant that is kept, and hopeless ones, are
                                         rejected where the scenario offers that; others wait for room
The others go by deadline, one by one    Stream priorities by deadline; all jobs but the first are held to ``others``
                                         kernels
======================================== ===============================================================================

A tenant answers its jobs in order of arrival, which is the order of their deadlines, so that no plan asks for more than
streams can do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from gpusched_env.baselines.pending import JOB, TENANT
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.baselines.ranked_streams import UNLIMITED, Rank, RankedStreams, Row
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command, Reject
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import JobColumn, PendingColumn, View

JobId = tuple[int, int]
"""Row of the tenant, number of the job."""
FRONT = 256
"""Partial plans that are kept, those that are done first: with fewer jobs than eight all of them."""


class Work(NamedTuple):
    """A job that could be in time."""

    id: JobId
    deadline_us: float
    """From now on."""
    machine_us: float
    """What it takes of the machine."""
    alone_us: float
    """What it takes at least."""
    value: float


def worth_most(works: Sequence[Work]) -> set[JobId]:
    """The jobs that can all be in time on one machine and are worth most; of equal sets, the one that is done first.

    Lawler and Moore's dynamic programme over jobs in order of deadlines: of the partial plans that are done at a time
    only those count that are worth more than every plan that is done before. At most :data:`FRONT` go on.
    """
    front: list[tuple[float, float, tuple[JobId, ...]]] = [(0.0, 0.0, ())]
    for work in sorted(works, key=lambda work: (work.deadline_us, work.id)):
        longer = [
            (done_us + work.machine_us, value + work.value, (*kept, work.id))
            for done_us, value, kept in front
            if done_us + work.machine_us <= work.deadline_us and work.alone_us <= work.deadline_us
        ]
        merged = sorted([*front, *longer], key=lambda plan: (plan[0], -plan[1]))
        front, best = [], -math.inf
        for plan in merged:
            if plan[1] > best:
                front.append(plan)
                best = plan[1]
        front = front[:FRONT]
    return set(front[-1][2])


class Moore(RankedStreams):
    """Moore and Lawler: of all jobs those that can be in time together and earn most, by deadline; others last."""

    reads: Reads = ("weights", "objectives", "requests", "profiles", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        "depth": Range(1, 64, log=True),
        "others": Range(1, UNLIMITED, log=True),
        "scale": Range(0.2, 1.5),
        "reject": Choice((True, False)),
    }

    def __init__(self, depth: int = 16, others: int = 16, scale: float = 1.0, reject: bool = True) -> None:
        """``depth``, ``others``: see :class:`~gpusched_env.baselines.ranked_streams.RankedStreams`.

        ``scale``: what a job takes of the machine, in multiples of its device time alone (> 0). ``reject``: jobs that
        are in the way of others, or cannot be in time, are rejected where the scenario offers that.

        Raises:
            InputError: a value is out of range.
        """
        super().__init__("one", depth, others)
        if not 0.0 < scale < math.inf or not isinstance(reject, bool):
            raise InputError(f"moore: scale {scale}, reject {reject!r}; must be above 0 and finite, true or false")
        self._scale, self._reject = scale, reject

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No job is there."""
        super().reset(knowledge, rng)
        self._rejects = self._reject and "reject" in knowledge.commands
        self._there: list[JobId] = []
        """Jobs with a deadline of which the plan was made."""
        self._kept: set[JobId] = set()

    def decide(self, view: View) -> Command:
        """Plan if other jobs are there; reject what is in the way; launch as the ranks say."""
        jobs = view.jobs.array
        jobs = jobs[jobs[:, JobColumn.DEADLINE_US] < math.inf]
        there = [(int(job[JobColumn.TENANT]), int(job[JobColumn.JOB])) for job in jobs]
        if there != self._there:
            self._there = there
            works = []
            for number, job in zip(there, jobs, strict=True):
                left_us = self.left_us(view, job)
                deadline_us = float(job[JobColumn.DEADLINE_US]) - view.time_us
                value = self._knowledge.tenants[number[0]].weight
                works.append(Work(number, deadline_us, self._scale * left_us, left_us, value))
            self._kept = worth_most(works)
        if self._rejects:
            last = {tenant: number for tenant, number in there if (tenant, number) in self._kept}
            for number, job in zip(there, jobs, strict=True):
                in_the_way = number not in self._kept and number[1] < last.get(number[0], -1)
                if job[JobColumn.REJECTABLE] and (in_the_way or self.hopeless(view, job)):
                    return Reject(*number)
        return super().decide(view)

    def rank(self, view: View, kernel: Row, left_us: float) -> Rank:
        """Jobs that are kept, those without a deadline, and the others, each in order of deadline or arrival."""
        number = self.number(view, kernel, left_us)
        if kernel[PendingColumn.DEADLINE_US] == math.inf:
            return 1, number
        return 0 if (int(kernel[TENANT]), int(kernel[JOB])) in self._kept else 2, number

    def number(self, view: View, kernel: Row, left_us: float) -> float:
        """Deadline, or without one arrival, in microseconds."""
        deadline_us = float(kernel[PendingColumn.DEADLINE_US])
        return deadline_us if deadline_us < math.inf else float(kernel[PendingColumn.JOB_ARRIVED_US])

"""Deadline triage on streams: who can still be in time goes first, who cannot waits or is given up.

A rule of thumb of overloaded real-time systems, where earliest deadline first spends the machine on jobs that will be
late anyway (C. D. Locke, *Best-Effort Decision Making for Real-Time Scheduling*, thesis, CMU 1986, has jobs ordered by
value for the time that they take, and sheds those that are lost). Jobs stand in this order:

====== ========================================= =====================================================
Class  Jobs                                      Order
====== ========================================= =====================================================
First  those that can still meet their objective ``laxity + left * (time left) - worth * ln(value)``
Second those of tenants without an objective     in order of arrival
Third  those that cannot                         as the first
====== ========================================= =====================================================

Laxity is the time to the deadline less ``margin`` times the profiled device time left, so that ``left = 0`` is least
laxity first, ``left = margin`` earliest deadline first, and a great ``left`` is shortest remaining time first. The
value is the tenant's weight over its time alone: what a microsecond of the GPU earns.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, get_args

import numpy as np

from gpusched_env.baselines.pending import ARRIVED, KERNEL_DEADLINE, TENANT
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.baselines.ranked_streams import (
    JOB_NUMBER,
    JOB_TENANT,
    REJECTABLE,
    UNLIMITED,
    Rank,
    RankedStreams,
    Row,
)
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command, Reject
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View

LateJobs = Literal["served", "last", "rejected"]


class Triage(RankedStreams):
    """Deadline triage: laxity, time left and value in one order; jobs that cannot be in time are last, or rejected."""

    reads: Reads = ("weights", "objectives", "requests", "profiles", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        "depth": Range(1, 64, log=True),
        "others": Range(1, UNLIMITED, log=True),
        "left": Range(0.0, 4.0),
        "worth": Range(0.0, 4000.0),
        "margin": Range(0.5, 3.0),
        "hopeless": Choice(get_args(LateJobs)),
    }

    def __init__(
        self,
        depth: int = 16,
        others: int = 4,
        left: float = 0.5,
        worth: float = 0.0,
        margin: float = 1.0,
        hopeless: LateJobs = "rejected",
    ) -> None:
        """``depth``, ``others``: see :class:`~gpusched_env.baselines.ranked_streams.RankedStreams`.

        ``left``: weight of the device time left (>= 0). ``worth``: microseconds by which a job may wait longer than one
        of e times its value (>= 0). ``margin``: how much longer than alone a job is expected to take (> 0).
        ``hopeless``: jobs that cannot be in time any more are ``served`` like all others, ``last``, or ``rejected``
        where the scenario offers that (otherwise last).

        Raises:
            InputError: no such choice, or a number is out of range.
        """
        super().__init__("one", depth, others)
        if hopeless not in get_args(LateJobs):
            raise InputError(f"triage: hopeless {hopeless!r}; must be {', '.join(get_args(LateJobs))}")
        if not (left >= 0.0 and worth >= 0.0 and margin > 0.0):
            raise InputError(f"triage: left {left}, worth {worth}, margin {margin}; must be at least 0, 0, above 0")
        self._left, self._worth, self._margin, self._hopeless = left, worth, margin, hopeless

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No job has a rank."""
        super().reset(knowledge, rng)
        self._rejects = self._hopeless == "rejected" and "reject" in knowledge.commands
        if self._rejects:
            self.waits_for = None
        self._earlier_us = [
            self._worth * math.log(max(tenant.weight, 1e-9) / tenant.alone_us) for tenant in knowledge.tenants
        ]
        """What a tenant's value takes off its jobs' numbers, by tenant."""

    def decide(self, view: View) -> Command:
        """Reject the first job that cannot be in time, if it may be; else as the ranks say."""
        if self._rejects:
            for job in view.jobs.rows:
                if job[REJECTABLE] and self.hopeless(view, job, self._margin):
                    return Reject(int(job[JOB_TENANT]), int(job[JOB_NUMBER]))
        return super().decide(view)

    def rank(self, view: View, kernel: Row, left_us: float) -> Rank:
        """Class and number of a job."""
        laxity_us = kernel[KERNEL_DEADLINE] - view.time_us - self._margin * left_us
        if laxity_us == math.inf:
            return 1, kernel[ARRIVED]
        hopeless = self._hopeless != "served" and laxity_us < 0.0
        return 2 if hopeless else 0, laxity_us + self._left * left_us - self._earlier_us[int(kernel[TENANT])]

    def number(self, view: View, kernel: Row, left_us: float) -> float:
        """The number of a job, the second part of :meth:`rank`."""
        return self.rank(view, kernel, left_us)[1]

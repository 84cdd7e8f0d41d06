"""Earliest deadline first on streams: the job whose objective is missed first goes first.

C. L. Liu, J. W. Layland, *Scheduling Algorithms for Multiprogramming in a Hard-Real-Time Environment* (Journal of the
ACM 1973), the deadline driven algorithm: on one preemptive machine it meets all deadlines if any order does. A job's
deadline is its arrival and the tenant's objective for the turnaround.
"""

from __future__ import annotations

import math
from typing import ClassVar

from gpusched_env.baselines.pending import ARRIVED, KERNEL_DEADLINE, TENANT
from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.baselines.ranked_streams import UNLIMITED, Classes, RankedStreams, Row
from gpusched_env.errors import InputError
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


class EarliestDeadline(RankedStreams):
    """EDF: stream priorities by the deadline of a job, within a class of tenants."""

    reads: Reads = ("priorities", "objectives", "requests", "profiles", "completions")
    ranges: ClassVar[Ranges] = {**RankedStreams.ranges, "slack": Choice((1.5, 2.0, 3.0, 5.0, 10.0, math.inf))}

    def __init__(
        self, classes: Classes = "priority", depth: int = 16, others: int = UNLIMITED, slack: float = math.inf
    ) -> None:
        """``classes``, ``depth``, ``others``: see :class:`~gpusched_env.baselines.ranked_streams.RankedStreams`.

        ``slack``: the deadline of tenants without an objective, in multiples of their time alone (above 0); ``inf``:
        after all others.

        Raises:
            InputError: no such ``classes``, or a number is out of range.
        """
        super().__init__(classes, depth, others)
        if not slack > 0.0:
            raise InputError(f"slack is {slack}, must be above 0 (in multiples of a tenant's time alone)")
        self._slack = slack

    def number(self, view: View, kernel: Row, left_us: float) -> float:
        """Deadline of the job in microseconds."""
        deadline_us = kernel[KERNEL_DEADLINE]
        if deadline_us < math.inf:
            return deadline_us
        alone_us = self._knowledge.tenants[int(kernel[TENANT])].alone_us
        return kernel[ARRIVED] + self._slack * alone_us

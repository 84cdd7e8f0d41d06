"""Smith's rule on streams: the job with the most weight for its device time goes first.

W. E. Smith, *Various Optimizers for Single-Stage Production* (Naval Research Logistics Quarterly 1956): on one machine,
jobs in the order of weight over processing time have the least weighted sum of completion times (WSPT). Here the
processing time is the profiled device time, and the order is that of stream priorities: kernels that leave room share
the GPU, and running blocks are not disturbed.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, get_args

import numpy as np

from gpusched_env.baselines.pending import JOB, TENANT
from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.baselines.ranked_streams import UNLIMITED, Classes, RankedStreams, Row
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View

Time = Literal["job", "remaining"]
Weight = Literal["turnaround", "slowdown"]


class WeightedShortest(RankedStreams):
    """Smith's rule: stream priorities by weight over profiled device time of a job, within a class of tenants."""

    reads: Reads = ("priorities", "weights", "requests", "profiles", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        **RankedStreams.ranges,
        "time": Choice(get_args(Time)),
        "weight": Choice(get_args(Weight)),
    }

    def __init__(
        self,
        classes: Classes = "priority",
        depth: int = 16,
        others: int = UNLIMITED,
        time: Time = "job",
        weight: Weight = "turnaround",
    ) -> None:
        """``classes``, ``depth``, ``others``: see :class:`~gpusched_env.baselines.ranked_streams.RankedStreams`.

        ``time``: of the whole ``job``, or ``remaining``. ``weight``: the tenant's weight is of a job's
        ``turnaround``; or of its ``slowdown``, that is, over the tenant's time alone.

        Raises:
            InputError: no such choice, or a number is out of range.
        """
        super().__init__(classes, depth, others)
        if time not in get_args(Time) or weight not in get_args(Weight):
            raise InputError(f"wspt: time {time!r}, weight {weight!r}; job or remaining, turnaround or slowdown")
        self._time, self._weight = time, weight

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No job has a rank."""
        super().reset(knowledge, rng)
        self._costs = [
            tenant.weight / (tenant.alone_us if self._weight == "slowdown" else 1.0) for tenant in knowledge.tenants
        ]
        """Cost of a microsecond, by tenant."""
        self._jobs: dict[int, tuple[int, float]] = {}
        """Job of each tenant and the device time of all of it."""

    def number(self, view: View, kernel: Row, left_us: float) -> float:
        """Profiled device time over weight, by which jobs are ordered."""
        tenant, job = int(kernel[TENANT]), int(kernel[JOB])
        if self._time == "job":
            if tenant not in self._jobs or self._jobs[tenant][0] != job:
                self._jobs[tenant] = job, left_us
            left_us = self._jobs[tenant][1]
        return left_us / self._costs[tenant] if self._costs[tenant] > 0.0 else math.inf

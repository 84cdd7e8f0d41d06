"""Orion: a best-effort kernel runs beside a request only if it needs what the request's kernels do not.

F. Strati, X. Ma, A. Klimovic, *Orion: Interference-aware, Fine-grained GPU Sharing for ML Applications*
(EuroSys 2024), scheduling policy of section 5: kernels of the high-priority client go at once, on a stream of
high priority. A best-effort kernel goes if no request is in service; or if it needs fewer SMs than a
threshold and is bound by another resource (compute or memory) than the high-priority kernel, where a kernel
bound by neither may join either. Best-effort work in flight is throttled: once the durations launched exceed
a share of the request's latency, nothing follows until all of it has finished.

The authors tune the SM threshold at run time when the high-priority client is a training job; here it is fixed.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from gpusched_env.baselines.two_classes import TwoClasses
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, View

P, R = PendingColumn, RunningColumn
Resource = Literal["compute", "memory", "neither"]


def bound_by(issue: float, dram: float, share: float) -> Resource:
    """What bounds a kernel that uses these shares of the issue slots and of the DRAM bandwidth alone."""
    if max(issue, dram) < share:
        return "neither"
    return "compute" if issue >= dram else "memory"


class Orion:
    """Profile-aware co-scheduling: best-effort kernels only beside kernels bound by another resource."""

    def __init__(self, sm_threshold: float = 1.0, duration_threshold: float = 0.025, bound: float = 0.6) -> None:
        """``sm_threshold``: a best-effort kernel beside a request must need less than this share of the SMs (the
        authors' value for inference is all of them). ``duration_threshold``: best-effort work in flight, as a
        share of the shortest urgent tenant's latency alone (2.5 % in the paper). ``bound``: a kernel that uses at
        least this share of a resource is bound by it (the paper's profiler rule, 60 %).

        Raises:
            InputError: a value is out of range.
        """
        if not (0.0 < sm_threshold <= 1.0 and duration_threshold > 0.0 and 0.0 < bound <= 1.0):
            given = f"sm_threshold {sm_threshold}, duration_threshold {duration_threshold}, bound {bound}"
            raise InputError(f"orion: got {given}; shares are above 0 and at most 1, the duration above 0")
        self._sm_share, self._duration_share, self._bound = sm_threshold, duration_threshold, bound

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing is in flight."""
        self._classes = TwoClasses(knowledge)
        alone = [t.alone_us for t, urgent in zip(knowledge.tenants, self._classes.urgent, strict=True) if urgent]
        self._limit_us = self._duration_share * min(alone, default=math.inf)
        self._sms = self._sm_share * knowledge.gpu.sms
        self._in_flight_us = 0.0
        self._urgent_bound: Resource = "neither"

    def decide(self, view: View) -> Command:
        """Urgent kernels first; then the first best-effort kernel that the policy lets go."""
        table = view.pending.array
        row = self._classes.urgent_row(view)
        if row is not None:
            self._urgent_bound = bound_by(table[row, P.PROFILED_ISSUE], table[row, P.PROFILED_DRAM], self._bound)
            return self._classes.launch(view, row)
        if self._in_flight_us > self._limit_us:
            if self._classes.running(view, urgent=False):
                return WAIT
            self._in_flight_us = 0.0
        in_service = self._classes.in_service(view)
        for row in self._classes.best_effort_rows(view):
            if not in_service or self._complements(view, row):
                self._in_flight_us += float(table[row, P.PROFILED_US])
                return self._classes.launch(view, row)
        return WAIT

    def _complements(self, view: View, row: int) -> bool:
        """Whether a best-effort kernel is small enough and wants another resource than the urgent kernels."""
        kernel = view.pending.array[row]
        if math.ceil(kernel[P.BLOCKS] / kernel[P.BLOCKS_PER_SM]) >= self._sms:
            return False
        own = bound_by(kernel[P.PROFILED_ISSUE], kernel[P.PROFILED_DRAM], self._bound)
        running = view.running.array[self._classes.running(view, urgent=True)]
        others = [bound_by(k[R.PROFILED_ISSUE], k[R.PROFILED_DRAM], self._bound) for k in running]
        return own == "neither" or own not in (others or [self._urgent_bound])

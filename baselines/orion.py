"""Orion: a best-effort kernel runs beside a request only if it needs what the request's kernels do not.

F. Strati, X. Ma, A. Klimovic, *Orion: Interference-aware, Fine-grained GPU Sharing for ML Applications*
(EuroSys 2024), scheduling policy of section 5, and its artefact (``scheduler_eval.cpp``): kernels of the high-priority
client go at once, on a stream of high priority. A best-effort kernel goes if no request is in service; or if it needs
fewer SMs than a threshold and is bound by another resource (compute or memory) than the high-priority kernel launched
last, where a kernel bound by neither may join either. Best-effort work in flight is throttled: once the durations
launched exceed a threshold, nothing follows until all of it has finished.

The duration threshold is 2.5 % of the request's latency in the paper, and 100 to 160 us in the artefact, whose requests
take some milliseconds on a V100. The default is the artefact's: of requests of a few hundred microseconds 2.5 % would
be less than a kernel. The SM threshold is all SMs for inference; beside a training job the authors search it, up to the
largest need of a best-effort kernel, while it runs. Here it is fixed, and an option.

Also unlike the artefact: best-effort clients take turns in order of priority, then age, not round-robin, and none is
let through in its first iterations.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from gpusched_env.baselines.two_classes import TwoClasses
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command
from gpusched_env.scheduling.view import PendingColumn, View

P = PendingColumn
Resource = Literal["compute", "memory", "neither"]


def bound_by(issue: float, dram: float, share: float) -> Resource:
    """What bounds a kernel that uses these shares of the issue slots and of the DRAM bandwidth alone."""
    if max(issue, dram) < share:
        return "neither"
    return "compute" if issue >= dram else "memory"


class Orion:
    """Profile-aware co-scheduling: best-effort kernels only beside kernels bound by another resource."""

    def __init__(
        self,
        sm_threshold: float = 1.0,
        duration_threshold: float = 0.025,
        reference_us: float | None = 6400.0,
        bound: float = 0.6,
    ) -> None:
        """All thresholds are above 0.

        Args:
            sm_threshold: a best-effort kernel beside a request must need fewer SMs than this, in multiples of the
                GPU's; a kernel of more blocks than the GPU holds needs more than 1, ``inf`` lets all through.
            duration_threshold: best-effort work in flight, as a share of ``reference_us``.
            reference_us: latency of a request, by default such that 160 us may be in flight; ``None``: that of the
                shortest urgent tenant alone.
            bound: a kernel that uses at least this share of a resource is bound by it, at most 1 (the paper's profiler
                rule, 60 %).

        Raises:
            InputError: a value is out of range.
        """
        reference_fits = reference_us is None or reference_us > 0.0
        if not (sm_threshold > 0.0 and duration_threshold > 0.0 and reference_fits and 0.0 < bound <= 1.0):
            given = f"sm_threshold {sm_threshold}, duration_threshold {duration_threshold}"
            raise InputError(
                f"orion: got {given}, reference_us {reference_us}, bound {bound}; above 0, and bound at most 1"
            )
        self._sm_share, self._bound = sm_threshold, bound
        self._duration_share, self._reference_us = duration_threshold, reference_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing is in flight."""
        self._classes = TwoClasses(knowledge)
        alone = [t.alone_us for t, urgent in zip(knowledge.tenants, self._classes.urgent, strict=True) if urgent]
        latency_us = min(alone, default=math.inf) if self._reference_us is None else self._reference_us
        self._limit_us = self._duration_share * latency_us
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
        """Whether a best-effort kernel is small enough and wants another resource than the last urgent one."""
        kernel = view.pending.array[row]
        if math.ceil(kernel[P.BLOCKS] / kernel[P.BLOCKS_PER_SM]) >= self._sms:
            return False
        own = bound_by(kernel[P.PROFILED_ISSUE], kernel[P.PROFILED_DRAM], self._bound)
        return own == "neither" or own != self._urgent_bound

"""XSched's partition of a GPU's time: queues of one tenant run at a time, for slices in proportion to weights.

W. Shen, M. Han, J. Liu, R. Chen, H. Chen, *XSched: Preemptive Scheduling for Diverse XPUs* (OSDI 2025), and its
artefact, ``sched/src/policy/pup.cpp``.

====================================================== ========================================================
rule as published                                      here
====================================================== ========================================================
Processes take turns; one's slice is the mean slice    ``slice_us``, the tenants' number, and their ``weight``
(5 ms) times their number times its share
A slice ends early when nothing is left to do, and     the same, after ``idle_us`` without work
what is left of it is added to the next one
Events that reach the daemon before it is awake count  a queue that is ready again by then never was idle
together (``scheduler/local.cpp``)
Who has nothing to do is passed over, and gets what    the same
its slice would have been; of what is saved beyond a
slice a tenth is lost each time
Others are suspended, as by any policy of XSched       as :mod:`~gpusched_env.baselines.xsched` does it
====================================================== ========================================================
"""

from __future__ import annotations

import math
from collections import deque
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.baselines.xsched import Interrupt, XSched
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import TenantColumn, View

T = TenantColumn
KEPT = 0.9
"""Share of the budget beyond a slice that is kept."""


class XSchedPartition(XSched):
    """Bandwidth partition: tenants in turn, each for its share of the time."""

    reads: Reads = ("weights", "requests", "profiles", "completions", "progress")
    ranges: ClassVar[Ranges] = {
        **{name: XSched.ranges[name] for name in ("threshold", "level", "interrupt")},
        "slice_us": Range(500.0, 50_000.0, log=True),
    }

    def __init__(
        self,
        slice_us: float = 5000.0,
        threshold: int = 16,
        batch: int | None = None,
        level: int = 1,
        interrupt: Interrupt = "save",
        idle_us: float = 20.0,
    ) -> None:
        """Defaults are those of the artefact.

        Args:
            slice_us: mean length of a turn (above 0).
            threshold: as of :class:`~gpusched_env.baselines.xsched.XSched`; so are all others.
            batch: the same.
            level: the same.
            interrupt: the same.
            idle_us: how long a tenant has nothing to do until that is noticed (at least 0): an event between processes
                and a thread that wakes up, a guess. What counts is that it is longer than a loop takes from the end of
                a request to the next one's first launch.

        Raises:
            InputError: a value is out of range.
        """
        super().__init__(threshold=threshold, batch=batch, level=level, interrupt=interrupt)
        if not (slice_us > 0.0 and idle_us >= 0.0):
            given = f"slice_us {slice_us}, idle_us {idle_us}"
            raise InputError(f"xsched-partition: {given}; must be above 0, at least 0")
        self._slice_us, self._idle_us = slice_us, idle_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nobody runs; all tenants without weight share alike."""
        super().reset(knowledge, rng)
        self.waits_for = None
        weights = [tenant.weight for tenant in knowledge.tenants]
        weights = weights if sum(weights) > 0.0 else [1.0] * len(weights)
        self._urgent = [False] * len(weights)
        self._budgets_us = [self._slice_us * len(weights) * weight / sum(weights) for weight in weights]
        self._saved_us = [0.0] * len(weights)
        self._turns = deque(range(len(weights)))
        """Tenants in the order of their turns; the first one runs while ``_runs``."""
        self._runs = False
        self._ends_us, self._idle_since_us = -math.inf, math.inf

    def _resumed(self, view: View) -> tuple[set[int], float]:
        """The tenant whose turn it is, and when that ends."""
        tenants = view.tenants.array
        ready = (tenants[:, T.KERNELS_PENDING] > 0) | (tenants[:, T.KERNELS_LAUNCHED] > 0)
        first = self._turns[0]
        if not ready.any():
            return ({first} if self._runs else set()), math.inf
        if self._runs:
            if ready[first]:
                self._idle_since_us = math.inf
            elif self._idle_since_us == math.inf:
                self._idle_since_us = view.time_us
            ends_us = min(self._ends_us, self._idle_since_us + self._idle_us)
            if view.time_us < ends_us:
                return {first}, ends_us
            self._saved_us[first] = max(0.0, self._ends_us - view.time_us)
            self._turns.rotate(-1)
        while not ready[self._turns[0]]:
            self._saved_us[self._turns[0]] = self._budget_us(self._turns[0])
            self._turns.rotate(-1)
        first, self._runs = self._turns[0], True
        self._ends_us = view.time_us + self._budget_us(first)
        self._saved_us[first], self._idle_since_us = 0.0, math.inf
        return {first}, self._ends_us

    def _budget_us(self, tenant: int) -> float:
        """A tenant's slice, and what it has saved."""
        slice_us, saved_us = self._budgets_us[tenant], self._saved_us[tenant]
        return slice_us + (slice_us + KEPT * (saved_us - slice_us) if saved_us > slice_us else saved_us)

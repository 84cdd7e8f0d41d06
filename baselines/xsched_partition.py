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
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.one_queue import OneQueue
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.baselines.xsched import Interrupt
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.view import View

KEPT = 0.9
"""Share of the budget beyond a slice that is kept."""


class XSchedPartition(OneQueue):
    """Bandwidth partition: tenants in turn, each for its share of the time."""

    ranges: ClassVar[Ranges] = {**OneQueue.ranges, "slice_us": Range(500.0, 50_000.0, log=True)}

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
            threshold, batch, level, interrupt: as of :class:`~gpusched_env.baselines.xsched.XSched`.
            idle_us: how long a tenant has nothing to do until that is noticed (at least 0): an event between processes
                and a thread that wakes up, a guess. What counts is that it is longer than a loop takes from the end of
                a request to the next one's first launch.

        Raises:
            InputError: a value is out of range.
        """
        super().__init__(slice_us, threshold, batch, level, interrupt)
        if not idle_us >= 0.0:
            raise InputError(f"xsched-partition: idle_us is {idle_us}, must be at least 0")
        self._idle_us = idle_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nobody runs."""
        super().reset(knowledge, rng)
        whole_us = self._slice_us * len(self._weights)
        self._budgets_us = [whole_us * weight / sum(self._weights) for weight in self._weights]
        self._saved_us = [0.0] * len(self._weights)
        self._turns = deque(range(len(self._weights)))
        """Tenants in the order of their turns; who runs is the first."""
        self._ends_us, self._idle_since_us = -math.inf, math.inf

    def _turn(self, view: View, ready: Sequence[bool], ran_us: float) -> tuple[int | None, float]:
        if not any(ready):
            return self._running, math.inf
        if self._running is not None:
            self._idle_since_us = math.inf if ready[self._running] else min(self._idle_since_us, view.time_us)
            ends_us = min(self._ends_us, self._idle_since_us + self._idle_us)
            if view.time_us < ends_us:
                return self._running, ends_us
            self._saved_us[self._running] = max(0.0, self._ends_us - view.time_us)
            self._turns.rotate(-1)
        while not ready[self._turns[0]]:
            self._saved_us[self._turns[0]] = self._budget_us(self._turns[0])
            self._turns.rotate(-1)
        first = self._turns[0]
        self._ends_us, self._idle_since_us = view.time_us + self._budget_us(first), math.inf
        self._saved_us[first] = 0.0
        return first, self._ends_us

    def _budget_us(self, tenant: int) -> float:
        """A tenant's slice, and what it has saved."""
        slice_us, saved_us = self._budgets_us[tenant], self._saved_us[tenant]
        return slice_us + (slice_us + KEPT * (saved_us - slice_us) if saved_us > slice_us else saved_us)

"""A multi-level feedback queue: who uses up its slice sinks, who has waited rises.

F. J. Corbató, M. Merwin-Daggett, R. C. Daley, *An Experimental Time-Sharing System* (AIEE-IRE Spring Joint Computer
Conference 1962), as XSched has it (Shen et al., OSDI 2025, ``sched/src/policy/mlfq.cpp`` of its repository).

======================================================= =======================================================
rule as published                                       here
======================================================= =======================================================
Four levels; the highest that has a ready queue runs,   the same, ``levels``
of those in it the one that has waited longest
A slice lasts 10 ms, on each lower level twice as long; ``slice_us``; the same
who used it up sinks by one, and gives way
Who was ready for 100 ms on its level, less what it     ``recovery_us``; the same
waited times 0.9 over the queues there, rises by one
Levels are looked at every 5 ms, and at each event      ``tick_us``; the same
======================================================= =======================================================
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpusched_env.baselines.one_queue import OneQueue
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.baselines.xsched import Interrupt
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.view import View

DISCOUNT = 0.9
"""Of what a queue waited, over the queues on its level, is not counted towards its rise."""


@dataclass(slots=True)
class Queue:
    """What is noted of a tenant's queue on its level."""

    level: int = 0
    since_us: float = math.nan
    """When it came to its level; NaN before it was ready for the first time."""
    waited_us: float = 0.0
    used_us: float = 0.0
    """Of its slice."""

    def move(self, level: int, now_us: float) -> None:
        """To a level, where everything begins anew."""
        self.level, self.since_us, self.waited_us, self.used_us = level, now_us, 0.0, 0.0


class MultiLevelFeedback(OneQueue):
    """MLFQ: tenants that use up their slices give way to those that do not."""

    ranges: ClassVar[Ranges] = {
        **OneQueue.ranges,
        "slice_us": Range(500.0, 50_000.0, log=True),
        "levels": Range(1, 8),
        "recovery_us": Range(5_000.0, 1_000_000.0, log=True),
        "tick_us": Range(100.0, 20_000.0, log=True),
    }

    def __init__(
        self,
        slice_us: float = 10_000.0,
        levels: int = 4,
        recovery_us: float = 100_000.0,
        tick_us: float = 5_000.0,
        threshold: int = 16,
        batch: int | None = None,
        level: int = 1,
        interrupt: Interrupt = "save",
    ) -> None:
        """Defaults are those of the artefact.

        Args:
            slice_us: on the highest level (above 0).
            levels: at least 1.
            recovery_us: time on a level after which a queue rises (above 0).
            tick_us: time between two looks (above 0).
            threshold, batch, level, interrupt: as of :class:`~gpusched_env.baselines.xsched.XSched`.

        Raises:
            InputError: a value is out of range.
        """
        super().__init__(slice_us, threshold, batch, level, interrupt)
        if levels < 1 or not (recovery_us > 0.0 and tick_us > 0.0):
            given = f"levels {levels}, recovery_us {recovery_us}, tick_us {tick_us}"
            raise InputError(f"mlfq: {given}; must be at least 1, above 0")
        self._lowest, self._recovery_us, self._tick_us = levels - 1, recovery_us, tick_us

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """All queues are on the highest level."""
        super().reset(knowledge, rng)
        self._queues = [Queue() for _ in self._weights]
        self._was_ready = [False] * len(self._weights)
        self._looks_us = -math.inf

    def _turn(self, view: View, ready: Sequence[bool], ran_us: float) -> tuple[int | None, float]:
        now_us, those = view.time_us, [tenant for tenant, is_ready in enumerate(ready) if is_ready]
        for tenant in those:
            queue = self._queues[tenant]
            if math.isnan(queue.since_us):
                queue.since_us = now_us
            if tenant == self._running:
                queue.used_us += ran_us
            elif self._was_ready[tenant]:
                queue.waited_us += ran_us
        if list(ready) == self._was_ready and now_us < self._looks_us:
            return self._running, self._looks_us
        self._was_ready, running = list(ready), self._running
        on_level = Counter(self._queues[tenant].level for tenant in those)
        for tenant in those:
            queue = self._queues[tenant]
            others = on_level[queue.level]
            waited_us = queue.waited_us * (DISCOUNT / others if others > 1 else 1.0)
            if now_us - queue.since_us - waited_us > self._recovery_us:
                queue.move(max(0, queue.level - 1), now_us)
            if tenant == running and queue.used_us >= self._slice(queue):
                queue.move(min(self._lowest, queue.level + 1), now_us)
                running = None
        if not those:
            return None, math.inf
        queues = self._queues
        first = min(those, key=lambda tenant: (queues[tenant].level, -queues[tenant].waited_us, tenant != running))
        self._looks_us = now_us + min(self._tick_us, self._slice(queues[first]) - queues[first].used_us)
        return first, self._looks_us

    def _slice(self, queue: Queue) -> float:
        """Length of a slice on a queue's level."""
        return self._slice_us * float(2**queue.level)

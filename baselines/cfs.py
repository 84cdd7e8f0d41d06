"""Completely fair scheduling of a GPU: whoever ran least for its weight runs next.

The rule is that of Linux (C. S. Wong and others, *Towards Achieving Fairness in the Linux Scheduler*, SIGOPS Operating
Systems Review 42(5), 2008) as XSched has it (Shen et al., OSDI 2025; ``sched/src/policy/cfs.cpp`` of its repository).
Of the queues that are ready the one of the least virtual time runs, for a millisecond. Virtual time is the time that a
queue was resumed, over its weight. A queue that is new begins at the least of those that are ready. There weights are
1.2 to the priority; here they are the tenants'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpusched_env.baselines.one_queue import OneQueue
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.view import View


class CompletelyFair(OneQueue):
    """CFS: the tenant whose queue ran least for its weight, a slice at a time."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nobody has run."""
        super().reset(knowledge, rng)
        self._virtual_us = [math.nan] * len(self._weights)
        """Virtual time by tenant; NaN before it was ready for the first time."""
        self._ends_us = -math.inf

    def _turn(self, view: View, ready: Sequence[bool], ran_us: float) -> tuple[int | None, float]:
        virtual_us, running = self._virtual_us, self._running
        if running is not None and ran_us:
            weight = self._weights[running]
            virtual_us[running] += ran_us / weight if weight > 0.0 else math.inf
        those = [tenant for tenant, is_ready in enumerate(ready) if is_ready]
        least_us = min((virtual_us[tenant] for tenant in those if not math.isnan(virtual_us[tenant])), default=0.0)
        for tenant in those:
            if math.isnan(virtual_us[tenant]):
                virtual_us[tenant] = least_us
        if running is not None and ready[running] and view.time_us < self._ends_us:
            return running, self._ends_us
        if not those:
            return None, math.inf
        self._ends_us = view.time_us + self._slice_us
        return min(those, key=lambda tenant: virtual_us[tenant]), self._ends_us

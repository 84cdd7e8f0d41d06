"""Least attained service first: the tenant whose job has run least runs next.

Known as foreground-background (M. Nuyens, A. Wierman, *The Foreground-Background Queue: A Survey*, Performance
Evaluation 65, 2008), and used for jobs on GPUs by J. Gu and others, *Tiresias: A GPU Cluster Manager for Distributed
Deep Learning* (NSDI 2019). It needs to know nothing of a job beforehand. Here a tenant's oldest job counts. Its service
is the time that the tenant's queue was resumed for it. Who runs is chosen anew after each slice, and when a job comes;
equal ones take turns. Queues are XSched's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpusched_env.baselines.one_queue import OneQueue
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.view import TenantColumn, View


class LeastAttainedService(OneQueue):
    """LAS: the tenant whose oldest job has run least, a slice at a time."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No job has run."""
        super().reset(knowledge, rng)
        self._attained_us = [0.0] * len(self._weights)
        """Service of each tenant's oldest job."""
        self._done = [0.0] * len(self._weights)
        self._ends_us = -math.inf

    def _turn(self, view: View, ready: Sequence[bool], ran_us: float) -> tuple[int | None, float]:
        done, running = view.tenants.array[:, TenantColumn.JOBS_DONE].tolist(), self._running
        if running is not None:
            self._attained_us[running] += ran_us
        for tenant, count in enumerate(done):
            if count > self._done[tenant]:
                self._done[tenant], self._attained_us[tenant] = count, 0.0
        comes = any(is_ready and not self._attained_us[tenant] for tenant, is_ready in enumerate(ready))
        gives_way = running is None or view.time_us >= self._ends_us or (comes and self._attained_us[running] > 0.0)
        if running is not None and ready[running] and not gives_way:
            return running, self._ends_us
        those = [tenant for tenant, is_ready in enumerate(ready) if is_ready]
        if not those:
            return None, math.inf
        self._ends_us = view.time_us + self._slice_us
        return min(those, key=lambda tenant: (self._attained_us[tenant], tenant == running)), self._ends_us

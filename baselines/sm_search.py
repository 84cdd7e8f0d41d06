"""A search while jobs run: of how many SMs best-effort kernels may need beside them.

Orion's, for a high-priority client that trains (``scheduler_eval.cpp`` of its artefact, ``low_sms``, ``high_sms``).
"""

from __future__ import annotations

import math

from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.view import TenantColumn, View

T = TenantColumn
ITERATIONS = 10
"""Jobs between two steps of the search."""


class SmSearch:
    """Binary search of the largest threshold with which urgent jobs take as long as is tolerated.

    It begins half way between 0 and the largest need of a best-effort kernel. After each :data:`ITERATIONS` jobs it
    goes down if these took longer on average than tolerated, or else up, until nothing is left between its bounds.
    What a job took is its turnaround, over that alone; several urgent tenants count together.
    """

    def __init__(self, knowledge: Knowledge, urgent: list[bool], slowdown: float) -> None:
        """``urgent``: by tenant; the others are best-effort. ``slowdown``: tolerated time of a job over that alone."""
        self._alone_us = {t: knowledge.tenants[t].alone_us for t, is_urgent in enumerate(urgent) if is_urgent}
        others = [tenant for tenant, is_urgent in zip(knowledge.tenants, urgent, strict=True) if not is_urgent]
        kernels = [knowledge.kernels[identity] for tenant in others for identity in tenant.kernels]
        self._low = 0
        self._high = max((math.ceil(kernel.blocks / kernel.blocks_per_sm) for kernel in kernels), default=0)
        self._slowdown = slowdown
        self._done = dict.fromkeys(self._alone_us, 0)
        self._slowdowns: list[float] = []
        """Of jobs since the last step."""

    def threshold(self, view: View) -> int:
        """SMs that a best-effort kernel may need at most now, after the jobs that ended since it was asked last."""
        for tenant, alone_us in self._alone_us.items():
            row = view.tenants.array[tenant]
            if row[T.JOBS_DONE] > self._done[tenant]:
                self._done[tenant] = int(row[T.JOBS_DONE])
                self._slowdowns.append(float(row[T.LAST_TURNAROUND_US]) / alone_us)
        middle = (self._low + self._high) // 2
        if len(self._slowdowns) >= ITERATIONS and middle > self._low:
            if sum(self._slowdowns) / len(self._slowdowns) > self._slowdown:
                self._high = middle
            else:
                self._low = middle
            self._slowdowns.clear()
            middle = (self._low + self._high) // 2
        return middle

"""XSched: fixed priorities over preemptible command queues, with few commands of each in flight.

W. Shen, M. Han, J. Liu, R. Chen, H. Chen, *XSched: Preemptive Scheduling for Diverse XPUs* (OSDI 2025): every
queue launches progressively, at most a threshold of commands in flight; at the threshold it waits for the middle
one and goes on. The policy is highest priority first: while a queue of a higher priority has commands, those
below are suspended. At level 1 that holds back commands that are not launched yet, so the preemption latency is
that of what is in flight; at level 3 the running command is interrupted too, its context saved and restored.

Level 2, which deactivates commands in the hardware queue, is not offered: launched kernels cannot be recalled.
At level 3 those behind an interrupted one wait for it. The most urgent queues have no limit, nothing is ever
suspended for the others' sake.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.evict import evict
from gpusched_env.baselines.pending import ID, TENANT, launchable_rows
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Preempt
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R, T = PendingColumn, RunningColumn, TenantColumn


class XSched:
    """In-flight limits: a less urgent tenant has few kernels launched, and none while a more urgent one has work."""

    commands = ("preempt",)

    def __init__(self, threshold: int = 8, level: int = 1) -> None:
        """``threshold``: kernels of a less urgent tenant in flight (2 to 16 in the paper; at least 1). ``level``:
        1, launched kernels run on; 3, running ones are saved.

        Raises:
            InputError: a value is out of range.
        """
        if threshold < 1 or level not in (1, 3):
            raise InputError(f"xsched: threshold {threshold}, level {level}; at least 1, and level 1 or 3")
        self._threshold, self._level = threshold, level

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """All queues are empty."""
        self._gpu = knowledge.gpu
        self._most_urgent = min(tenant.priority for tenant in knowledge.tenants)
        self._full = [False] * len(knowledge.tenants)

    def decide(self, view: View) -> Command:
        """Launch from the queues of the highest priority that has work; hold back, or interrupt, the others."""
        tenants = view.tenants.array
        at_work = tenants[(tenants[:, T.KERNELS_PENDING] > 0) | (tenants[:, T.KERNELS_LAUNCHED] > 0)]
        if not len(at_work):
            return WAIT
        ready = int(at_work[:, T.PRIORITY].min())
        suspended = np.flatnonzero(view.running.array[:, R.PRIORITY] > ready).tolist()
        interrupt = evict(view, suspended, "save", self._gpu) if self._level == 3 else None
        if isinstance(interrupt, Preempt):
            return interrupt
        table = view.pending.array
        for row in sorted(launchable_rows(view), key=lambda row: float(table[row, ID])):
            # What was launched behind an interrupted kernel waits for it: it always comes back.
            goes = table[row, P.PREEMPTED] or self._has_room(tenants, int(table[row, TENANT]))
            if table[row, P.PRIORITY] == ready and goes:
                return Launch(int(table[row, ID]))
        return interrupt or WAIT

    def _has_room(self, tenants: np.ndarray[tuple[int, ...], np.dtype[np.float64]], tenant: int) -> bool:
        """Progressive launching: up to the threshold, then not before half of it has finished."""
        if tenants[tenant, T.PRIORITY] == self._most_urgent:
            return True
        in_flight = int(tenants[tenant, T.KERNELS_LAUNCHED])
        self._full[tenant] = in_flight > self._threshold // 2 if self._full[tenant] else in_flight >= self._threshold
        return not self._full[tenant]

"""XSched: suspendable command queues with few commands in flight, and policies that say which of them run.

W. Shen, M. Han, J. Liu, R. Chen, H. Chen, *XSched: Preemptive Scheduling for Diverse XPUs* (OSDI 2025), and its
artefact (files below ``sched/src/policy`` and ``preempt``). A queue is ready while it has commands, in flight or not.

====================================================== ========================== ======================================
rule as published                                      source                     here
====================================================== ========================== ======================================
Progressive launching: at a threshold of commands in   section 4;                 ``threshold`` and ``batch``; for
flight a queue waits for a batch to finish; 16 and 8,  ``launch_worker.cpp``;     queues of the highest priority
a batch of half the threshold is recommended           ``protocol/def.h``         ``urgent_threshold``
Level 1: a suspended queue launches nothing            ``async_xqueue.cpp``       the same
Level 2: its launched commands do not run either (the  ``platforms/cuda/hal``,    a kernel is launched so late that it
one that runs does), and are launched again later      ``level2``                 starts right behind the one before it
Level 3: the command that runs is interrupted, and     the same, ``level3``       ``interrupt``: ``save`` or ``reset``;
goes on (time slices of contexts) or starts over                                  else as at level 2
(trap handler, idempotent kernels)
``hpf``, highest priority first: less urgent queues    ``hpf.cpp``                the same
than the most urgent ready one are suspended
``kedf``: the ``k`` queues (1) of the earliest         ``kedf.cpp``               that of the tenant's oldest job
deadline run, the others are suspended. A queue's is
so long after it became ready, or never
``lax``: as ``hpf``, but a queue has another priority  ``lax.cpp``                with an objective: the highest of all
once it has been ready for its laxity                                             once the oldest job has only its time
                                                                                  alone left, times ``margin``
====================================================== ========================== ======================================

Deadlines and laxities are hints of applications in the artefact, and count from the moment in which a queue becomes
ready, so anew after each synchronisation; those of a job say what is meant. Without one they leave queues in any order;
here the older job goes first.

Launched kernels that have not started cannot be recalled, so at level 2 and 3 none is queued behind another; where one
is on its way when its queue is suspended, it starts. What is free here: the code in front of each kernel that level 2
needs (2.1 % on a GV100, 4.0 % on a K40m, in the paper).
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal, get_args

import numpy as np

from gpusched_env.baselines.evict import SETTLED_US, evict
from gpusched_env.baselines.pending import ID, TENANT, launchable_rows
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command, Launch, Preempt, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.room import UNBOUNDED, Room
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn, View

P, R, T = PendingColumn, RunningColumn, TenantColumn
Policy = Literal["hpf", "kedf", "lax"]
Interrupt = Literal["save", "reset"]
CRITICAL = -1.0
"""Priority of a queue whose laxity is used up: above all others."""


class XSched:
    """In-flight limits: few kernels of a tenant are launched, and none while the policy lets other tenants run."""

    reads: Reads = ("priorities", "objectives", "requests", "profiles", "completions", "progress")
    set_up = SetUp(commands=("preempt",))
    waits_for: Room | None = None
    ranges: ClassVar[Ranges] = {
        "policy": Choice(get_args(Policy)),
        "threshold": Range(1, 64, log=True),
        "urgent_threshold": Range(1, 64, log=True),
        "level": Choice((1, 2, 3)),
        "interrupt": Choice(get_args(Interrupt)),
        "k": Range(1, 4),
        "margin": Range(0.5, 3.0),
    }

    def __init__(
        self,
        policy: Policy = "hpf",
        threshold: int = 16,
        batch: int | None = None,
        urgent_threshold: int = 16,
        level: int = 1,
        interrupt: Interrupt = "save",
        k: int = 1,
        margin: float = 1.0,
    ) -> None:
        """Defaults are those of the artefact.

        Args:
            policy: highest priority first, earliest deadlines first, or priority by laxity.
            threshold: kernels of a tenant in flight at most (2 to 16 in the paper; at least 1).
            batch: kernels that have to finish before the next ones are launched (1 to ``threshold``); ``None``: half
                of ``threshold``.
            urgent_threshold: threshold of tenants of the highest priority, with a batch of half of it (at least 1).
            level: 1, launched kernels run; 2, only those that have started; 3, those are interrupted too.
            interrupt: how, at level 3: blocks are saved, or, of idempotent kernels, killed.
            k: tenants that run at one time under ``kedf`` (at least 1).
            margin: time that a job has to have left under ``lax``, in multiples of the tenant's time alone (above 0).

        Raises:
            InputError: a value is out of range.
        """
        if policy not in get_args(Policy) or interrupt not in get_args(Interrupt) or level not in (1, 2, 3):
            given = f"policy {policy!r}, interrupt {interrupt!r}, level {level}"
            raise InputError(f"xsched: {given}; must be hpf, kedf or lax; save or reset; 1, 2 or 3")
        if threshold < 1 or urgent_threshold < 1 or k < 1 or not margin > 0.0:
            given = f"threshold {threshold}, urgent_threshold {urgent_threshold}, k {k}, margin {margin}"
            raise InputError(f"xsched: {given}; must be at least 1, margin above 0")
        if batch is not None and not 1 <= batch <= threshold:
            raise InputError(f"xsched: batch is {batch}, must be from 1 to the threshold, {threshold}")
        self._policy, self._level, self._interrupt, self._k, self._margin = policy, level, interrupt, k, margin
        self._limit = threshold, batch or max(1, threshold // 2)
        self._urgent_limit = urgent_threshold, max(1, urgent_threshold // 2)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """All queues are empty."""
        self._gpu = knowledge.gpu
        highest = min(tenant.priority for tenant in knowledge.tenants)
        self._urgent = [tenant.priority == highest for tenant in knowledge.tenants]
        self._full = [False] * len(knowledge.tenants)
        """Whether a tenant waits for a batch to finish, by tenant."""
        # What runs is interrupted, and laxities are used up, without room for a launch, too.
        launches_only = self._level < 3 and self._policy != "lax"
        self.waits_for = Room.of_any(len(knowledge.tenants)) if launches_only else None

    def decide(self, view: View) -> Command:
        """Launch from the queues that the policy lets run; hold back, or interrupt, the others."""
        resumed, looks_us = self._resumed(view)
        if self._level == 3:
            tenants = view.running.array[:, R.TENANT].astype(int).tolist()
            suspended = [row for row, tenant in enumerate(tenants) if tenant not in resumed]
            interrupt = evict(view, suspended, self._interrupt, self._gpu)
            if isinstance(interrupt, Preempt):
                return interrupt
            if isinstance(interrupt, Wait):
                looks_us = min(looks_us, interrupt.until_us)
        table = view.pending.array
        for row in sorted(launchable_rows(view), key=lambda row: float(table[row, ID])):
            tenant = int(table[row, TENANT])
            if tenant not in resumed:
                continue
            # What was launched behind an interrupted kernel waits for it: it always comes back.
            goes_us = view.time_us if table[row, P.PREEMPTED] else self._goes_us(view, tenant)
            if goes_us <= view.time_us:
                return Launch(int(table[row, ID]))
            looks_us = min(looks_us, goes_us)
        return Wait(looks_us)

    def _resumed(self, view: View) -> tuple[set[int], float]:
        """Tenants whose queues run, and when that may change by itself."""
        tenants = view.tenants.array.tolist()
        ready = [i for i, row in enumerate(tenants) if row[T.KERNELS_PENDING] > 0 or row[T.KERNELS_LAUNCHED] > 0]
        if self._policy == "kedf":

            def deadline(tenant: int) -> tuple[float, float]:
                arrived_us = tenants[tenant][T.OLDEST_ARRIVED_US]
                return arrived_us + tenants[tenant][T.SLO_US], arrived_us

            return set(sorted(ready, key=deadline)[: self._k]), math.inf
        priorities = {tenant: tenants[tenant][T.PRIORITY] for tenant in ready}
        changes_us = math.inf
        if self._policy == "lax":
            for tenant in ready:
                row = tenants[tenant]
                lax_until_us = row[T.OLDEST_ARRIVED_US] + row[T.SLO_US] - self._margin * row[T.ALONE_US]
                if lax_until_us <= view.time_us:
                    priorities[tenant] = CRITICAL
                else:
                    changes_us = min(changes_us, lax_until_us)
        first = min(priorities.values(), default=math.inf)
        return {tenant for tenant, priority in priorities.items() if priority == first}, changes_us

    def _goes_us(self, view: View, tenant: int) -> float:
        """When the next kernel of a tenant may be launched: now, later, or, ``inf``, at some event."""
        threshold, batch = self._urgent_limit if self._urgent[tenant] else self._limit
        row = view.tenants.array[tenant]
        in_flight = int(row[T.KERNELS_LAUNCHED])
        self._full[tenant] = in_flight > threshold - batch if self._full[tenant] else in_flight >= threshold
        if self.waits_for is not None:
            self.waits_for.most_launched[tenant] = threshold - batch + 1 if self._full[tenant] else UNBOUNDED
        if self._full[tenant]:
            return math.inf
        never_suspended = self._policy == "hpf" and self._urgent[tenant]
        early_us = float(row[T.LAUNCHED_LEFT_US]) - self._gpu.timing.launch_latency_us
        if self._level == 1 or never_suspended or not in_flight or early_us <= 0.0:
            return view.time_us
        return view.time_us + max(early_us, SETTLED_US)

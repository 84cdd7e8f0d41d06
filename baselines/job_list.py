"""A dispatcher that follows a plan of a whole episode: an order of jobs, and which of them are given up.

The plan orders the jobs in service by a number: their deadline and what is left of them, moved by as much as the plan
says of each job. The first one is launched without further ado at the most urgent stream priority; the others fill
what it leaves with a few kernels, less urgent the later they are in the order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from gpusched_env.baselines.pending import ID, JOB, JOB_LEFT, LAUNCHABLE, TENANT
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Reject
from gpusched_env.scheduling.view import PendingColumn, TenantColumn, View

T = TenantColumn
ARRIVED, DEADLINE = int(PendingColumn.JOB_ARRIVED_US), int(PendingColumn.DEADLINE_US)
PATIENCE = 20.0
"""The deadline of jobs without an objective, in multiples of their time alone."""

JobId = tuple[int, int]
"""Row of the tenant, number of the job."""


@dataclass(frozen=True)
class JobOrder:
    """What a :class:`JobList` follows."""

    slack: float = 1.0
    """Weight of the time from now to a job's deadline less what is left of the job."""
    left: float = 0.5
    """Weight of what is left of the job, over the weight of its tenant (as a multiple of the mean)."""
    first: int = 64
    """Kernels of the first job launched and unfinished at most (>= 1)."""
    others: int = 4
    """The same of all other jobs together (>= 0)."""
    late: bool = True
    """Give up jobs that cannot meet their objective any more, or need not before the end of the episode."""
    reject: bool = False
    """Reject what is given up where the scenario offers it; else it comes after all other jobs."""
    shifts: Mapping[JobId, float] = field(default_factory=dict)
    """By how much single jobs are moved in the order, in microseconds; above 0: later."""
    given_up: frozenset[JobId] = frozenset()
    """Jobs that are given up from the beginning."""
    kept: frozenset[JobId] = frozenset()
    """Jobs that are not given up for being late."""


class Head(NamedTuple):
    """A job in service, as the last of its kernels that was pending showed it."""

    job: int
    arrived_us: float
    deadline_us: float


def shares(knowledge: Knowledge) -> list[float]:
    """Weights of tenants as multiples of their mean, above 0."""
    weights = [tenant.weight for tenant in knowledge.tenants]
    mean = sum(weights) / len(weights) or 1.0
    return [max(weight / mean, 1e-6) for weight in weights]


class JobList:
    """Stream priorities by the order of jobs in a plan; given-up jobs last, or rejected."""

    def __init__(self, plan: JobOrder) -> None:
        self.plan = plan
        self.heads: dict[int, Head] = {}
        """By tenant; all that changes during an episode."""

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """No job has arrived."""
        self.heads = {}
        self._weights = shares(knowledge)
        self._alone_us = [tenant.alone_us for tenant in knowledge.tenants]
        self._horizon_us = math.nan
        self._most_urgent = 1 - knowledge.gpu.priorities

    def decide(self, view: View) -> Command:
        """Reject a job, or launch the first kernel that may be, or wait."""
        plan = self.plan
        pending, tenants = view.pending.array.tolist(), view.tenants.array
        if math.isnan(self._horizon_us):
            self._horizon_us = view.horizon_us
        left_us = tenants[:, T.LAUNCHED_LEFT_US].tolist()
        shown = -1
        for row in pending:
            # Tenant after tenant, oldest first: the first row of a tenant is of its job in service.
            if row[TENANT] != shown:
                shown = tenant = int(row[TENANT])
                left_us[tenant] += row[JOB_LEFT]
                if tenant not in self.heads or self.heads[tenant].job != row[JOB]:
                    self.heads[tenant] = Head(int(row[JOB]), row[ARRIVED], row[DEADLINE])
        if plan.reject:
            rejected = self._rejected(view, left_us)
            if rejected is not None:
                return rejected
        rows = [row for row in pending if row[LAUNCHABLE]]
        if not rows:
            return WAIT
        waiting, launched = tenants[:, T.JOBS_WAITING].tolist(), tenants[:, T.KERNELS_LAUNCHED].tolist()
        ranks = {
            tenant: self._rank(view.time_us, tenant, head, left_us[tenant])
            for tenant, head in self.heads.items()
            if waiting[tenant] > 0
        }
        first = min(ranks, key=ranks.__getitem__)
        best = None
        if launched[first] < plan.first:
            best = next((row for row in rows if row[TENANT] == first), None)
        if best is not None:
            return Launch(int(best[ID]), self._most_urgent)
        if sum(launched) - launched[first] >= plan.others:
            return WAIT
        best = min((row for row in rows if row[TENANT] != first), key=lambda row: ranks[int(row[TENANT])], default=None)
        if best is None:
            return WAIT
        rank = ranks[int(best[TENANT])]
        place = sum(other < rank for other in ranks.values())
        return Launch(int(best[ID]), min(0, self._most_urgent + max(1, place)))

    def _rank(self, time_us: float, tenant: int, head: Head, left_us: float) -> tuple[bool, float]:
        """Whether a job is given up, and its place in the order."""
        plan, job = self.plan, (tenant, head.job)
        deadline_us = head.deadline_us
        if deadline_us == math.inf:
            deadline_us = head.arrived_us + PATIENCE * self._alone_us[tenant]
        # The present is the same for all of them.
        number = plan.slack * (deadline_us - left_us) + plan.left * left_us / self._weights[tenant]
        given_up = job in plan.given_up
        if plan.late and not given_up and head.deadline_us < math.inf and job not in plan.kept:
            given_up = time_us + left_us > head.deadline_us or head.deadline_us >= self._horizon_us
        return given_up, number + plan.shifts.get(job, 0.0)

    def _rejected(self, view: View, left_us: list[float]) -> Reject | None:
        """The rejection of a tenant's oldest job if it is given up, and would be late before the end."""
        for tenant, number in enumerate(view.tenants.array[:, T.OLDEST_REJECTABLE].tolist()):
            if number < 0:
                continue
            job, head = (tenant, int(number)), self.heads.get(tenant)
            if job in self.plan.given_up:
                return Reject(*job)
            if self.plan.late and head is not None and head.job == number and job not in self.plan.kept:
                late = view.time_us + left_us[tenant] > head.deadline_us
                if late and head.deadline_us < self._horizon_us:
                    return Reject(*job)
        return None

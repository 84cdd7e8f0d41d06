"""Giving a job up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpusched_env.compiling import procedure
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands.command import AnyCommand, OperationOf
from gpusched_env.scheduling.commands.world import any_tenant
from gpusched_env.scheduling.showing import Shown
from gpusched_env.scheduling.view import TenantColumn
from gpusched_env.workload.host import HAS_LEFT, NO_JOB, client, job, rejectable


@procedure
def oldest_rejectable(w: Any, tenant: int) -> Any:
    """Number of a tenant's oldest job that may be rejected now; -1: none."""
    c = client(w, tenant)
    for number in range(c.first, c.arrived):
        if job(w, tenant, number).state != HAS_LEFT and rejectable(w, tenant, number):
            return number
    return NO_JOB


@procedure
def newest_rejectable(w: Any, tenant: int) -> Any:
    """Number of a tenant's newest job that may be rejected now; -1: none."""
    c = client(w, tenant)
    number = c.arrived - 1
    while number >= c.first:
        if job(w, tenant, number).state != HAS_LEFT and rejectable(w, tenant, number):
            return number
        number -= 1
    return NO_JOB


@procedure
def may_reject(w: Any, tenant: int) -> Any:
    """Whether a tenant has a job that may be rejected now."""
    return oldest_rejectable(w, tenant) != NO_JOB


@procedure
def show_rejectable(w: Any, tenant: int, row: Any, offered: bool) -> None:
    """Fill the columns of the view."""
    row[TenantColumn.OLDEST_REJECTABLE] = oldest_rejectable(w, tenant) if offered else NO_JOB
    row[TenantColumn.NEWEST_REJECTABLE] = newest_rejectable(w, tenant) if offered else NO_JOB


@dataclass(frozen=True, slots=True)
class Reject(AnyCommand):
    """Shed load: a job is given up.

    Its pending launches vanish, its host goes on to the next job, what is launched finishes. The job counts as one
    that missed its objective, and costs at once what it would have cost if it had stayed undone until the horizon
    (:mod:`gpusched_env.scheduling.reward`), so that giving up never pays by itself.

    Legal: ``view.jobs.rejectable`` is 1, which is nowhere so if the scenario does not offer ``reject``. The
    oldest and the newest such job of each tenant are in ``view.tenants``.

    Cost: at once what the job would have cost had it stayed undone until the horizon, and its objective counts
    as missed. Nothing on the GPU; what is launched of it finishes.
    """

    NAME: ClassVar = "reject"
    VERB: ClassVar = "reject a job"
    ONCE: ClassVar = True
    NUMBERS: ClassVar = ("tenant", "job")
    anywhere: ClassVar = staticmethod(any_tenant(may_reject))
    show: ClassVar = staticmethod(show_rejectable)

    tenant: int
    """Row of ``view.tenants``."""
    job: int
    """Number of the job: ``view.jobs.job``."""

    def check(self, view: Shown, problem: Problem, operation_of: OperationOf) -> None:
        jobs = view.jobs
        rows = np.flatnonzero((jobs.tenant == self.tenant) & (jobs.job == self.job))
        if not rows.size or not jobs.rejectable[rows[0]]:
            mine = (jobs.tenant == self.tenant) & (jobs.rejectable == 1.0)
            legal = jobs.job[mine].astype(int).tolist()
            raise IllegalCommand(
                f"{self}: tenant {self.tenant} has no job {self.job} that can be rejected now; those are {legal[:10]}"
            )

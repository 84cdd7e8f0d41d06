"""What an observation adds where decisions stand for an interval: the oldest job of each tenant in the plan of all.

Which jobs can be in time together is no function of one job, and hard to learn; a host solves it in microseconds
(:mod:`gpusched_env.scheduling.on_time`). A scheduler could do no better than the plan if nothing came any more and the
GPU did one job at a time at the profiled speed; how far that is so is left to the agent.
"""

from __future__ import annotations

import math
from typing import Final

from numba import njit

from gpusched_env.compiling import cached
from gpusched_env.envs.encoding import ID, NO_KERNEL, Features, Floats, _clip, _log_us, _saturate
from gpusched_env.envs.features import Scalar, TenantFeature
from gpusched_env.scheduling import on_time
from gpusched_env.scheduling.on_time import MOST_JOBS, worth_most
from gpusched_env.scheduling.view import JobColumn, PendingColumn, TenantColumn

SCRATCH: Final = (on_time.SCRATCH[0] + 4, on_time.SCRATCH[1])
"""Shape of what :func:`encode_plans` works in: behind that of a plan, figures of jobs."""
DEAR: Final = 1.2
"""The price of a microsecond in the second plan, in multiples of what it earns on average."""


@njit()
def job_left_us(job: Floats, tenants: Floats, pending_shown: Floats) -> float:
    """Profiled device time left of a job, a row of the table of jobs; all of it until the host has taken it up."""
    tenant = int(job[JobColumn.TENANT])
    if job[JobColumn.STARTED_US] == math.inf:
        return float(tenants[tenant, TenantColumn.ALONE_US])
    left_us = tenants[tenant, TenantColumn.LAUNCHED_LEFT_US]
    # A job that was taken up and of which nothing is pending is launched as a whole.
    shown = pending_shown[tenant]
    if shown[ID] != NO_KERNEL and shown[PendingColumn.JOB] == job[JobColumn.JOB]:
        left_us += shown[PendingColumn.JOB_LEFT_US]
    return float(left_us)


@cached(_nrt=False)
def encode_plans(
    jobs: Floats, tenants: Floats, pending_shown: Floats, scalars: Floats, scratch: Floats, out: Features
) -> None:
    """Write the columns from ``EARNS`` on of the table of tenants.

    Args:
        jobs: a View's table, or the first of its rows.
        tenants: a View's table.
        pending_shown: of each tenant the oldest pending launch, as for :func:`~gpusched_env.envs.encoding.encode`.
        scalars: as there.
        scratch: of shape :data:`SCRATCH`, written.
        out: shape ``(slots, len(TenantFeature))``.
    """
    now_us = scalars[Scalar.TIME_US]
    count = tenants.shape[0]
    mean = 0.0
    with_slo = 0
    for tenant in range(count):
        if tenants[tenant, TenantColumn.SLO_US] < math.inf:
            mean += tenants[tenant, TenantColumn.WEIGHT] / tenants[tenant, TenantColumn.ALONE_US]
            with_slo += 1
    mean = mean / with_slo if with_slo > 0 and mean > 0.0 else 1.0
    rows = min(jobs.shape[0], MOST_JOBS)
    due_us, left_us, value, dear_value = scratch[-4, :rows], scratch[-3, :rows], scratch[-2, :rows], scratch[-1, :rows]
    for k in range(rows):
        tenant = int(jobs[k, JobColumn.TENANT])
        due_us[k] = jobs[k, JobColumn.DEADLINE_US] - now_us
        left_us[k] = job_left_us(jobs[k], tenants, pending_shown)
        value[k] = tenants[tenant, TenantColumn.WEIGHT] if due_us[k] < math.inf else 0.0
        dear_value[k] = value[k] - DEAR * mean * left_us[k]
    plan = worth_most(due_us, left_us, left_us, value, scratch)
    dear = worth_most(due_us, left_us, left_us, dear_value, scratch)
    for tenant in range(count):
        earns = tenants[tenant, TenantColumn.WEIGHT] / tenants[tenant, TenantColumn.ALONE_US]
        out[tenant, TenantFeature.EARNS] = _saturate(earns, mean)
    last = -1
    for k in range(rows):
        tenant = int(jobs[k, JobColumn.TENANT])
        if tenant == last:
            continue
        last = tenant
        out[tenant, TenantFeature.OLDEST_LEFT] = _log_us(left_us[k])
        out[tenant, TenantFeature.OLDEST_KEPT] = 1.0 if plan >> k & 1 else 0.0
        out[tenant, TenantFeature.OLDEST_KEPT_DEAR] = 1.0 if dear >> k & 1 else 0.0
        ahead_us = 0.0
        for other in range(rows):
            if plan >> other & 1 and (due_us[other] < due_us[k] or (due_us[other] == due_us[k] and other < k)):
                ahead_us += left_us[other]
        slo_us = tenants[tenant, TenantColumn.SLO_US]
        if slo_us < math.inf:
            out[tenant, TenantFeature.OLDEST_LAXITY] = _clip((due_us[k] - left_us[k]) / slo_us)
            out[tenant, TenantFeature.OLDEST_SPARE] = _clip((due_us[k] - left_us[k] - ahead_us) / slo_us)

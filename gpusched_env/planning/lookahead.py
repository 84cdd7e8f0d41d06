"""Whom it would pay to let go first: each tenant's oldest job tried in sampled futures of a fluid model of the GPU.

The plan of the jobs that are there (:mod:`gpusched_env.planning.plans`) knows nothing of those that will come. Here
they come at the mean rates of their tenants, in some of a fixed set of futures: which ones, the jobs that are there
say, so that a state looks the same everywhere, and other futures are tried when a job comes or goes. What is modelled
and what is not: :mod:`gpusched_env.planning.fluid`.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from gpusched_env.compiling import cached, called
from gpusched_env.planning.fluid_tables import MOST, WORK, Floats, FluidJob, FluidTenant, Model
from gpusched_env.planning.interval import foremost
from gpusched_env.planning.outlook import BESIDE, FIRST, SCALE, Outlook, exponential_gaps, mean_losses
from gpusched_env.planning.plans import PlanColumn, job_left_us, oldest_of, plan_view
from gpusched_env.scheduling.view import JobColumn, TenantColumn, View

FUTURES: Final = 16
"""Futures that a state is tried in, of the :data:`DRAWN` that there are."""
DRAWN: Final = 256
ARRIVALS: Final = 64
"""Arrivals of a future; then nothing comes any more."""
HORIZON_US: Final = 10000.0
"""How far futures go. With 15 ms and 32 futures choices were no better (56 episodes of each serving scenario)."""
COLUMNS: Final = len(FluidJob)
TENANT_COLUMNS: Final = len(FluidTenant)
TABLE: Final = WORK[0]
TENANTS: Final = TABLE + COLUMNS
FOUND: Final = TENANTS + TENANT_COLUMNS
"""Rows of the scratch at which tables begin that come after the memory of futures."""
SCRATCH: Final = (FOUND + 2, MOST)
"""Shape of what :func:`look_ahead` works in."""

_RNG = np.random.default_rng(20241)
GAPS: Final = exponential_gaps(_RNG, (DRAWN, ARRIVALS))
DRAWS: Final = _RNG.random((DRAWN, ARRIVALS))


def plan_ahead(view: View, outlook: Outlook) -> Floats:
    """The plan of a view with all columns, shape ``(tenants, len(Plan))``."""
    found = plan_view(view, outlook)
    look_ahead(view.jobs.array, view.tenants.array, oldest_of(view), view.time_us, outlook, np.empty(SCRATCH), found)
    return found


@cached()
def look_ahead(
    jobs: Floats, tenants: Floats, oldest: Floats, time_us: float, outlook: Outlook, scratch: Floats, plan: Floats
) -> None:
    """Write the columns from ``AHEAD`` on.

    Args:
        jobs, tenants, oldest, time_us: as for :func:`~gpusched_env.planning.plans.plan_oldest`; of the jobs the first
            :data:`~gpusched_env.planning.fluid.MOST` count. Of more tenants than that nothing is seen.
        outlook: of the tenants.
        scratch: of shape :data:`SCRATCH`, written.
        plan: of :func:`~gpusched_env.planning.plans.plan_oldest`; written.
    """
    count, rows = tenants.shape[0], min(jobs.shape[0], MOST)
    for tenant in range(count):
        plan[tenant, PlanColumn.AHEAD], plan[tenant, PlanColumn.AHEAD_ALONE] = 0.0, 0.0
    if count > MOST:
        return
    table = scratch[TABLE:TENANTS].reshape((MOST, COLUMNS))
    known = scratch[TENANTS:FOUND].reshape((MOST, TENANT_COLUMNS))
    found = scratch[FOUND : FOUND + 2]
    first = foremost(plan, count)
    present = 0.0
    weight = 0.0
    for tenant in range(count):
        present += plan[tenant, PlanColumn.PRESENT]
        weight += tenants[tenant, TenantColumn.WEIGHT] / count
        known[tenant, FluidTenant.ALONE_US] = tenants[tenant, TenantColumn.ALONE_US]
        known[tenant, FluidTenant.SLO_US] = tenants[tenant, TenantColumn.SLO_US]
        known[tenant, FluidTenant.WEIGHT] = tenants[tenant, TenantColumn.WEIGHT]
        slo = tenants[tenant, TenantColumn.SLO_US] < math.inf
        known[tenant, FluidTenant.JOBS_A_US] = tenants[tenant, TenantColumn.JOBS_A_US] if slo else 0.0
        known[tenant, FluidTenant.GRAPHS] = outlook.graphs[tenant]
    if present < 2.0 or weight == 0.0:
        return
    drawn = 0
    for k in range(rows):
        drawn += int((jobs[k, JobColumn.JOB] + 1.0) * (7.0 + 31.0 * jobs[k, JobColumn.TENANT]))
        due_us = jobs[k, JobColumn.DEADLINE_US] - time_us
        place = k
        while place > 0 and table[place - 1, FluidJob.DUE_US] > due_us:
            for column in range(COLUMNS):
                table[place, column] = table[place - 1, column]
            place -= 1
        table[place, FluidJob.TENANT], table[place, FluidJob.DUE_US] = jobs[k, JobColumn.TENANT], due_us
        table[place, FluidJob.LEFT_US] = job_left_us(jobs, k, tenants, oldest)
    model = Model(
        HORIZON_US, outlook.price_a_us, SCALE, FIRST, BESIDE, outlook.pairs, outlook.exponent, outlook.rejects
    )
    drawn %= DRAWN - FUTURES
    gaps, draws = GAPS[drawn : drawn + FUTURES], DRAWS[drawn : drawn + FUTURES]
    mean_losses(table[:rows], known[:count], model, gaps, draws, scratch[:TABLE], found)
    base = _base(table[:rows], found[0], first)
    if base == math.inf:
        return
    # From the last on, so that of each tenant the oldest remains.
    for k in range(rows - 1, -1, -1):
        tenant = int(table[k, FluidJob.TENANT])
        plan[tenant, PlanColumn.AHEAD] = (found[0, k] - base) / weight
        plan[tenant, PlanColumn.AHEAD_ALONE] = (found[1, k] - base) / weight


@called
def _base(table: Floats, found: Floats, first: int) -> float:
    """What is lost if the oldest job of tenant ``first`` goes first, or if it would be late the best of the others."""
    least = math.inf
    for k in range(table.shape[0]):
        least = min(least, found[k])
    for k in range(table.shape[0]):
        if int(table[k, FluidJob.TENANT]) == first:
            return float(found[k] if found[k] < math.inf else least)
    return least

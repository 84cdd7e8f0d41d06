"""What an observation adds where decisions stand for an interval: each tenant's jobs in the plan of all jobs."""

from __future__ import annotations

import math

from gpusched_env.compiling import cached
from gpusched_env.envs.encoding import COUNT_HALF, Features, Floats, clip, log_us, saturate, soft_sign
from gpusched_env.envs.features import TenantFeature
from gpusched_env.planning.plans import Plan
from gpusched_env.scheduling.view import TenantColumn


@cached()
def encode_plan(plan: Floats, tenants: Floats, time_us: float, out: Features) -> None:
    """Write the columns from ``EARNS`` on of the table of tenants.

    Args:
        plan: of :func:`~gpusched_env.planning.plans.plan_oldest` and then of
            :func:`~gpusched_env.planning.lookahead.look_ahead`.
        tenants: a View's table.
        time_us: the present.
        out: shape ``(slots, len(TenantFeature))``.
    """
    for tenant in range(tenants.shape[0]):
        row = plan[tenant]
        out[tenant, TenantFeature.EARNS] = saturate(row[Plan.EARNS], 1.0)
        out[tenant, TenantFeature.OLDEST_LEFT] = log_us(row[Plan.LEFT_US])
        out[tenant, TenantFeature.OLDEST_KEPT] = row[Plan.KEPT]
        out[tenant, TenantFeature.OLDEST_KEPT_DEAR] = row[Plan.KEPT_DEAR]
        out[tenant, TenantFeature.LOST] = saturate(row[Plan.LOST], COUNT_HALF)
        out[tenant, TenantFeature.KEPT_LEFT] = log_us(row[Plan.KEPT_US])
        out[tenant, TenantFeature.AHEAD] = soft_sign(row[Plan.AHEAD])
        out[tenant, TenantFeature.AHEAD_ALONE] = soft_sign(row[Plan.AHEAD_ALONE])
        if row[Plan.PRESENT] > 0.0 and row[Plan.DEADLINE_US] < math.inf:
            laxity_us = row[Plan.DEADLINE_US] - time_us - row[Plan.LEFT_US]
            slo_us = tenants[tenant, TenantColumn.SLO_US]
            out[tenant, TenantFeature.OLDEST_LAXITY] = clip(laxity_us / slo_us)
            out[tenant, TenantFeature.OLDEST_SPARE] = clip((laxity_us - row[Plan.AHEAD_US]) / slo_us)

"""What an observation adds where decisions for an interval are about knobs: how late services are, what tenants got.

All of it follows from the present view, so that an environment, a saved state and a scheduler see the same.
"""

from __future__ import annotations

import math

from gpusched_env.compiling import cached
from gpusched_env.envs.encoding import Features, Floats, clip, saturate
from gpusched_env.envs.features import FLAG, RATIO, SHARE, Feature
from gpusched_env.scheduling.view import TenantColumn

TABLE = "knobs"
"""Name of the table."""


class KnobFeature(Feature):
    """Table ``knobs``: row = tenant, where decisions for an interval are about pauses and SMs.

    The SMs that a tenant has are in ``tenants``.
    """

    PRESENT = ("1 if the scenario has this tenant; otherwise the row is 0", FLAG, 0, 1, "tenants.priority")
    PAUSE = ("how long it sleeps before each job, over its time alone", RATIO, 0, 1, "tenants.pause_us")
    THROTTLABLE = ("1 if its pause can be set now", FLAG, 0, 1, "tenants.throttlable")
    PARTITIONABLE = ("1 if its SMs can be set now", FLAG, 0, 1, "tenants.partitionable")
    LATENCY = (
        "exponential mean of its turnarounds (weight 1/8 for the newest) over its SLO; 0 without one",
        RATIO,
        0,
        1,
        "tenants.mean_turnaround_us, tenants.slo_us",
    )
    LAST_LATENCY = ("the last turnaround over its SLO, likewise", RATIO, 0, 1, "tenants.last_turnaround_us")
    QUEUE = (
        "jobs in the system times the time of one alone, over its SLO; 0 without one",
        RATIO,
        0,
        1,
        "tenants.jobs_waiting, tenants.alone_us, tenants.slo_us",
    )
    LOAD = (
        "jobs that have arrived times the time of one alone, over the time so far",
        RATIO,
        0,
        1,
        "tenants.jobs_done, tenants.jobs_waiting, tenants.alone_us",
    )
    PROGRESS = ("jobs done, of those that it would have done alone by now", SHARE, 0, 1, "tenants.jobs_done")


@cached()
def encode_knobs(tenants: Floats, time_us: float, out: Features) -> None:
    """Write the table.

    Args:
        tenants: a View's table.
        time_us: the present.
        out: shape ``(slots, len(KnobFeature))``; at least as many rows as tenants.
    """
    out[:] = 0.0
    for tenant in range(tenants.shape[0]):
        slo_us = tenants[tenant, TenantColumn.SLO_US]
        alone_us = max(tenants[tenant, TenantColumn.ALONE_US], 1e-9)
        done, waiting = tenants[tenant, TenantColumn.JOBS_DONE], tenants[tenant, TenantColumn.JOBS_WAITING]
        out[tenant, KnobFeature.PRESENT] = 1.0
        out[tenant, KnobFeature.PAUSE] = saturate(tenants[tenant, TenantColumn.PAUSE_US], alone_us)
        out[tenant, KnobFeature.THROTTLABLE] = tenants[tenant, TenantColumn.THROTTLABLE]
        out[tenant, KnobFeature.PARTITIONABLE] = tenants[tenant, TenantColumn.PARTITIONABLE]
        if slo_us < math.inf:
            out[tenant, KnobFeature.LATENCY] = saturate(tenants[tenant, TenantColumn.MEAN_TURNAROUND_US], slo_us)
            out[tenant, KnobFeature.LAST_LATENCY] = saturate(tenants[tenant, TenantColumn.LAST_TURNAROUND_US], slo_us)
            out[tenant, KnobFeature.QUEUE] = saturate(waiting * alone_us, slo_us)
        if time_us > 0.0:
            out[tenant, KnobFeature.LOAD] = saturate((done + waiting) * alone_us, time_us)
            out[tenant, KnobFeature.PROGRESS] = clip(done * alone_us / time_us)

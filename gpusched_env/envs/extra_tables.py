"""Tables that an observation adds: who is on the CPU cores, and where decisions for an interval are about knobs."""

from __future__ import annotations

import math
from typing import Final

from gpusched_env.compiling import cached
from gpusched_env.envs.encoding import Features, Floats, clip, saturate
from gpusched_env.envs.features import FLAG, RATIO, SHARE, Feature
from gpusched_env.scheduling.cores import CoreColumn
from gpusched_env.scheduling.view import TenantColumn
from gpusched_env.workload.cores.spec import MOST_EVENTS

CORE_TABLE = "cores"
"""Name of the table in observations."""
DEMANDING_PER_US: Final = 62.5
"""Misses a microsecond that count as one half: 4 GB/s of lines of 64 bytes."""
PERIOD_US: Final = 1000.0
"""Time until a tick that counts as one half: the usual period."""


class CoreFeature(Feature):
    """Table ``cores``: row = CPU core, where budgets of cores can be set."""

    PRESENT = ("1 if the scenario has this core; otherwise the row is 0", FLAG, 0, 1, "cores.number")
    HOSTS = ("1 if a tenant's host runs here", FLAG, 0, 1, "cores.host")
    LOCKED = ("1 while its host holds the bandwidth lock and runs", FLAG, 0, 1, "cores.locked")
    TASKS = ("processes in its run queue, over their number and 1", RATIO, 0, 1, "cores.tasks")
    BUDGET = ("logarithm of its budget over that of no regulation", SHARE, 0, 1, "cores.budget")
    ALWAYS = ("1 if it has that budget also while no lock counts", FLAG, 0, 1, "cores.always")
    SETTABLE = ("1 if its budget can be set now", FLAG, 0, 1, "cores.settable")
    THROTTLED = ("1 while it has spent its budget", FLAG, 0, 1, "cores.throttled")
    SPENT = ("misses in its period over its budget", SHARE, 0, 1, "cores.misses, cores.budget")
    LAST_SPENT = ("misses in its period before that, likewise", SHARE, 0, 1, "cores.last_misses, cores.budget")
    NEXT_TICK = ("until its next period begins, over 1 ms", RATIO, 0, 1, "cores.next_tick_us")
    MISS_RATE = (
        "counted misses while processes ran that miss the cache, over 62.5 a microsecond",
        RATIO,
        0,
        1,
        "cores.all_misses, cores.memory_us",
    )
    THROTTLED_SHARE = ("for which it was throttled, of the time so far", SHARE, 0, 1, "cores.throttled_us")
    MEMORY_SHARE = ("for which processes ran that miss the cache, likewise", SHARE, 0, 1, "cores.memory_us")
    COMPUTE_SHARE = ("for which its other processes ran, likewise", SHARE, 0, 1, "cores.compute_us")


@cached()
def encode_cores(cores: Floats, time_us: float, out: Features) -> None:
    """Write the table of CPU cores.

    Args:
        cores: a View's table.
        time_us: the present.
        out: shape ``(cores or more, len(CoreFeature))``.
    """
    out[:] = 0.0
    for c in range(cores.shape[0]):
        row = cores[c]
        budget = row[CoreColumn.BUDGET]
        out[c, CoreFeature.PRESENT] = 1.0
        out[c, CoreFeature.HOSTS] = 1.0 if row[CoreColumn.HOST] >= 0.0 else 0.0
        out[c, CoreFeature.LOCKED] = row[CoreColumn.LOCKED]
        out[c, CoreFeature.TASKS] = saturate(row[CoreColumn.TASKS], 1.0)
        out[c, CoreFeature.BUDGET] = math.log(budget) / math.log(MOST_EVENTS)
        out[c, CoreFeature.ALWAYS] = row[CoreColumn.ALWAYS]
        out[c, CoreFeature.SETTABLE] = row[CoreColumn.SETTABLE]
        out[c, CoreFeature.THROTTLED] = row[CoreColumn.THROTTLED]
        out[c, CoreFeature.SPENT] = clip(row[CoreColumn.MISSES] / budget)
        out[c, CoreFeature.LAST_SPENT] = clip(row[CoreColumn.LAST_MISSES] / budget)
        out[c, CoreFeature.NEXT_TICK] = saturate(max(0.0, row[CoreColumn.NEXT_TICK_US] - time_us), PERIOD_US)
        if row[CoreColumn.MEMORY_US] > 0.0:
            rate = row[CoreColumn.ALL_MISSES] / row[CoreColumn.MEMORY_US]
            out[c, CoreFeature.MISS_RATE] = saturate(rate, DEMANDING_PER_US)
        if time_us > 0.0:
            out[c, CoreFeature.THROTTLED_SHARE] = clip(row[CoreColumn.THROTTLED_US] / time_us)
            out[c, CoreFeature.MEMORY_SHARE] = clip(row[CoreColumn.MEMORY_US] / time_us)
            out[c, CoreFeature.COMPUTE_SHARE] = clip(row[CoreColumn.COMPUTE_US] / time_us)


KNOB_TABLE = "knobs"
"""Name of the table in observations."""


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
    """Write the table of knobs.

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

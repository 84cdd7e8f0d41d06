"""What an observation adds where budgets of CPU cores can be set: who is on them, and what they did with their budgets.

All of it follows from the present view, so that an environment, a saved state and a scheduler see the same.
"""

from __future__ import annotations

import math
from typing import Final

from gpusched_env.compiling import cached
from gpusched_env.envs.encoding import Features, Floats, clip, saturate
from gpusched_env.envs.features import FLAG, RATIO, SHARE, Feature
from gpusched_env.scheduling.core_column import CoreColumn
from gpusched_env.workload.cores.spec import MOST_EVENTS

TABLE = "cores"
"""Name of the table."""
DEMANDING_PER_US: Final = 62.5
"""Misses a microsecond that count as one half: 4 GB/s of lines of 64 bytes."""
PERIOD_US: Final = 1000.0
"""Until a tick that counts as one half: the usual period."""


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
    """Write the table.

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

"""Filling a view's table of CPU cores; both devices run this text."""

from __future__ import annotations

from gpusched_env.compiling import procedure
from gpusched_env.scheduling.core_column import CoreColumn
from gpusched_env.workload.cores.ticking import works
from gpusched_env.workload.cores.world import core, core_rules, process


@procedure
def throttled_us(w, k):
    """For how long a core was throttled."""
    return (k.throttled_ps + (w.now_ps - k.throttled_since_ps if k.throttled == 1 else 0)) / 1e6


@procedure
def all_throttled_us(w):
    """For how long cores were throttled, summed in their order."""
    total = 0.0
    for c in range(core_rules(w).cores):
        total += throttled_us(w, core(w, c))
    return total


@procedure
def fill_cores(w, out):
    """Fill the rows of all cores, shape ``(cores, columns)``; the cores themselves stay as they are."""
    for c in range(core_rules(w).cores):
        k = core(w, c)
        row = out[c]
        since_ps = w.now_ps - k.since_ps if works(k) else 0
        memory_ps = 0
        compute_ps = 0
        misses = 0.0
        if since_ps > 0:
            p = process(w, k.current)
            if p.misses_per_us > 0.0:
                memory_ps = since_ps
            else:
                compute_ps = since_ps
            if p.counted == 1:
                misses = p.misses_per_us * (since_ps / 1e6)
        row[CoreColumn.NUMBER] = k.number
        row[CoreColumn.HOST] = k.host
        row[CoreColumn.TASKS] = k.processes
        row[CoreColumn.LOCKED] = k.locked
        row[CoreColumn.BUDGET] = k.setting
        row[CoreColumn.ALWAYS] = k.always
        row[CoreColumn.MISSES] = k.misses + misses
        row[CoreColumn.LAST_MISSES] = k.last_misses
        row[CoreColumn.THROTTLED] = k.throttled
        row[CoreColumn.THROTTLED_US] = throttled_us(w, k)
        row[CoreColumn.MEMORY_US] = (k.memory_ps + memory_ps) / 1e6
        row[CoreColumn.COMPUTE_US] = (k.compute_ps + compute_ps) / 1e6
        row[CoreColumn.ALL_MISSES] = k.all_misses + k.misses + misses
        row[CoreColumn.NEXT_TICK_US] = k.tick_ps / 1e6
        row[CoreColumn.SETTABLE] = 1.0 if k.set_ps < w.now_ps else 0.0

"""What a view shows of the CPU cores that share the GPU's memory; both devices fill it by this text."""

from __future__ import annotations

import enum

from gpusched_env.compiling import procedure
from gpusched_env.workload.cores.ticking import core, core_rules, process, process_runs


class CoreColumn(enum.IntEnum):
    """One row a core, in the scenario's order; none where it names no cores."""

    NUMBER = 0
    """Number of the core."""
    HOST = enum.auto()
    """Row of the tenant whose host runs here; -1: none."""
    TASKS = enum.auto()
    """Processes in its run queue, the running one included."""
    LOCKED = enum.auto()
    """1 while its host holds the bandwidth lock and runs."""
    BUDGET = enum.auto()
    """Misses a period that it has while a lock counts."""
    ALWAYS = enum.auto()
    """1 if it has that budget also while no lock counts."""
    MISSES = enum.auto()
    """Counted misses in its present period."""
    LAST_MISSES = enum.auto()
    """Counted misses in its period before that."""
    THROTTLED = enum.auto()
    """1 while it has spent its budget."""
    THROTTLED_US = enum.auto()
    """Time for which it was throttled, summed."""
    MEMORY_US = enum.auto()
    """Time for which processes ran on it that miss the cache, summed."""
    COMPUTE_US = enum.auto()
    """Time for which its other processes ran, summed."""
    ALL_MISSES = enum.auto()
    """Counted misses since the beginning."""
    NEXT_TICK_US = enum.auto()
    """When its next period begins."""
    SETTABLE = enum.auto()
    """1 if ``SetBudget`` of it is legal now: its budget was not set at this instant already."""


@procedure
def throttled_us(w, k):
    """Time for which a core was throttled."""
    return (k.throttled_ps + (w.now_ps - k.throttled_since_ps if k.throttled == 1 else 0)) / 1e6


@procedure
def all_throttled_us(w):
    """Time for which cores were throttled, summed in their order."""
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
        since_ps = w.now_ps - k.since_ps if process_runs(k) else 0
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

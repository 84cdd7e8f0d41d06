"""What a view shows of the CPU cores that share the GPU's memory."""

from __future__ import annotations

import enum


class CoreColumn(enum.IntEnum):
    """One row a core, in the scenario's order; none where it names no cores."""

    NUMBER = 0
    """Of the core."""
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

"""How fast resident blocks progress: the laws of ``hardware.contention`` applied to all SMs.

Many SMs hold the same. Neighbours with equal residents share one evaluation, and neighbours with equal
traffic are one member of the bandwidth sharing, so the cost is that of comparing them.
The arrays are those of :mod:`~gpusched_env.devices.reference.state`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gpusched_env.devices.reference.state import (
    COUNT,
    DEMAND,
    DEPTH,
    DIRTY,
    DRAM_BYTES,
    DRAM_NORM,
    DRAM_RATE,
    FROZEN,
    GRID,
    ISSUE_FRACTION,
    ISSUE_NORM,
    LATENCY_US,
    LEFT,
    NEXT,
    NOW,
    RATE,
    ROWS,
    RUN_DEMAND,
    RUN_SMS,
    SM_DRAM_RATE,
    THROTTLE,
    TIME_US,
    TRAFFIC,
)
from gpusched_env.hardware.contention import (
    NO_LEVEL,
    block_time_us,
    fair_level,
    issue_stretch,
    served_traffic,
    throttle,
)


@njit(cache=True, _nrt=False)
def set_rates(physics, sms, memory, rows, held, grids, work, counts, clock):
    """Rates of all rows, and the DRAM traffic."""
    runs = issue(physics, sms, memory, rows, held, grids, work)
    level, clock[TRAFFIC] = share_bandwidth(runs, physics, memory)
    deepest = 0
    for rank in range(sms.shape[1]):
        depth = sms[ROWS, rank]
        deepest = max(deepest, depth)
        slow = throttle(memory[DEMAND, rank], level)
        if depth > 0 and (sms[DIRTY, rank] == 1 or slow != memory[THROTTLE, rank]):
            memory[THROTTLE, rank] = slow
            for r in range(depth):
                slot = held[GRID, r, rank]
                if grids[slot, FROZEN] == 1:
                    rows[RATE, r, rank] = 0.0
                elif work[slot, DRAM_BYTES] > 0.0:
                    rows[RATE, r, rank] = slow / rows[TIME_US, r, rank]
                else:
                    rows[RATE, r, rank] = 1.0 / rows[TIME_US, r, rank]
        sms[DIRTY, rank] = 0
    counts[DEPTH] = deepest


@njit(cache=True, _nrt=False)
def issue(physics, sms, memory, rows, held, grids, work):
    """Block durations and DRAM demands from issue-slot sharing, on SMs whose residents changed.

    Returns:
        the number of runs of neighbouring SMs with equal demand (in ``RUN_DEMAND`` and ``RUN_SMS``).
    """
    runs = 0
    run_demand = -1.0
    run_sms = 0.0
    twin = -1
    for rank in range(sms.shape[1]):
        if sms[DIRTY, rank] == 1:
            if twin >= 0 and same_residents(rank, twin, sms, held):
                memory[DEMAND, rank] = memory[DEMAND, twin]
                for r in range(sms[ROWS, rank]):
                    rows[TIME_US, r, rank] = rows[TIME_US, r, twin]
            else:
                twin = rank
                issue_on(rank, physics, sms, memory, rows, held, grids, work)
        if memory[DEMAND, rank] != run_demand:
            run_demand = memory[DEMAND, rank]
            run_sms = 0.0
            memory[RUN_DEMAND, runs] = run_demand
            runs += 1
        run_sms += 1.0
        memory[RUN_SMS, runs - 1] = run_sms
    return runs


@njit(cache=True, _nrt=False, forceinline=True)
def same_residents(a, b, sms, held):
    """Whether the rows of two SMs are of the same grids, with as many blocks."""
    if sms[ROWS, a] != sms[ROWS, b]:
        return False
    for r in range(sms[ROWS, a]):
        if held[GRID, r, a] != held[GRID, r, b] or held[COUNT, r, a] != held[COUNT, r, b]:
            return False
    return True


@njit(cache=True, _nrt=False)
def issue_on(rank, physics, sms, memory, rows, held, grids, work):
    """Block durations on one SM, and the SM's DRAM demand at that pace."""
    demand = 0.0
    squared = 0.0
    for r in range(sms[ROWS, rank]):
        slot = held[GRID, r, rank]
        if grids[slot, FROZEN] == 0:
            fraction = work[slot, ISSUE_FRACTION]
            demand += held[COUNT, r, rank] * fraction
            squared += held[COUNT, r, rank] * fraction * fraction
    mean = squared / demand if demand > 0.0 else 0.0
    stretch = issue_stretch(demand, physics[ISSUE_NORM])
    traffic = 0.0
    for r in range(sms[ROWS, rank]):
        slot = held[GRID, r, rank]
        time_us = block_time_us(work[slot, LATENCY_US], work[slot, ISSUE_FRACTION], mean, stretch)
        rows[TIME_US, r, rank] = time_us
        if grids[slot, FROZEN] == 0:
            traffic += held[COUNT, r, rank] * work[slot, DRAM_BYTES] / time_us
    memory[DEMAND, rank] = traffic


@njit(cache=True, _nrt=False)
def share_bandwidth(runs, physics, memory):
    """The fair level of DRAM traffic an SM (bytes/us), and the traffic served in total."""
    total = 0.0
    for run in range(runs):
        total += memory[RUN_DEMAND, run] * memory[RUN_SMS, run]
    if total <= 0.0:
        return NO_LEVEL, 0.0
    served = served_traffic(total, physics[DRAM_RATE], physics[DRAM_NORM])
    level = min(fair_level(memory[RUN_DEMAND, :runs], memory[RUN_SMS, :runs], served), physics[SM_DRAM_RATE])
    traffic = 0.0
    for run in range(runs):
        traffic += memory[RUN_DEMAND, run] * throttle(memory[RUN_DEMAND, run], level) * memory[RUN_SMS, run]
    return level, traffic


@njit(cache=True, _nrt=False)
def set_next(sms, rows, counts, clock):
    """The time of the next block end."""
    soonest = np.inf
    for r in range(counts[DEPTH]):
        for rank in range(sms.shape[1]):
            if rows[RATE, r, rank] > 0.0:
                soonest = min(soonest, rows[LEFT, r, rank] / rows[RATE, r, rank])
    clock[NEXT] = clock[NOW] + soonest

"""How fast resident blocks progress: the laws of ``hardware.contention`` applied to all SMs.

Many SMs hold the same. Neighbours with equal residents share one evaluation, and SMs with equal
traffic are one kind in the bandwidth sharing, so the cost is that of comparing them.
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
    GRID,
    HELD_FIELDS,
    ISSUE,
    KIND_DEMAND,
    KIND_LOADING,
    KIND_SMS,
    LATENCY_US,
    LEFT,
    LIGHT_WAIT,
    LOADING,
    LOG_IDLE,
    NEXT,
    NOW,
    OLDEST_FIRST,
    RATE,
    RHO,
    ROWS,
    STOPPED,
    SUB_PARTITIONS,
    THROTTLE,
    TIME_US,
    TRAFFIC,
    WAIT,
    WARPS,
)
from gpusched_env.hardware.contention import (
    NO_TRAFFIC,
    NO_WARPS,
    block_rate,
    share_bandwidth,
    share_slots,
    slot_stretch,
    throttle,
    warps_on,
    with_traffic,
    with_warps,
)


@njit(_nrt=False)
def set_rates(physics, sms, memory, rows, held, grids, work, counts, clock):
    """Rates of all rows, and the DRAM traffic."""
    kinds = issue(physics, sms, memory, rows, held, grids, work)
    shared = share_bandwidth(
        memory[KIND_DEMAND], memory[KIND_LOADING], memory[KIND_SMS], kinds, physics[DRAM_RATE], physics[DRAM_NORM]
    )
    clock[TRAFFIC] = shared.traffic
    counts[DEPTH] = 0
    for rank in range(sms.shape[1]):
        depth = sms[ROWS, rank]
        counts[DEPTH] = max(counts[DEPTH], depth)
        slow = throttle(memory[DEMAND, rank], memory[LOADING, rank], shared.level)
        if depth > 0 and (sms[DIRTY, rank] == 1 or slow != memory[THROTTLE, rank]):
            memory[THROTTLE, rank] = slow
            for r in range(depth):
                if held[STOPPED, r, rank] == 1:
                    rows[RATE, r, rank] = 0.0
                else:
                    bytes_ = work[held[GRID, r, rank], DRAM_BYTES]
                    rows[RATE, r, rank] = block_rate(rows[TIME_US, r, rank], bytes_, slow)
        sms[DIRTY, rank] = 0


@njit(_nrt=False)
def issue(physics, sms, memory, rows, held, grids, work):
    """Block durations and DRAM demands from issue-slot sharing, on SMs whose residents changed.

    Returns:
        the number of kinds of SMs with equal traffic (in ``KIND_DEMAND`` .. ``KIND_SMS``).
    """
    kinds = 0
    twin = -1
    for rank in range(sms.shape[1]):
        if sms[DIRTY, rank] == 1:
            if twin >= 0 and same_residents(rank, twin, sms, held):
                memory[DEMAND, rank] = memory[DEMAND, twin]
                memory[LOADING, rank] = memory[LOADING, twin]
                for r in range(sms[ROWS, rank]):
                    rows[TIME_US, r, rank] = rows[TIME_US, r, twin]
            else:
                twin = rank
                issue_on(rank, physics, sms, memory, rows, held, grids, work)
        if memory[DEMAND, rank] > 0.0:
            kinds = count_in(memory[DEMAND, rank], memory[LOADING, rank], kinds, memory)
    return kinds


@njit(_nrt=False, forceinline=True)
def count_in(demand, loading, kinds, memory):
    """Add an SM to its kind; returns the number of kinds.

    They are in order of demand and weight, so that sums over them do not hang on where the SMs are.
    """
    at = kinds
    while at > 0 and (
        memory[KIND_DEMAND, at - 1] > demand
        or (memory[KIND_DEMAND, at - 1] == demand and memory[KIND_LOADING, at - 1] > loading)
    ):
        at -= 1
    if at > 0 and memory[KIND_DEMAND, at - 1] == demand and memory[KIND_LOADING, at - 1] == loading:
        memory[KIND_SMS, at - 1] += 1.0
        return kinds
    for i in range(kinds, at, -1):
        memory[KIND_DEMAND, i] = memory[KIND_DEMAND, i - 1]
        memory[KIND_LOADING, i] = memory[KIND_LOADING, i - 1]
        memory[KIND_SMS, i] = memory[KIND_SMS, i - 1]
    memory[KIND_DEMAND, at] = demand
    memory[KIND_LOADING, at] = loading
    memory[KIND_SMS, at] = 1.0
    return kinds + 1


@njit(_nrt=False, forceinline=True)
def same_residents(a, b, sms, held):
    """Whether the rows of two SMs are of the same grids, with as many blocks, which run or do not."""
    if sms[ROWS, a] != sms[ROWS, b]:
        return False
    for r in range(sms[ROWS, a]):
        for field in range(HELD_FIELDS):
            if held[field, r, a] != held[field, r, b]:
                return False
    return True


@njit(_nrt=False)
def issue_on(rank, physics, sms, memory, rows, held, grids, work):
    """Block durations on one SM, and the SM's DRAM demand at that pace. Rows are in order of age."""
    running = NO_WARPS
    for r in range(sms[ROWS, rank]):
        slot = held[GRID, r, rank]
        if held[STOPPED, r, rank] == 0:
            warps = warps_on(held[COUNT, r, rank], grids[slot, WARPS], physics[SUB_PARTITIONS])
            running = with_warps(running, warps, work[slot, RHO], work[slot, LOG_IDLE])
    sharing = share_slots(running, physics[ISSUE], physics[OLDEST_FIRST], physics[LIGHT_WAIT])
    older = NO_WARPS
    asked = NO_TRAFFIC
    for r in range(sms[ROWS, rank]):
        slot = held[GRID, r, rank]
        time_us = work[slot, LATENCY_US]
        if held[STOPPED, r, rank] == 0:
            warps = warps_on(held[COUNT, r, rank], grids[slot, WARPS], physics[SUB_PARTITIONS])
            time_us *= slot_stretch(sharing, older, warps, work[slot, RHO], work[slot, WAIT], work[slot, LOG_IDLE])
            older = with_warps(older, warps, work[slot, RHO], work[slot, LOG_IDLE])
            asked = with_traffic(asked, held[COUNT, r, rank], warps, work[slot, DRAM_BYTES], time_us)
        rows[TIME_US, r, rank] = time_us
    memory[DEMAND, rank] = asked.demand
    memory[LOADING, rank] = asked.loading


@njit(_nrt=False)
def set_next(sms, rows, counts, clock):
    """The time of the next block end."""
    soonest = np.inf
    for r in range(counts[DEPTH]):
        for rank in range(sms.shape[1]):
            if rows[RATE, r, rank] > 0.0:
                soonest = min(soonest, rows[LEFT, r, rank] / rows[RATE, r, rank])
    clock[NEXT] = clock[NOW] + soonest

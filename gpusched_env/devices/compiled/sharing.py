"""How resident blocks share issue slots and DRAM bandwidth, by classes of equal SMs: their rates, and when they end.

Whatever has not changed since the last time stands: shares of issue slots where residents are the same, the fair level
of traffic where SMs ask for the same, and throttles at the same level.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    class_ends,
    classes,
    grids,
    kind_demands,
    kind_loadings,
    kind_sms,
    kinds,
    problem,
    rows,
)
from gpusched_env.hardware.clock import NEVER, to_ps
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


@called
def set_rates(w, context):
    """Rates of all rows, the DRAM traffic, and the time of the next block end, or when blocks come to their limit."""
    for sm_class in range(1, context.classes):
        if classes(context, sm_class).dirty == 1:
            share_issue_slots(w, context, sm_class)
    before = context.level
    share_dram(w, context)
    soonest_ps = NEVER
    demand = 0.0
    loading = 0.0
    slow = 1.0
    for sm_class in range(1, context.classes):
        sm = classes(context, sm_class)
        if sm.dirty == 1 or context.level != before:
            if sm.demand != demand or sm.loading != loading:
                demand = sm.demand
                loading = sm.loading
                slow = throttle(demand, loading, context.level)
            if sm.dirty == 1 or slow != sm.throttle:
                sm.throttle = slow
                sm.dirty = 0
                set_class_rates(context, sm_class)
        soonest_ps = min(soonest_ps, class_ends(context, sm_class).value)
    context.next_ps = soonest_ps


@called
def set_class_rates(context, sm_class):
    """Rates of all rows of a class, and its next block end."""
    sm = classes(context, sm_class)
    soonest_ps = NEVER
    for r in range(sm.rows):
        row = rows(context, sm_class, r)
        rate = 0.0
        if not makes_no_progress(row):
            rate = block_rate(row.time_us, grids(context, row.grid).dram_bytes, sm.throttle)
        set_rate(context, row, rate)
        soonest_ps = min(soonest_ps, row.end_ps)
    class_ends(context, sm_class).value = soonest_ps


@inlined
def makes_no_progress(row):
    """Whether the blocks of a row make no progress: for a preemption, or for want of tiles."""
    return row.stopped == 1 or row.held == 1


@inlined
def set_rate(context, row, rate):
    """Let a row make progress at a rate from now on; nothing changes if that is its rate to the last bit."""
    if rate == row.rate:
        return
    row.left -= row.rate * ((context.now_ps - row.at_ps) / 1e6)
    row.at_ps = context.now_ps
    row.rate = rate
    row.end_ps = context.now_ps + max(1, to_ps((row.left - row.floor) / rate)) if rate > 0.0 else NEVER


@called
def share_issue_slots(w, context, sm_class):
    """Block durations on the SMs of a class, and an SM's DRAM demand at that pace. Rows are in order of age."""
    physics = problem(w)
    sm = classes(context, sm_class)
    running = NO_WARPS
    for r in range(sm.rows):
        row = rows(context, sm_class, r)
        grid = grids(context, row.grid)
        if not makes_no_progress(row):
            running = with_warps(
                running, warps_on(row.blocks, grid.warps, physics.sub_partitions), grid.rho, grid.log_idle
            )
    sharing = share_slots(running, physics.issue, physics.oldest_first, physics.light_wait)
    older = NO_WARPS
    asked = NO_TRAFFIC
    for r in range(sm.rows):
        row = rows(context, sm_class, r)
        grid = grids(context, row.grid)
        row.time_us = grid.latency_us
        if not makes_no_progress(row):
            warps = warps_on(row.blocks, grid.warps, physics.sub_partitions)
            row.time_us *= slot_stretch(sharing, older, warps, grid.rho, grid.wait, grid.log_idle)
            older = with_warps(older, warps, grid.rho, grid.log_idle)
            asked = with_traffic(asked, row.blocks, warps, grid.dram_bytes, row.time_us)
    if asked.demand != sm.demand or asked.loading != sm.loading:
        count_traffic(context, sm.demand, sm.loading, -sm.sms)
        count_traffic(context, asked.demand, asked.loading, sm.sms)
        sm.demand = asked.demand
        sm.loading = asked.loading


@inlined
def share_dram(w, context):
    """The DRAM traffic, and the fair level of it for a weight of 1, unless they stand."""
    if context.asks_anew == 0 and context.shared == w.dram_left:
        return
    context.asks_anew = 0
    context.shared = w.dram_left
    at = context.kinds_at
    count = context.kinds
    memory = share_bandwidth(
        kind_demands(at, count), kind_loadings(at, count), kind_sms(at, count), count, w.dram_left,
        problem(w).dram_norm,
    )  # fmt: skip
    context.traffic = memory.traffic
    context.level = memory.level


@called
def count_traffic(context, demand, loading, sms):
    """Count ``sms`` more SMs that ask for the same of DRAM; below 0: fewer.

    The kinds of such SMs are in order of demand and weight, as in the reference.
    """
    if demand <= 0.0:
        return
    context.asks_anew = 1
    at = context.kinds
    while at > 0 and comes_behind(kinds(context, at - 1), demand, loading):
        at -= 1
    if at > 0 and kinds(context, at - 1).demand == demand and kinds(context, at - 1).loading == loading:
        kinds(context, at - 1).sms += sms
        if kinds(context, at - 1).sms == 0:
            context.kinds -= 1
            for i in range(at - 1, context.kinds):
                copy_kind(kinds(context, i + 1), kinds(context, i))
        return
    for i in range(context.kinds, at, -1):
        copy_kind(kinds(context, i - 1), kinds(context, i))
    context.kinds += 1
    kind = kinds(context, at)
    kind.demand = demand
    kind.loading = loading
    kind.sms = sms


@inlined
def comes_behind(kind, demand, loading):
    """Whether a kind of SMs comes behind one of that demand and weight."""
    return kind.demand > demand or (kind.demand == demand and kind.loading > loading)


@inlined
def copy_kind(source, target):
    """Copy a record of :data:`~gpusched_env.devices.compiled.layout.KIND`."""
    target.sms = source.sms
    target.demand = source.demand
    target.loading = source.loading

"""How fast resident blocks progress: the laws of ``hardware.contention`` applied to classes of equal SMs."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
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
def set_rates(w, x):
    """Rates of all rows, and the DRAM traffic."""
    for c in range(1, x.classes):
        if classes(x, c).dirty == 1:
            issue_on(w, x, c)
    at = x.kinds_at
    count = find_kinds(x)
    memory = share_bandwidth(
        kind_demands(at, count), kind_loadings(at, count), kind_sms(at, count), count, w.dram_left,
        problem(w).dram_norm,
    )  # fmt: skip
    x.traffic = memory.traffic
    for c in range(1, x.classes):
        sm = classes(x, c)
        slow = throttle(sm.demand, sm.loading, memory.level)
        if sm.dirty == 1 or slow != sm.throttle:
            sm.throttle = slow
            for r in range(sm.rows):
                row = rows(x, c, r)
                progress = 0.0 if stands(row) else block_rate(row.time_us, grids(x, row.grid).dram_bytes, slow)
                set_rate(x, row, progress)
        sm.dirty = 0


@inlined
def stands(row):
    """Whether the blocks of a row make no progress: for a preemption, or for want of tiles."""
    return row.stopped == 1 or row.held == 1


@inlined
def period_ps(rate):
    """How long a whole block takes at a rate (> 0, blocks/us)."""
    return max(1, to_ps(1.0 / rate))


@inlined
def set_rate(x, row, rate):
    """From now on, a row makes progress at a rate; nothing changes if that is its rate to the last bit."""
    if rate == row.rate:
        return
    row.left -= row.rate * ((x.now_ps - row.at_ps) / 1e6)
    row.at_ps = x.now_ps
    row.rate = rate
    row.end_ps = x.now_ps + max(1, to_ps((row.left - row.floor) / rate)) if rate > 0.0 else NEVER


@called
def issue_on(w, x, c):
    """Block durations on the SMs of a class, and an SM's DRAM demand at that pace. Rows are in order of age."""
    physics = problem(w)
    sm = classes(x, c)
    running = NO_WARPS
    for r in range(sm.rows):
        row = rows(x, c, r)
        grid = grids(x, row.grid)
        if not stands(row):
            running = with_warps(
                running, warps_on(row.blocks, grid.warps, physics.sub_partitions), grid.rho, grid.log_idle
            )
    sharing = share_slots(running, physics.issue, physics.oldest_first, physics.light_wait)
    older = NO_WARPS
    asked = NO_TRAFFIC
    for r in range(sm.rows):
        row = rows(x, c, r)
        grid = grids(x, row.grid)
        row.time_us = grid.latency_us
        if not stands(row):
            warps = warps_on(row.blocks, grid.warps, physics.sub_partitions)
            row.time_us *= slot_stretch(sharing, older, warps, grid.rho, grid.wait, grid.log_idle)
            older = with_warps(older, warps, grid.rho, grid.log_idle)
            asked = with_traffic(asked, row.blocks, warps, grid.dram_bytes, row.time_us)
    sm.demand = asked.demand
    sm.loading = asked.loading


@called
def find_kinds(x):
    """The kinds of SMs with equal traffic, in order of demand and weight, as in the reference; gives their number."""
    count = 0
    for c in range(1, x.classes):
        sm = classes(x, c)
        if sm.demand <= 0.0:
            continue
        at = count
        while at > 0 and (
            kinds(x, at - 1).demand > sm.demand
            or (kinds(x, at - 1).demand == sm.demand and kinds(x, at - 1).loading > sm.loading)
        ):
            at -= 1
        if at > 0 and kinds(x, at - 1).demand == sm.demand and kinds(x, at - 1).loading == sm.loading:
            kinds(x, at - 1).sms += sm.sms
            continue
        for i in range(count, at, -1):
            kinds(x, i).demand = kinds(x, i - 1).demand
            kinds(x, i).loading = kinds(x, i - 1).loading
            kinds(x, i).sms = kinds(x, i - 1).sms
        kinds(x, at).demand = sm.demand
        kinds(x, at).loading = sm.loading
        kinds(x, at).sms = sm.sms
        count += 1
    return count


@called
def set_next(x):
    """The time of the next block end, or when blocks come to their limit."""
    soonest_ps = NEVER
    for c in range(1, x.classes):
        for r in range(classes(x, c).rows):
            soonest_ps = min(soonest_ps, rows(x, c, r).end_ps)
    x.next_ps = soonest_ps

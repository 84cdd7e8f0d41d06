"""How fast resident blocks progress: the laws of ``hardware.contention`` applied to classes of equal SMs."""

from __future__ import annotations

import math

from gpusched_env.devices.compiled.access import classes, grids, kinds, problem, rows
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.hardware.contention import (
    NEGLIGIBLE,
    block_stretch,
    first_level,
    granted,
    mean_stretch,
    newton_gap,
    served_traffic,
    tilt,
)


@called
def set_rates(w, x):
    """Rates of all rows, and the DRAM traffic."""
    for c in range(1, x.classes):
        if classes(x, c).dirty == 1:
            issue_on(w, x, c)
    level = share_bandwidth(w, x)
    for c in range(1, x.classes):
        sm = classes(x, c)
        slow = 1.0
        if level > 0.0 and sm.demand > 0.0:
            slow = granted(sm.demand, level * sm.loading) / sm.demand
        if sm.dirty == 1 or slow != sm.throttle:
            sm.throttle = slow
            for r in range(sm.rows):
                row = rows(x, c, r)
                if stands(row):
                    set_rate(x, row, 0.0)
                elif grids(x, row.grid).dram_bytes > 0.0:
                    set_rate(x, row, slow / row.time_us)
                else:
                    set_rate(x, row, 1.0 / row.time_us)
        sm.dirty = 0


@inlined
def stands(row):
    """Whether the blocks of a row make no progress: for a preemption, or without their tiles."""
    return row.stopped == 1 or row.waits == 1


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
    row.end_ps = x.now_ps + max(1, to_ps(row.left / rate)) if rate > 0.0 else NEVER


@called
def issue_on(w, x, c):
    """Block durations on the SMs of a class, and an SM's DRAM demand at that pace. Rows are in order of age."""
    physics = problem(w)
    sm = classes(x, c)
    demand = 0.0
    squared = 0.0
    log_idle = 0.0
    for r in range(sm.rows):
        row = rows(x, c, r)
        grid = grids(x, row.grid)
        if not stands(row):
            warps = row.blocks * grid.warps / physics.sub_partitions
            demand += warps * grid.rho
            squared += warps * grid.rho * grid.rho
            log_idle += warps * grid.log_idle
    mean = mean_stretch(demand, log_idle)
    leaning = tilt(demand) * physics.oldest_first
    before = 0.0
    log_idle_older = 0.0
    traffic = 0.0
    loading = 0.0
    for r in range(sm.rows):
        row = rows(x, c, r)
        grid = grids(x, row.grid)
        time_us = grid.latency_us
        warps = row.blocks * grid.warps / physics.sub_partitions
        if physics.issue > 0.0 and demand > 0.0 and not stands(row):
            own = warps * grid.rho
            log_idle_own = warps * grid.log_idle
            middle = (before + 0.5 * own) / demand
            wait = grid.wait if physics.light_wait > 0.0 else 0.0
            time_us *= block_stretch(
                grid.rho,
                wait,
                squared / demand,
                mean,
                leaning,
                middle,
                log_idle_older,
                log_idle - log_idle_older - log_idle_own,
            )
            before += own
            log_idle_older += log_idle_own
        row.time_us = time_us
        if not stands(row) and grid.dram_bytes > 0.0:
            traffic += row.blocks * grid.dram_bytes / time_us
            loading += warps
    sm.demand = traffic
    sm.loading = loading


@called
def share_bandwidth(w, x):
    """The fair level of DRAM traffic for a weight of 1 (bytes/us; 0: nobody is held up); sets the traffic served."""
    count = find_kinds(x)
    total = 0.0
    for i in range(count):
        total += kinds(x, i).demand * kinds(x, i).sms
    x.traffic = total
    if total <= 0.0:
        x.traffic = 0.0
        return 0.0
    served = served_traffic(total, problem(w).dram_bytes_per_us, problem(w).dram_norm)
    if served >= NEGLIGIBLE * total:
        return 0.0
    x.traffic = served
    return fair_level(x, count, total, served)


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
def fair_level(x, count, total, capacity):
    """:func:`~gpusched_env.hardware.contention.fair_level` over the kinds."""
    weight = 0.0
    for i in range(count):
        weight += kinds(x, i).loading * kinds(x, i).sms
    level = first_level(total, weight, capacity)
    for _ in range(60):
        shared = 0.0
        slope = 0.0
        for i in range(count):
            kind = kinds(x, i)
            traffic = granted(kind.demand, level * kind.loading)
            served = traffic / kind.demand
            shared += traffic * kind.sms
            slope += traffic * (1.0 - served * served) * kind.sms
        gap = newton_gap(capacity, shared, slope)
        level *= math.exp(gap)
        if abs(gap) < 1e-12:
            break
    return level


@called
def set_next(x):
    """The time of the next block end."""
    soonest_ps = NEVER
    for c in range(1, x.classes):
        for r in range(classes(x, c).rows):
            soonest_ps = min(soonest_ps, rows(x, c, r).end_ps)
    x.next_ps = soonest_ps

"""Progress of resident blocks, by classes of equal SMs. Rates are constant between events, so every step is exact.

A row knows when it ends at its present rate; nothing is computed anew unless the rate changes.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import members as sets
from gpusched_env.devices.compiled.access import (
    classes,
    grids,
    kind_demands,
    kind_loadings,
    kind_sms,
    kinds,
    members,
    problem,
    queue,
    rows,
    scratch,
)
from gpusched_env.devices.compiled.classes import join, merge, occupy, remove_row, split
from gpusched_env.devices.compiled.dispatch import overlap
from gpusched_env.devices.compiled.ends import end_blocks
from gpusched_env.devices.compiled.layout import PARTITION, PICK
from gpusched_env.devices.compiled.tiles import find_limits, reach_limits, save_block
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
    """Rates of all rows, and the DRAM traffic."""
    for sm_class in range(1, context.classes):
        if classes(context, sm_class).dirty == 1:
            share_issue_slots(w, context, sm_class)
    at = context.kinds_at
    count = find_kinds(context)
    memory = share_bandwidth(
        kind_demands(at, count), kind_loadings(at, count), kind_sms(at, count), count, w.dram_left,
        problem(w).dram_norm,
    )  # fmt: skip
    context.traffic = memory.traffic
    for sm_class in range(1, context.classes):
        sm = classes(context, sm_class)
        slow = throttle(sm.demand, sm.loading, memory.level)
        if sm.dirty == 1 or slow != sm.throttle:
            sm.throttle = slow
            for r in range(sm.rows):
                row = rows(context, sm_class, r)
                progress = (
                    0.0
                    if makes_no_progress(row)
                    else block_rate(row.time_us, grids(context, row.grid).dram_bytes, slow)
                )
                set_rate(context, row, progress)
        sm.dirty = 0


@inlined
def makes_no_progress(row):
    """Whether the blocks of a row make no progress: for a preemption, or for want of tiles."""
    return row.stopped == 1 or row.held == 1


@inlined
def period_ps(rate):
    """How long a whole block takes at a rate (> 0, blocks/us)."""
    return max(1, to_ps(1.0 / rate))


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
    sm.demand = asked.demand
    sm.loading = asked.loading


@called
def find_kinds(context):
    """The kinds of SMs with equal traffic, in order of demand and weight, as in the reference; gives their number."""
    count = 0
    for sm_class in range(1, context.classes):
        sm = classes(context, sm_class)
        if sm.demand <= 0.0:
            continue
        at = count
        while at > 0 and (
            kinds(context, at - 1).demand > sm.demand
            or (kinds(context, at - 1).demand == sm.demand and kinds(context, at - 1).loading > sm.loading)
        ):
            at -= 1
        if at > 0 and kinds(context, at - 1).demand == sm.demand and kinds(context, at - 1).loading == sm.loading:
            kinds(context, at - 1).sms += sm.sms
            continue
        for i in range(count, at, -1):
            kinds(context, i).demand = kinds(context, i - 1).demand
            kinds(context, i).loading = kinds(context, i - 1).loading
            kinds(context, i).sms = kinds(context, i - 1).sms
        kinds(context, at).demand = sm.demand
        kinds(context, at).loading = sm.loading
        kinds(context, at).sms = sm.sms
        count += 1
    return count


@called
def set_next(context):
    """The time of the next block end, or when blocks come to their limit."""
    soonest_ps = NEVER
    for sm_class in range(1, context.classes):
        for r in range(classes(context, sm_class).rows):
            soonest_ps = min(soonest_ps, rows(context, sm_class, r).end_ps)
    context.next_ps = soonest_ps


WHOLE = 2.0**40
"""Work is summed in this part of a block, in whole numbers: so the sum does not hang on the order."""


@called
def end_due(w, context, now_ps):
    """Advance to ``now_ps``, not before the context's time nor behind a block end; end the blocks that end there."""
    context.now_ps = now_ps
    # A wave that was jumped over may end here, too.
    jumped = context.ahead == 1
    undo_jump(context)
    if context.tiles > 0:
        reach_limits(context, now_ps)
    if (jumped or context.next_ps <= now_ps) and mark_ended(context, now_ps):
        end_blocks(w, context)


@called
def update_rates(w, context, jumping):
    """New rates, and the next block end; ``jumping``: whether steady states may be jumped over, :func:`jump_waves`."""
    if context.tiles > 0:
        find_limits(w, context)
    merge(context)
    set_rates(w, context)
    if jumping and context.queued > 0:
        jump_waves(w, context)
    set_next(context)


@inlined
def mark_ended(context, now_ps):
    """Mark the classes that have a row that ends now; whether there is one."""
    some = False
    for sm_class in range(1, context.classes):
        sm = classes(context, sm_class)
        sm.ended = 0
        for r in range(sm.rows):
            if rows(context, sm_class, r).end_ps <= now_ps:
                sm.ended = 1
                some = True
                break
    return some


@called
def undo_jump(context):
    """Give waves that have not begun back to their grids."""
    if context.ahead == 0:
        return
    context.ahead = 0
    for sm_class in range(1, context.classes):
        for r in range(classes(context, sm_class).rows):
            row = rows(context, sm_class, r)
            if row.waves == 0:
                continue
            wave_ps = period_ps(row.rate)
            first_end_ps = row.end_ps - row.waves * wave_ps
            begun = waves_begun(context.now_ps, first_end_ps, wave_ps, row.waves)
            if begun > 0:
                row.since_ps = first_end_ps + (begun - 1) * wave_ps
                row.at_ps = row.since_ps
                row.left = 1.0
            row.end_ps = first_end_ps + begun * wave_ps
            grids(context, row.grid).waiting += (row.waves - begun) * row.blocks * classes(context, sm_class).sms
            row.waves = 0


@inlined
def waves_begun(now_ps, first_end_ps, wave_ps, waves):
    """How many have begun before ``now_ps``, of ``waves`` that follow each other from ``first_end_ps`` on."""
    if now_ps <= first_end_ps:
        return 0
    return min(waves, (now_ps - first_end_ps + wave_ps - 1) // wave_ps)


@called
def jump_waves(w, context):
    """Let rows of the head grid run several waves in one event, as far as its waiting blocks surely last.

    While a grid waits at the head of the queue, every slot that its blocks free is taken by its next
    blocks, so nothing changes from wave to wave. Rows get whole waves in advance; what is left over
    is dispatched block by block. Any other event gives unbegun waves back first (:func:`undo_jump`).
    """
    slot = queue(context, 0).value
    grid = grids(context, slot)
    if grid.saved > 0 or grid.spread > 0.0 or context.tiles > 0:
        return
    for position in range(1, context.queued):
        if not overlap(w, context, slot, queue(context, position).value):
            return
    blocks = 0
    shortest_ps = 0
    for sm_class in range(1, context.classes):
        sms = classes(context, sm_class).sms
        for r in range(classes(context, sm_class).rows):
            row = rows(context, sm_class, r)
            if row.grid == slot:
                blocks += row.blocks * sms
                if row.rate > 0.0:
                    wave_ps = period_ps(row.rate)
                    shortest_ps = wave_ps if shortest_ps == 0 else min(shortest_ps, wave_ps)
    spare = grid.waiting - 2 * blocks
    if spare <= blocks or shortest_ps == 0:
        return
    until_ps = context.now_ps + spare * shortest_ps // blocks
    for sm_class in range(1, context.classes):
        sm = classes(context, sm_class)
        if sm.carveout != grid.carveout:
            # When this wave ends the SM may be idle, and then takes the grid's own carve-out: no steady state.
            continue
        r = youngest_alone(context, sm_class, slot)
        if r >= 0 and rows(context, sm_class, r).rate > 0.0 and rows(context, sm_class, r).end_ps <= until_ps:
            row = rows(context, sm_class, r)
            wave_ps = period_ps(row.rate)
            # Waves that begin by then: the first when the present block ends.
            row.waves = (until_ps - row.end_ps) // wave_ps + 1
            row.end_ps += row.waves * wave_ps
            grid.waiting -= row.waves * row.blocks * sm.sms
            context.ahead = 1


@inlined
def youngest_alone(context, sm_class, slot):
    """The row of a grid in a class if it is the youngest there and the grid's only one, else -1.

    Rows are in order of age, which decides their rates: a wave takes the place of the one before it only if
    that was the youngest already.
    """
    last = classes(context, sm_class).rows - 1
    if last < 0 or rows(context, sm_class, last).grid != slot:
        return -1
    for r in range(last):
        if rows(context, sm_class, r).grid == slot:
            return -1
    return last


@inlined
def ended_blocks(grid):
    """How many blocks of a resident grid have ended."""
    return grid.total - grid.waiting - grid.resident


@called
def stop_blocks(w, context, slot, first, sms):
    """Stop the blocks of a grid that are resident on ``sms`` SMs from rank ``first`` on; returns their number."""
    undo_jump(context)
    context.changed = 1
    where = scratch(w, PARTITION)
    sets.ring(where, context.words, first, sms, problem(w).sms)
    stopped = 0
    for sm_class in range(1, context.classes):
        inside = sets.common(members(context, sm_class), where, context.words)
        if inside == 0 or not holds_grid(context, sm_class, slot):
            continue
        d = sm_class
        if inside < classes(context, sm_class).sms:
            picked = scratch(w, PICK)
            sets.copy(members(context, sm_class), picked, context.words)
            sets.keep(picked, where, context.words)
            d = split(context, sm_class, picked)
        classes(context, d).dirty = 1
        for r in range(classes(context, d).rows):
            row = rows(context, d, r)
            if row.grid == slot:
                row.stopped = 1
                set_rate(context, row, 0.0)
                stopped += row.blocks * inside
    return stopped


@inlined
def holds_grid(context, sm_class, slot):
    """Whether the SMs of a class hold blocks of a grid."""
    for r in range(classes(context, sm_class).rows):  # noqa: SIM110 (Numba has no any() over generators)
        if rows(context, sm_class, r).grid == slot:
            return True
    return False


@called
def evict(w, context, slot):
    """Take the stopped blocks of a grid off the SMs; they wait again, as saved ones with the mean of what is left.

    Where tiles are synchronised each goes on with what is left of its own.

    Returns:
        their number.
    """
    blocks = 0
    work = 0
    sm_class = context.classes - 1
    while sm_class > 0:
        sms = classes(context, sm_class).sms
        r = 0
        while r < classes(context, sm_class).rows:
            row = rows(context, sm_class, r)
            if row.grid != slot or row.stopped == 0:
                r += 1
                continue
            count = row.blocks
            blocks += count * sms
            number = int(row.number)
            left = row.left
            work += count * sms * int(left * WHOLE)
            remove_row(context, sm_class, r)
            occupy(context, sm_class, -count, slot, sms)
            if number >= 0:
                save_block(w, grids(context, slot).slot, number, left, count * sms)
        if classes(context, sm_class).rows == 0:
            join(context, sm_class, 0)
        sm_class -= 1
    if blocks > 0:
        grid = grids(context, slot)
        grid.saved_left = (grid.saved * grid.saved_left + work / WHOLE) / (grid.saved + blocks)
        grid.saved += blocks
        grid.waiting += blocks
    context.changed = 1
    return blocks


@called
def waiting_blocks(context, slot, now_ps):
    """Blocks of a grid not handed out at ``now_ps``, waves jumped over included."""
    waiting = grids(context, slot).waiting
    if context.ahead == 1:
        local_ps = now_ps if context.active == 1 else context.now_ps
        for sm_class in range(1, context.classes):
            for r in range(classes(context, sm_class).rows):
                row = rows(context, sm_class, r)
                if row.grid == slot and row.waves > 0:
                    wave_ps = period_ps(row.rate)
                    # A wave that begins at this instant has begun: all that happens at it has happened.
                    begun = waves_begun(local_ps + 1, row.end_ps - row.waves * wave_ps, wave_ps, row.waves)
                    waiting += (row.waves - begun) * row.blocks * classes(context, sm_class).sms
    return waiting

"""Progress of resident blocks, by classes of equal SMs. Rates are constant between events, so every step is exact.

A row knows when it ends at its present rate; nothing is computed anew unless the rate changes.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import members as sets
from gpusched_env.devices.compiled.access import (
    class_ends,
    classes,
    grids,
    members,
    problem,
    queue,
    rows,
    scratch,
)
from gpusched_env.devices.compiled.classes import join, merge, occupy, remove_row, soonest_end, split
from gpusched_env.devices.compiled.dispatch import overlap
from gpusched_env.devices.compiled.ends import end_blocks
from gpusched_env.devices.compiled.layout import PARTITION, PICK
from gpusched_env.devices.compiled.sharing import set_rate, set_rates
from gpusched_env.devices.compiled.tiles import find_limits, reach_limits, save_block
from gpusched_env.hardware.clock import NEVER, to_ps


@inlined
def period_ps(rate):
    """How long a whole block takes at a rate (> 0, blocks/us)."""
    return max(1, to_ps(1.0 / rate))


TRIES = 3
"""How often the end of a jump is moved until the waves up to it are no more than there are."""
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
    if (jumped or context.next_ps <= now_ps) and some_end(context, now_ps):
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


@inlined
def some_end(context, now_ps):
    """Whether a row of some class ends now."""
    for sm_class in range(1, context.classes):  # noqa: SIM110 (Numba has no any() over generators)
        if class_ends(context, sm_class).value <= now_ps:
            return True
    return False


@called
def undo_jump(context):
    """Give waves that have not begun back to their grids."""
    if context.ahead == 0:
        return
    context.ahead = 0
    for sm_class in range(1, context.classes):
        sm = classes(context, sm_class)
        row = rows(context, sm_class, sm.rows - 1)
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
        grids(context, row.grid).waiting += (row.waves - begun) * row.blocks * sm.sms
        row.waves = 0
        class_ends(context, sm_class).value = soonest_end(context, sm_class)


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
    # One block stays, so that the grid stays at the head of the queue.
    spare = grid.waiting - 1
    if spare <= grid.resident or not waves_are_next(context, slot):
        return
    fastest = 0.0
    for sm_class in range(1, context.classes):
        for r in range(classes(context, sm_class).rows):
            if rows(context, sm_class, r).grid == slot:
                fastest = max(fastest, rows(context, sm_class, r).rate)
    if fastest == 0.0:
        return
    until_ps = last_instant(context, slot, grid.resident, spare, period_ps(fastest))
    soonest_ps = NEVER
    for sm_class in range(1, context.classes):
        r = jumping_row(context, sm_class, slot, until_ps)
        if r >= 0:
            row = rows(context, sm_class, r)
            wave_ps = period_ps(row.rate)
            row.waves = waves_by(row, wave_ps, until_ps)
            row.end_ps += row.waves * wave_ps
            grid.waiting -= row.waves * row.blocks * classes(context, sm_class).sms
            context.ahead = 1
            class_ends(context, sm_class).value = soonest_end(context, sm_class)
        soonest_ps = min(soonest_ps, class_ends(context, sm_class).value)
    context.next_ps = soonest_ps


@inlined
def waves_are_next(context, slot):
    """Whether all that ends next is followed by waves of a grid: what ends otherwise would give all of them back."""
    for sm_class in range(1, context.classes):
        ends_next = class_ends(context, sm_class).value == context.next_ps
        if ends_next and jumping_row(context, sm_class, slot, context.next_ps) < 0:
            return False
    return True


@inlined
def last_instant(context, slot, blocks, spare, shortest_ps):
    """Up to when a grid surely has a block for every slot that its blocks free.

    Args:
        blocks: of it that are resident.
        spare: of it that may be handed out (> ``blocks``).
        shortest_ps: least time from a wave to the next.
    """
    until_ps = context.now_ps + spare * shortest_ps // blocks
    for _ in range(TRIES):
        missing = blocks_by(context, slot, until_ps) - spare
        if missing <= 0:
            return until_ps
        until_ps -= missing * shortest_ps // blocks + 1
    # No slot is freed more often than a wave takes, and once more.
    return min(until_ps, context.now_ps + (spare - blocks) * shortest_ps // blocks)


@inlined
def blocks_by(context, slot, until_ps):
    """Blocks of a grid that begin up to a time, if all slots that its blocks free go to it."""
    blocks = 0
    for sm_class in range(1, context.classes):
        r = jumping_row(context, sm_class, slot, until_ps)
        if r >= 0:
            row = rows(context, sm_class, r)
            blocks += waves_by(row, period_ps(row.rate), until_ps) * row.blocks * classes(context, sm_class).sms
    return blocks


@inlined
def waves_by(row, wave_ps, until_ps):
    """Waves that begin by a time: the first when the present block ends, which it does by then."""
    return (until_ps - row.end_ps) // wave_ps + 1


@inlined
def jumping_row(context, sm_class, slot, until_ps):
    """The row of a class that ends by a time and is followed by waves of a grid without any change; -1: none."""
    # Where the carve-out is another, the SM may be idle when a wave ends, and then takes the grid's own.
    if class_ends(context, sm_class).value > until_ps:
        return -1
    if classes(context, sm_class).carveout != grids(context, slot).carveout:
        return -1
    r = youngest_alone(context, sm_class, slot)
    if r >= 0 and rows(context, sm_class, r).rate > 0.0 and rows(context, sm_class, r).end_ps <= until_ps:
        return r
    return -1


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
            row = rows(context, sm_class, classes(context, sm_class).rows - 1)
            if row.grid == slot and row.waves > 0:
                wave_ps = period_ps(row.rate)
                # A wave that begins at this instant has begun: all that happens at it has happened.
                begun = waves_begun(local_ps + 1, row.end_ps - row.waves * wave_ps, wave_ps, row.waves)
                waiting += (row.waves - begun) * row.blocks * classes(context, sm_class).sms
    return waiting

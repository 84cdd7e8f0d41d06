"""Block ends that coincide, as if one SM after the other in placement order, by classes; and the log of what has
ended.

SMs of a class go through the same change as long as the queue gives each of them the same. So one SM is
carried through it, and as many others as surely fare alike follow it.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import members as sets
from gpusched_env.devices.compiled.access import (
    class_ends,
    classes,
    grids,
    log_row,
    members,
    problem,
    queue,
    read_by,
    resident,
    rows,
    scratch,
    sm_ids,
    word,
)
from gpusched_env.devices.compiled.classes import IDLE, class_of_sm, join, occupy, remove_class, remove_row, split
from gpusched_env.devices.compiled.dispatch import blocks_differ, dispatch_all, dispatch_to, head_for
from gpusched_env.devices.compiled.intrinsics import call, lowest, store
from gpusched_env.devices.compiled.layout import BLOCKS, LOG_WHOLE, NOT_QUEUED, RUN, SINGLE, TODO
from gpusched_env.devices.compiled.members import BITS, NONE, ONE
from gpusched_env.devices.compiled.tiles import end_blocks_of
from gpusched_env.devices.rules import world as logs
from gpusched_env.hardware.clock import NEVER


@inlined
def end_blocks(w, context):
    """:func:`end_all`, compiled on its own."""
    call(w.end_at, w.address, context.number)


@called
def end_all(w, context):
    """End all rows without work left; the dispatcher runs after each block."""
    now = context.now_ps
    ended = 0
    for sm_class in range(1, context.classes):
        if class_ends(context, sm_class).value <= now:
            ended += classes(context, sm_class).sms
    if not queue_outlasts(w, context, ended):
        end_sm_by_sm(w, context, now)
        return
    sm_class = context.classes - 1
    while sm_class > 0:
        if class_ends(context, sm_class).value <= now:
            end_rows_of_class(
                w,
                context,
                sm_class,
                classes(context, sm_class).sms,
                sets.first(members(context, sm_class), context.words),
                now,
            )
            if classes(context, sm_class).rows == 0:
                join(context, sm_class, IDLE)
        sm_class -= 1


@inlined
def queue_outlasts(w, context, sms):
    """Whether no queued grid can run out of blocks while they are handed out to ``sms`` SMs, all of which it sees."""
    for position in range(context.queued):
        grid = grids(context, queue(context, position).value)
        waiting = grid.saved if grid.saved > 0 else grid.waiting
        if grid.sms < problem(w).sms or blocks_differ(grid) or waiting <= sms * grid.fit:
            return False
    return True


@called
def end_sm_by_sm(w, context, now):
    """:func:`end_all` SM by SM where that matters, and for runs of equal SMs where it does not."""
    todo = scratch(w, TODO)
    single = scratch(w, SINGLE)
    sets.clear(todo, context.words)
    for sm_class in range(1, context.classes):
        if class_ends(context, sm_class).value <= now:
            sets.add(todo, members(context, sm_class), context.words)
    while True:
        rank = sets.first(todo, context.words)
        if rank < 0:
            return
        sm_class = class_of_sm(context, rank)
        followers = find_run(w, context, sm_class, rank)
        sets.only(single, context.words, rank)
        sets.drop(todo, single, context.words)
        d = sm_class
        if classes(context, sm_class).sms > 1:
            d = split(context, sm_class, single)
        if followers > 0:
            note_grid_counts(w, context)
        turn = context.turn
        threads = context.resident_threads
        busy = context.busy_sms
        end_rows_of_class(w, context, d, classes(context, d).sms, rank, now)
        if followers > 0 and context.turn == turn:
            threads = context.resident_threads - threads
            busy = context.busy_sms - busy
            followers = move_followers(w, context, sm_class, d, followers)
            context.resident_threads += followers * threads
            context.busy_sms += followers * busy
        if sm_class != d and classes(context, sm_class).sms == 0:
            last = context.classes - 1
            remove_class(context, sm_class)
            if d == last:
                d = sm_class
        if classes(context, d).rows == 0:
            join(context, d, IDLE)


@inlined
def find_run(w, context, sm_class, rank):
    """How many SMs after ``rank`` come next, are of class ``sm_class`` and see the same queue; sets ``RUN`` to them."""
    if w.detail == BLOCKS or context.tiles > 0:
        return 0
    todo = scratch(w, TODO)
    run = scratch(w, RUN)
    seen = scratch(w, SINGLE)
    sets.copy(members(context, sm_class), run, context.words)
    for position in range(context.queued):
        grid = grids(context, queue(context, position).value)
        if blocks_differ(grid):
            return 0
        if grid.sms < problem(w).sms:
            sets.ring(seen, context.words, grid.first, grid.sms, problem(w).sms)
            if sets.contains(seen, rank):
                sets.keep(run, seen, context.words)
            else:
                sets.drop(run, seen, context.words)
    other = problem(w).sms
    for k in range(context.words):
        left_out = word(todo, k).bits & ~word(run, k).bits
        if left_out != sets.NONE:
            other = k * sets.BITS + lowest(left_out)
            break
    for k in range(context.words):
        word(run, k).bits &= word(todo, k).bits & sets.upto(k, other) & ~sets.upto(k, rank + 1)
    return sets.size(run, context.words)


@inlined
def note_grid_counts(w, context):
    """Note what all grids hold."""
    for place in range(context.grids):
        grid = resident(context, place)
        grid.waiting_was = grid.waiting
        grid.resident_was = grid.resident
        grid.saved_was = grid.saved


@inlined
def move_followers(w, context, sm_class, d, most):
    """Let SMs of ``RUN``, at most ``most``, go from class ``sm_class`` to ``d`` as the first one did; returns how many.

    A grid must keep a block after that, so that it stays at the head of the queue throughout.
    """
    count = most
    for place in range(context.grids):
        grid = resident(context, place)
        used = grid.waiting_was - grid.waiting
        saved = grid.saved_was - grid.saved
        if saved > 0:
            count = min(count, (grid.saved - 1) // saved if saved == used else 0)
        elif used > 0:
            count = min(count, (grid.waiting - 1) // used)
    if count <= 0:
        return 0
    run = scratch(w, RUN)
    sets.keep_first(run, context.words, count)
    sets.drop(members(context, sm_class), run, context.words)
    sets.add(members(context, d), run, context.words)
    sets.drop(scratch(w, TODO), run, context.words)
    classes(context, sm_class).sms -= count
    classes(context, d).sms += count
    for place in range(context.grids):
        grid = resident(context, place)
        gained = grid.resident - grid.resident_was
        grid.waiting -= count * (grid.waiting_was - grid.waiting)
        grid.saved -= count * (grid.saved_was - grid.saved)
        grid.resident += count * gained
        if gained < 0:
            note_end(context, grid)
    return count


@called
def end_rows_of_class(w, context, sm_class, sms, rank, now):
    """Carry the ``sms`` SMs of a class through the end of their finished rows; ``rank`` is one of them."""
    sm = classes(context, sm_class)
    class_ends(context, sm_class).value = NEVER
    r = 0
    while r < sm.rows:
        if rows(context, sm_class, r).end_ps > now:
            r += 1
        else:
            end_row(w, context, sm_class, r, sms, rank, now)


@inlined
def end_row(w, context, sm_class, r, sms, rank, now):
    """End the blocks of one row, as if one at a time; the dispatcher runs after each."""
    sm = classes(context, sm_class)
    slot = rows(context, sm_class, r).grid
    blocks = rows(context, sm_class, r).blocks
    if grids(context, slot).tiled == 1:
        end_blocks_of(w, grids(context, slot), int(rows(context, sm_class, r).number), blocks * sms)
    if w.detail == BLOCKS:
        log_residency(w, context, sm_class, r, now)
    remove_row(context, sm_class, r)
    sm.leaver = slot
    while blocks > 0:
        position = head_for(w, context, rank)
        leaving = blocks
        if position >= 0 and grids(context, queue(context, position).value).waiting <= problem(w).blocks:
            # The head may run out of blocks on the way, and then grids behind it see the SMs at that moment.
            leaving = 1
        elif position >= 0 and blocks > 1 and blocks == sm.blocks:
            # The last block leaves an idle SM, whose carve-out is open, only if none has started by then.
            leaving = blocks - 1
        occupy(context, sm_class, -leaving, slot, sms)
        blocks -= leaving
        sm.leaving = blocks
        if position >= 0 and dispatch_to(w, context, sm_class, sms, rank, position, now):
            dispatch_all(w, context)
    note_end(context, grids(context, slot))


@inlined
def note_end(context, grid):
    """Mark a grid whose blocks have all ended (or been drained)."""
    if grid.resident == 0 and grid.ended == 0 and (grid.waiting == 0 or grid.queued == NOT_QUEUED):
        grid.ended = 1
        context.ended += 1


@inlined
def add_row(w, table, values):
    """:func:`gpusched_env.devices.rules.world.add_row`, a :data:`.layout.LOG`."""
    store(log_row(w, w.log_rows), table, values, LOG_WHOLE)
    w.log_rows += 1


read_by(logs.add_row, add_row)


@called
def log_residency(w, context, sm_class, r, now_ps):
    """The blocks of a row have ended, on all SMs of its class."""
    ended = rows(context, sm_class, r)
    for k in range(context.words):
        bits = word(members(context, sm_class), k).bits
        while bits != NONE:
            rank = k * BITS + lowest(bits)
            add_row(
                w,
                logs.RESIDENCY,
                (sm_ids(w, rank), grids(context, ended.grid).launch, ended.blocks, ended.since_ps, now_ps),
            )
            bits &= bits - ONE

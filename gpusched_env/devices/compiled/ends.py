"""Block ends that coincide, as if one SM after the other in placement order, by classes; and the log of what has
ended.

SMs of a class go through the same change as long as the queue gives each of them the same. So one SM is
carried through it, and as many others as surely fare alike follow it.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import members as sets
from gpusched_env.devices.compiled.access import (
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


@inlined
def end_blocks(w, x):
    """:func:`end_all`, compiled on its own."""
    call(w.end_at, w.address, x.number)


@called
def end_all(w, x):
    """End all rows without work left; the dispatcher runs after each block."""
    now = x.now_ps
    ended = 0
    for c in range(1, x.classes):
        if classes(x, c).ended == 1:
            ended += classes(x, c).sms
    if not queue_outlasts(w, x, ended):
        end_sm_by_sm(w, x, now)
        return
    c = x.classes - 1
    while c > 0:
        if classes(x, c).ended == 1:
            end_rows_of_class(w, x, c, classes(x, c).sms, sets.first(members(x, c), x.words), now)
            if classes(x, c).rows == 0:
                join(x, c, IDLE)
        c -= 1


@inlined
def queue_outlasts(w, x, sms):
    """Whether no queued grid can run out of blocks while they are handed out to ``sms`` SMs, all of which it sees."""
    for position in range(x.queued):
        grid = grids(x, queue(x, position).value)
        waiting = grid.saved if grid.saved > 0 else grid.waiting
        if grid.sms < problem(w).sms or blocks_differ(grid) or waiting <= sms * grid.fit:
            return False
    return True


@called
def end_sm_by_sm(w, x, now):
    """:func:`end_all` SM by SM where that matters, and for runs of equal SMs where it does not."""
    todo = scratch(w, TODO)
    single = scratch(w, SINGLE)
    sets.clear(todo, x.words)
    for c in range(1, x.classes):
        if classes(x, c).ended == 1:
            sets.add(todo, members(x, c), x.words)
    while True:
        rank = sets.first(todo, x.words)
        if rank < 0:
            return
        c = class_of_sm(x, rank)
        followers = find_run(w, x, c, rank)
        sets.only(single, x.words, rank)
        sets.drop(todo, single, x.words)
        d = c
        if classes(x, c).sms > 1:
            d = split(x, c, single)
        if followers > 0:
            note_grid_counts(w, x)
        turn = x.turn
        threads = x.resident_threads
        busy = x.busy_sms
        end_rows_of_class(w, x, d, classes(x, d).sms, rank, now)
        if followers > 0 and x.turn == turn:
            threads = x.resident_threads - threads
            busy = x.busy_sms - busy
            followers = move_followers(w, x, c, d, followers)
            x.resident_threads += followers * threads
            x.busy_sms += followers * busy
        if c != d and classes(x, c).sms == 0:
            last = x.classes - 1
            remove_class(x, c)
            if d == last:
                d = c
        if classes(x, d).rows == 0:
            join(x, d, IDLE)


@inlined
def find_run(w, x, c, rank):
    """How many SMs after ``rank`` come next, are of class ``c`` and see the same queue; sets ``RUN`` to them."""
    if w.detail == BLOCKS or x.tiles > 0:
        return 0
    todo = scratch(w, TODO)
    run = scratch(w, RUN)
    seen = scratch(w, SINGLE)
    sets.copy(members(x, c), run, x.words)
    for position in range(x.queued):
        grid = grids(x, queue(x, position).value)
        if blocks_differ(grid):
            return 0
        if grid.sms < problem(w).sms:
            sets.ring(seen, x.words, grid.first, grid.sms, problem(w).sms)
            if sets.contains(seen, rank):
                sets.keep(run, seen, x.words)
            else:
                sets.drop(run, seen, x.words)
    other = problem(w).sms
    for k in range(x.words):
        left_out = word(todo, k).bits & ~word(run, k).bits
        if left_out != sets.NONE:
            other = k * sets.BITS + lowest(left_out)
            break
    for k in range(x.words):
        word(run, k).bits &= word(todo, k).bits & sets.upto(k, other) & ~sets.upto(k, rank + 1)
    return sets.size(run, x.words)


@inlined
def note_grid_counts(w, x):
    """Note what all grids hold."""
    for place in range(x.grids):
        grid = resident(x, place)
        grid.waiting_was = grid.waiting
        grid.resident_was = grid.resident
        grid.saved_was = grid.saved


@inlined
def move_followers(w, x, c, d, most):
    """Let SMs of ``RUN``, at most ``most``, go from class ``c`` to ``d`` as the first one did; returns how many.

    A grid must keep a block after that, so that it stays at the head of the queue throughout.
    """
    count = most
    for place in range(x.grids):
        grid = resident(x, place)
        used = grid.waiting_was - grid.waiting
        saved = grid.saved_was - grid.saved
        if saved > 0:
            count = min(count, (grid.saved - 1) // saved if saved == used else 0)
        elif used > 0:
            count = min(count, (grid.waiting - 1) // used)
    if count <= 0:
        return 0
    run = scratch(w, RUN)
    sets.keep_first(run, x.words, count)
    sets.drop(members(x, c), run, x.words)
    sets.add(members(x, d), run, x.words)
    sets.drop(scratch(w, TODO), run, x.words)
    classes(x, c).sms -= count
    classes(x, d).sms += count
    for place in range(x.grids):
        grid = resident(x, place)
        gained = grid.resident - grid.resident_was
        grid.waiting -= count * (grid.waiting_was - grid.waiting)
        grid.saved -= count * (grid.saved_was - grid.saved)
        grid.resident += count * gained
        if gained < 0:
            note_end(x, grid)
    return count


@called
def end_rows_of_class(w, x, c, sms, rank, now):
    """Carry the ``sms`` SMs of a class through the end of their finished rows; ``rank`` is one of them."""
    sm = classes(x, c)
    sm.ended = 0
    r = 0
    while r < sm.rows:
        if rows(x, c, r).end_ps > now:
            r += 1
        else:
            end_row(w, x, c, r, sms, rank, now)


@inlined
def end_row(w, x, c, r, sms, rank, now):
    """End the blocks of one row, as if one at a time; the dispatcher runs after each."""
    sm = classes(x, c)
    slot = rows(x, c, r).grid
    blocks = rows(x, c, r).blocks
    if grids(x, slot).tiled == 1:
        end_blocks_of(w, grids(x, slot), int(rows(x, c, r).number), blocks * sms)
    if w.detail == BLOCKS:
        log_residency(w, x, c, r, now)
    remove_row(x, c, r)
    sm.leaver = slot
    while blocks > 0:
        position = head_for(w, x, rank)
        leaving = blocks
        if position >= 0 and grids(x, queue(x, position).value).waiting <= problem(w).blocks:
            # The head may run out of blocks on the way, and then grids behind it see the SMs at that moment.
            leaving = 1
        elif position >= 0 and blocks > 1 and blocks == sm.blocks:
            # The last block leaves an idle SM, whose carve-out is open, only if none has started by then.
            leaving = blocks - 1
        occupy(x, c, -leaving, slot, sms)
        blocks -= leaving
        sm.leaving = blocks
        if position >= 0 and dispatch_to(w, x, c, sms, rank, position, now):
            dispatch_all(w, x)
    note_end(x, grids(x, slot))


@inlined
def note_end(x, grid):
    """Mark a grid whose blocks have all ended (or been drained)."""
    if grid.resident == 0 and grid.ended == 0 and (grid.waiting == 0 or grid.queued == NOT_QUEUED):
        grid.ended = 1
        x.ended += 1


@inlined
def add_row(w, table, values):
    """:func:`gpusched_env.devices.rules.world.add_row`, a :data:`.layout.LOG`."""
    store(log_row(w, w.log_rows), table, values, LOG_WHOLE)
    w.log_rows += 1


read_by(logs.add_row, add_row)


@called
def log_residency(w, x, c, r, now_ps):
    """The blocks of a row have ended, on all SMs of its class."""
    ended = rows(x, c, r)
    for k in range(x.words):
        bits = word(members(x, c), k).bits
        while bits != NONE:
            rank = k * BITS + lowest(bits)
            add_row(
                w, logs.RESIDENCY, (sm_ids(w, rank), grids(x, ended.grid).launch, ended.blocks, ended.since_ps, now_ps)
            )
            bits &= bits - ONE

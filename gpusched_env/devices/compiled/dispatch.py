"""Which block goes where: leftover dispatch, head of line by priority, most-room placement, by classes.

The rules are those of :mod:`gpusched_env.devices.reference.dispatcher`. Where they tell SMs of a class apart
(a last, partial level; the border of a partition) the class is split.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import members as sets
from gpusched_env.devices.compiled.access import classes, grids, members, problem, queue, rows, scratch
from gpusched_env.devices.compiled.classes import IDLE, add_row, class_of_sm, occupy, split
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.layout import NONE, NOT_QUEUED, PARTITION, PICK, PLUS, SINGLE
from gpusched_env.devices.compiled.tiles import block_at, next_saved, order_work, work_of
from gpusched_env.hardware.placement import block_noise, fit, within


@inlined
def overlap(w, context, a, b):
    """Whether the partitions of two grids share an SM."""
    sms = problem(w).sms
    one = grids(context, a)
    other = grids(context, b)
    return within(other.first, one.first, one.sms, sms) or within(one.first, other.first, other.sms, sms)


@inlined
def blocked(w, context, position):
    """Whether a grid earlier in the queue holds this one up."""
    for p in range(position):  # noqa: SIM110 (Numba has no any() over generators)
        if overlap(w, context, queue(context, p).value, queue(context, position).value):
            return True
    return False


@called
def head_for(w, context, rank):
    """Queue position of the grid that may hand out blocks to an SM; -1: none."""
    for position in range(context.queued):
        grid = grids(context, queue(context, position).value)
        if within(rank, grid.first, grid.sms, problem(w).sms) and not blocked(w, context, position):
            return position
    return -1


@inlined
def room(w, context, sm_class, slot):
    """Blocks of a grid that an SM of a class can still take."""
    limits = problem(w)
    sm = classes(context, sm_class)
    grid = grids(context, slot)
    if sm.threads + grid.threads > limits.threads:
        # Most SMs are full, and divisions take long.
        return 0
    carveout = grid.carveout if sm.blocks == 0 else sm.carveout
    fitting = fit(
        limits.threads - sm.threads,
        limits.warps - sm.warps,
        limits.blocks - sm.blocks,
        limits.registers - sm.registers,
        carveout - sm.shared,
        grid.threads,
        grid.warps,
        grid.registers,
        grid.shared_bytes,
    )
    if grid.residents >= limits.blocks:
        return fitting
    own = sm.leaving if sm.leaver == slot else 0
    for r in range(sm.rows):
        if rows(context, sm_class, r).grid == slot:
            own += rows(context, sm_class, r).blocks
    return min(fitting, grid.residents - own)


@called
def measure_room(w, context, slot):
    """Fill ``room`` and ``eligible`` (SMs in the grid's partition) of all classes; returns the most room."""
    grid = grids(context, slot)
    partition = scratch(w, PARTITION)
    confined = grid.sms < problem(w).sms
    if confined:
        sets.ring(partition, context.words, grid.first, grid.sms, problem(w).sms)
    most = 0
    for sm_class in range(context.classes):
        sm = classes(context, sm_class)
        sm.eligible = sets.common(members(context, sm_class), partition, context.words) if confined else sm.sms
        sm.room = room(w, context, sm_class, slot) if sm.eligible > 0 else 0
        most = max(most, sm.room)
    return most


@inlined
def equal_next_blocks(grid):
    """Waiting blocks of a grid that are equal and go next: its saved ones come first."""
    return min(grid.saved, grid.waiting) if grid.saved > 0 else grid.waiting


@called
def start_blocks(w, context, sm_class, blocks, slot, sms, rank, now_ps):
    """Start waiting blocks of a grid on each of the ``sms`` SMs of a class: only saved ones while there are any.

    ``rank``: of the SM, where blocks differ in their work or tiles; such classes have one SM.
    """
    grid = grids(context, slot)
    if grid.begun == 0:
        grid.begun = 1
        context.begun += 1
    occupy(context, sm_class, blocks, slot, sms)
    if grid.saved > 0:
        grid.saved -= blocks * sms
        if grid.tiled == 1:
            for _ in range(blocks):
                saved = next_saved(w, grid.slot)
                add_row(context, sm_class, 1, saved.left, saved.number, slot, now_ps)
        else:
            add_row(context, sm_class, blocks, grid.saved_left, NONE, slot, now_ps)
    elif blocks_differ(grid):
        for b in range(blocks):
            number = NONE
            work = 1.0
            if grid.tiled == 1:
                number = block_at(w, grid, grid.total - grid.waiting + b)
                work = work_of(w, grid, number) + order_work(w, grid)
            if grid.spread > 0.0:
                work += grid.spread * block_noise(rank, grid.serial, grid.waiting - b)
            add_row(context, sm_class, 1, work, number, slot, now_ps)
    else:
        add_row(context, sm_class, blocks, 1.0, NONE, slot, now_ps)
    grid.waiting -= blocks * sms


@inlined
def blocks_differ(grid):
    """Whether the blocks of a grid differ, in their work or in their tiles."""
    return grid.spread > 0.0 or grid.tiled == 1


@inlined
def leave_queue(w, context, position):
    """A grid has no waiting blocks any more."""
    grid = grids(context, queue(context, position).value)
    grid.queued = NOT_QUEUED
    grid.dispatched = 1
    context.dispatched += 1
    context.queued -= 1
    context.turn += 1
    for p in range(position, context.queued):
        queue(context, p).value = queue(context, p + 1).value


@called
def start_on(w, context, sm_class, picked, sms, blocks, slot, now):
    """Start blocks on the ``sms`` SMs of a class that are in a set; splits the class if they are not all of it."""
    d = sm_class
    if sm_class == IDLE or sms < classes(context, sm_class).sms:
        d = split(context, sm_class, picked)
    start_blocks(w, context, d, blocks, slot, sms, -1, now)


@called
def start_on_one(w, context, rank, blocks, slot, now):
    """:func:`start_on` for one SM, of a grid whose blocks differ."""
    single = scratch(w, SINGLE)
    sets.only(single, context.words, rank)
    sm_class = class_of_sm(context, rank)
    d = sm_class
    if sm_class == IDLE or classes(context, sm_class).sms > 1:
        d = split(context, sm_class, single)
    start_blocks(w, context, d, blocks, slot, 1, rank, now)


@called
def spread_blocks(w, context, slot, most, now):
    """Hand out the :func:`equal_next_blocks` of a grid as far as there is room, at most ``most`` on an SM.

    One block goes to each SM with the most room, in placement order, before the level sinks: a block placed
    takes one off its SM's room. So all levels down to some are filled, and the next one in part. The blocks are
    numbered SM after SM, in placement order.
    """
    count = context.classes
    words = context.words
    confined = grids(context, slot).sms < problem(w).sms
    partition = scratch(w, PARTITION)
    level, blocks = last_level(context, equal_next_blocks(grids(context, slot)), most)
    plus = scratch(w, PLUS)
    partial = level > 0 and blocks > 0
    if partial:
        sets.clear(plus, words)
        for sm_class in range(count):
            if classes(context, sm_class).room >= level:
                sets.add(plus, members(context, sm_class), words)
        if confined:
            sets.keep(plus, partition, words)
        sets.keep_first(plus, words, blocks)
    if blocks_differ(grids(context, slot)):
        for rank in range(problem(w).sms):
            if confined and not sets.contains(partition, rank):
                continue
            given = max(0, classes(context, class_of_sm(context, rank)).room - level)
            if partial and sets.contains(plus, rank):
                given += 1
            if given > 0:
                start_on_one(w, context, rank, given, slot, now)
        return
    picked = scratch(w, PICK)
    for sm_class in range(count):
        sm = classes(context, sm_class)
        given = max(0, sm.room - level)
        more = sets.common(members(context, sm_class), plus, words) if partial and sm.room >= level else 0
        rest = sm.eligible - more if given > 0 else 0
        # First those that take one more, then the rest of the class.
        for part in range(2):
            takers = more if part == 0 else rest
            if takers == 0:
                continue
            sets.copy(members(context, sm_class), picked, words)
            if part == 0:
                sets.keep(picked, plus, words)
                start_on(w, context, sm_class, picked, takers, given + 1, slot, now)
            else:
                if confined:
                    sets.keep(picked, partition, words)
                if partial:
                    sets.drop(picked, plus, words)
                start_on(w, context, sm_class, picked, takers, given, slot, now)


@inlined
def last_level(context, blocks, most):
    """Down to which level SMs are filled, none above ``most``, and how many of the blocks are left then."""
    level = most
    while level > 0:
        wide = 0
        for sm_class in range(context.classes):
            if classes(context, sm_class).room >= level:
                wide += classes(context, sm_class).eligible
        if wide > blocks:
            break
        blocks -= wide
        level -= 1
    return level, blocks


@inlined
def dispatch_all(w, context):
    """:func:`hand_out`, compiled on its own."""
    call(w.dispatch_at, w.address, context.number)


@called
def hand_out(w, context):
    """Hand out blocks to any SM until nothing eligible fits."""
    now = context.now_ps
    position = 0
    while position < context.queued:
        if blocked(w, context, position):
            position += 1
            continue
        slot = queue(context, position).value
        grid = grids(context, slot)
        while grid.waiting > 0:
            saved = grid.saved
            most = measure_room(w, context, slot)
            if most == 0:
                break
            spread_blocks(w, context, slot, most, now)
            if saved == 0 and grid.waiting > 0:
                break
        if grid.waiting == 0:
            leave_queue(w, context, position)
        else:
            position += 1


@called
def dispatch_to(w, context, sm_class, sms, rank, position, now):
    """Hand out blocks of a queued grid to the SMs of a class that just got room; all others were full before.

    Returns:
        True if the grid left the queue, so that the grids behind it may now start anywhere.
    """
    slot = queue(context, position).value
    grid = grids(context, slot)
    fitting = room(w, context, sm_class, slot)
    while fitting > 0 and grid.waiting > 0:
        blocks = min(fitting, equal_next_blocks(grid))
        start_blocks(w, context, sm_class, blocks, slot, sms, rank, now)
        fitting -= blocks
    if grid.waiting == 0:
        leave_queue(w, context, position)
        return True
    return False

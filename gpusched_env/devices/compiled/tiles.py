"""Kernels that are synchronised tile by tile, and kernels in another form: with other tiles, or another number of
slices.

Rows of residents have the number of a block that stands for all that need and post the same, so that equal blocks, and
SMs that hold them, stay together.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    class_ends,
    classes,
    ended_slices,
    flight_of,
    forms,
    grids,
    kernels,
    launches,
    ops,
    problem,
    rows,
    saved_blocks,
    semaphores,
    stream_rows,
    tilings,
)
from gpusched_env.devices.compiled.classes import soonest_end
from gpusched_env.devices.compiled.layout import NONE, PENDING
from gpusched_env.devices.compiled.slots import drop_edge, holds
from gpusched_env.hardware import tiles as laws
from gpusched_env.hardware.clock import NEVER
from gpusched_env.hardware.tiles import KERNEL, NATIVE, Pair

# ---- pairs -------------------------------------------------------------------------------------------


@inlined
def clear_tiling(w, slot):
    """A new launch has nothing to do with tiles."""
    tiling = tilings(w, slot)
    tiling.producer = NONE
    tiling.producer_id = NONE
    tiling.consumer = NONE
    tiling.consumer_id = NONE
    tiling.policy = KERNEL
    tiling.posts = KERNEL
    tiling.order = NATIVE
    tiling.grouped = 1
    tiling.gates = 0
    tiling.gated = 0
    tiling.saved = 0


@inlined
def pair_of(w, slot):
    """A synchronised consumer and its producer, in numbers."""
    tiling = tilings(w, slot)
    op = ops(w, launches(w, slot).op)
    producer = kernels(w, tiling.identity)
    consumer = kernels(w, launches(w, slot).identity)
    lead = op.lead if tiling.reorder == 1 else 0.0
    return Pair(
        int(tiling.policy), int(tiling.stride), producer.rows, producer.columns, consumer.rows, consumer.columns,
        consumer.slices, int(op.needs), int(op.fold), lead,
    )  # fmt: skip


@inlined
def may_synchronise(w, slot):
    """Whether the tiles of a pending launch and its producer, no block of which has started, may be synchronised."""
    if problem(w).tiled == 0:
        return False
    launch = launches(w, slot)
    tiling = tilings(w, slot)
    if tiling.policy != KERNEL or launch.flight != NONE or not holds(w, tiling.producer, tiling.producer_id):
        return False
    producer = launches(w, tiling.producer)
    if producer.row == launch.row:
        return False
    if producer.flight != NONE and flight_of(w, producer).first_started_ps < NEVER:
        return False
    return tilings(w, tiling.producer).posts == KERNEL


@called
def synchronise(w, slot, policy, size, order, reorder, wait_kernel):
    """Let the tiles of a launch wait for those of its producer, and the launch no longer for the whole of that.

    ``size``: the stride of a policy that has one.
    """
    tiling = tilings(w, slot)
    producer = tiling.producer
    tiling.policy = policy
    tiling.stride = size if policy == laws.STRIDED else 1
    tiling.reorder = reorder
    tiling.identity = launches(w, producer).identity
    posting = tilings(w, producer)
    posting.posts = policy
    posting.consumer = slot
    posting.consumer_id = launches(w, slot).id
    pair = pair_of(w, slot)
    for number in range(laws.semaphores(pair)):
        semaphores(w, slot, number).value = 0
    posting.order = order
    posting.grouped = pair.columns // pair.fold
    tiling.order = order
    tiling.grouped = pair.consumer_columns
    start_over(w, producer)
    start_over(w, slot)
    if wait_kernel == 1:
        posting.gates = 1
        tiling.gated = 1
    else:
        drop_edge(w, producer, slot)
        launches(w, slot).unlaunched -= 1 if launches(w, producer).state == PENDING else 0


@called
def start_over(w, slot):
    """Start over with the tiles of a launch: no block of it has ended or is saved."""
    kernel = kernels(w, launches(w, slot).identity)
    tilings(w, slot).saved = 0
    if kernel.slices > 1:
        for tile in range(kernel.rows * kernel.columns):
            ended_slices(w, slot, tile).value = 0


# ---- blocks ------------------------------------------------------------------------------------------


@inlined
def slice_of(kernel, number):
    """The slice of a block of a kernel."""
    return number // (kernel.rows * kernel.columns)


@inlined
def posts(w, slot, number):
    """Whether a block posts: 0 or 1."""
    kernel = kernels(w, launches(w, slot).identity)
    return 1 if tilings(w, slot).posts != KERNEL and slice_of(kernel, number) == kernel.slices - 1 else 0


@inlined
def waits_for_tiles(w, slot, number):
    """How many times a block waits for tiles."""
    return laws.waits_of(pair_of(w, slot), number) if tilings(w, slot).policy != KERNEL else 0


@called
def block_at(w, grid, position):
    """The number for the block that takes its tile at a position in the order of its grid."""
    tiling = tilings(w, grid.slot)
    kernel = kernels(w, launches(w, grid.slot).identity)
    block = laws.tile_at(int(tiling.order), int(tiling.grouped), kernel.rows, kernel.columns, position)
    by_column = laws.posts_by_column(int(tiling.posts))
    if tiling.policy != KERNEL:
        by_column |= laws.waits_by_column(int(tiling.policy), int(ops(w, launches(w, grid.slot).op).needs))
    return laws.likeness(block, kernel.columns, kernel.slices, by_column)


@called
def work_of(w, grid, number):
    """The work of a block, in blocks that do not synchronise; without that of its order."""
    costs = problem(w)
    waits = waits_for_tiles(w, grid.slot, number)
    return laws.work_of(grid.latency_us, waits, costs.wait_us, posts(w, grid.slot, number), costs.post_us)


@inlined
def order_work(w, grid):
    """What taking its tile from a counter adds to the work of a block."""
    return 0.0 if tilings(w, grid.slot).order == NATIVE else problem(w).order_us / grid.latency_us


@called
def end_blocks_of(w, grid, number, count):
    """Blocks have ended; the last slice of a tile posts it."""
    slot = grid.slot
    kernel = kernels(w, launches(w, slot).identity)
    tile = number % (kernel.rows * kernel.columns)
    if kernel.slices > 1:
        ended_slices(w, slot, tile).value += count
    tiling = tilings(w, slot)
    if posts(w, slot, number) == 1 and holds(w, tiling.consumer, tiling.consumer_id):
        number = laws.semaphore_of(pair_of(w, tiling.consumer), tile)
        semaphores(w, tiling.consumer, number).value += count


# ---- limits ------------------------------------------------------------------------------------------


@called
def reach_limits(context, now_ps):
    """Blocks that have come to their limit stay there."""
    for sm_class in range(1, context.classes):
        for r in range(classes(context, sm_class).rows):
            row = rows(context, sm_class, r)
            if row.limited == 1 and row.end_ps <= now_ps:
                row.left = row.floor
                row.at_ps = now_ps
                row.rate = 0.0
                row.end_ps = NEVER
                row.held = 1
                classes(context, sm_class).dirty = 1
        class_ends(context, sm_class).value = soonest_end(context, sm_class)


@called
def find_limits(w, context):
    """How far blocks that are held may go, now that tiles were posted."""
    for sm_class in range(1, context.classes):
        for r in range(classes(context, sm_class).rows):
            row = rows(context, sm_class, r)
            if row.held == 1:
                find_limit(w, context, row)
                if row.held == 0:
                    classes(context, sm_class).dirty = 1


@called
def find_limit(w, context, row):
    """The first point of the work of a row's blocks at which they may not go on."""
    grid = grids(context, row.grid)
    kernel = kernels(w, launches(w, grid.slot).identity)
    tiling = tilings(w, grid.slot)
    of_tiles = waits_for_tiles(w, grid.slot, row.number)
    all_there = tiling.policy == KERNEL or not holds(w, tiling.producer, tiling.producer_id)
    passed = of_tiles if all_there else int(row.passed)
    if passed < of_tiles:
        pair = pair_of(w, grid.slot)
        value = laws.awaited_value(pair, row.number)
        while passed < of_tiles:
            number = laws.awaited_semaphore(pair, row.number, passed)
            if semaphores(w, grid.slot, number).value < value:
                break
            passed += 1
    row.passed = passed
    row.limited = 0
    row.floor = 0.0
    part = slice_of(kernel, row.number)
    if passed < of_tiles:
        row.limited = 1
        before = laws.work_before(pair_of(w, grid.slot), row.number, passed)
        row.floor = laws.work_left(work_of(w, grid, row.number), before)
    elif part > 0 and ended_slices(w, grid.slot, row.number % (kernel.rows * kernel.columns)).value < part:
        row.limited = 1
        row.floor = problem(w).post_us / grid.latency_us if posts(w, grid.slot, row.number) == 1 else 0.0
    row.held = 1 if row.limited == 1 and row.left <= row.floor else 0


# ---- saved blocks ------------------------------------------------------------------------------------


@called
def save_block(w, slot, number, left, count):
    """Blocks of a launch were saved, with ``left`` of their work: those handed out first come last in the list."""
    tiling = tilings(w, slot)
    place = int(tiling.saved)
    while place > 0:
        before = saved_blocks(w, slot, place - 1)
        if before.number > number or (before.number == number and before.left >= left):
            break
        place -= 1
    if place > 0:
        before = saved_blocks(w, slot, place - 1)
        if before.number == number and before.left == left:
            before.count += count
            return
    for at in range(tiling.saved, place, -1):
        target = saved_blocks(w, slot, at)
        source = saved_blocks(w, slot, at - 1)
        target.number = source.number
        target.left = source.left
        target.count = source.count
    tiling.saved += 1
    saved = saved_blocks(w, slot, place)
    saved.number = number
    saved.left = left
    saved.count = count


@inlined
def next_saved(w, slot):
    """The record of the next saved block that is handed out again, which is one less then."""
    tiling = tilings(w, slot)
    saved = saved_blocks(w, slot, int(tiling.saved) - 1)
    saved.count -= 1
    if saved.count == 0:
        tiling.saved -= 1
    return saved


@inlined
def forms_of(w, slot):
    """How many forms a pending launch may be given."""
    launch = launches(w, slot)
    kernel = kernels(w, launch.identity)
    if kernel.forms == 0 or launch.flight != NONE or launch.identity != ops(w, launch.op).identity:
        return 0
    if launch.row != NONE and stream_rows(w, launch.row).windowed == 1:
        return 0
    if problem(w).tiled == 1 and (tilings(w, slot).policy != KERNEL or tilings(w, slot).posts != KERNEL):
        return 0
    return kernel.forms


@inlined
def form_of(w, identity, form):
    """The identity of a kernel in another form."""
    return forms(w, kernels(w, identity).first_form + form)

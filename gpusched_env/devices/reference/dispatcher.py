"""Which block goes where: leftover dispatch, head of line by priority, most-room placement.

Rules (Amert et al., RTSS 2017; Gilman et al., 2020; see ``docs/hardware-model.md``): only the first
waiting grid of the highest priority hands out blocks; a grid leaves the queue when its last block is
dispatched; nothing behind it starts, even where it would fit. Grids whose partitions share no SM do not
block each other. A block goes to the SM with the most room for its kernel, ties in placement order.
An SM's shared-memory carve-out is chosen by the first block that arrives while the SM is idle.
"""

from __future__ import annotations

from numba import njit

from gpusched_env.hardware.placement import fit


@njit(cache=True)
def allowed(grid, rank, sms):
    """Whether the SM of placement ``rank`` is in the grid's partition."""
    return (rank - grid.first + sms) % sms < grid.sms


@njit(cache=True)
def overlap(a, b, sms):
    """Whether the partitions of two grids share an SM."""
    return (b.first - a.first + sms) % sms < a.sms or (a.first - b.first + sms) % sms < b.sms


@njit(cache=True)
def room(gpu, sm, grid):
    """Blocks of ``grid`` that ``sm`` can still take."""
    carveout = grid.block.carveout_bytes if sm.blocks == 0 else sm.carveout
    return fit(
        gpu.threads - sm.threads,
        gpu.warps - sm.warps,
        gpu.blocks - sm.blocks,
        gpu.registers - sm.registers,
        carveout - sm.shared,
        grid.block,
    )


@njit(cache=True)
def place(now, slot, grid, sm, rows, state):
    """Start one block of ``grid`` (row ``slot`` of the grid table) on ``sm`` with residents ``rows``.

    A block that starts together with equal ones joins their row.
    """
    if sm.blocks == 0:
        sm.carveout = grid.block.carveout_bytes
        state.busy_sms += 1
    sm.threads += grid.block.threads
    sm.warps += grid.block.warps
    sm.blocks += 1
    sm.registers += grid.block.registers
    sm.shared += grid.block.shared_bytes
    sm.dirty = 1
    state.resident_threads += grid.block.threads
    left = 1.0
    if grid.saved > 0:
        left = grid.saved_left
        grid.saved -= 1
    grid.waiting -= 1
    grid.resident += 1
    for r in range(sm.rows):
        if rows[r].grid == slot and rows[r].left == left and rows[r].since_us == now:
            rows[r].blocks += 1
            return
    row = rows[sm.rows]
    row.grid = slot
    row.blocks = 1
    row.left = left
    row.rate = 0.0
    row.since_us = now
    sm.rows += 1


@njit(cache=True)
def note_started(slot, grid, state, started):
    if grid.started == 0:
        grid.started = 1
        started[state.started] = slot
        state.started += 1


@njit(cache=True)
def leave_queue(position, queue, grids, state, dispatched):
    slot = queue[position]
    grids[slot].queued = 0
    dispatched[state.dispatched] = slot
    state.dispatched += 1
    for p in range(position, state.queue - 1):
        queue[p] = queue[p + 1]
    state.queue -= 1


@njit(cache=True)
def blocked(position, queue, grids, sms):
    """Whether a grid earlier in the queue holds this one up."""
    for p in range(position):
        if overlap(grids[queue[p]], grids[queue[position]], sms):
            return True
    return False


@njit(cache=True)
def dispatch_all(gpu, order, sms, rows, grids, queue, state, started, dispatched):
    """Hand out blocks to any SM until nothing eligible fits."""
    position = 0
    while position < state.queue:
        if blocked(position, queue, grids, gpu.sms):
            position += 1
            continue
        slot = queue[position]
        grid = grids[slot]
        most = 0
        for rank in range(gpu.sms):
            if allowed(grid, rank, gpu.sms):
                most = max(most, room(gpu, sms[order[rank]], grid))
        # One block goes to each SM with the most room, in placement order, before the level sinks.
        while grid.waiting > 0 and most > 0:
            below = 0
            for rank in range(gpu.sms):
                if grid.waiting == 0:
                    break
                if allowed(grid, rank, gpu.sms):
                    sm = order[rank]
                    here = room(gpu, sms[sm], grid)
                    if here == most:
                        note_started(slot, grid, state, started)
                        place(state.now, slot, grid, sms[sm], rows[sm], state)
                        here = room(gpu, sms[sm], grid)
                    below = max(below, here)
            most = below
        if grid.waiting == 0:
            leave_queue(position, queue, grids, state, dispatched)
        else:
            position += 1


@njit(cache=True)
def dispatch_to(gpu, rank, sm, sms, rows, grids, queue, state, started, dispatched):
    """Hand out blocks to one SM that just got room; all others were full before.

    Returns:
        True if a grid left the queue, so that the grids behind it may now start anywhere.
    """
    for position in range(state.queue):
        slot = queue[position]
        grid = grids[slot]
        if not allowed(grid, rank, gpu.sms) or blocked(position, queue, grids, gpu.sms):
            continue
        while grid.waiting > 0 and room(gpu, sms[sm], grid) > 0:
            note_started(slot, grid, state, started)
            place(state.now, slot, grid, sms[sm], rows[sm], state)
        if grid.waiting == 0:
            leave_queue(position, queue, grids, state, dispatched)
            return True
        return False
    return False

"""Which block goes where: leftover dispatch, head of line by priority, most-room placement.

Rules (Amert et al., RTSS 2017; Gilman et al., 2020; see ``docs/hardware-model.md``): only the first
waiting grid of the highest priority hands out blocks; a grid leaves the queue when its last block is
dispatched; nothing behind it starts, even where it would fit. Grids whose partitions share no SM do not
block each other. A block goes to the SM with the most room for its kernel, ties in placement order.
An SM's shared-memory carve-out is chosen by the first block that arrives while the SM is idle.

The arrays are those of :mod:`~gpusched_env.devices.reference.state`.
"""

from __future__ import annotations

from numba import njit

from gpusched_env.devices.reference.state import (
    BEGUN,
    BLOCKS,
    BUSY_SMS,
    CARVEOUT,
    COUNT,
    DIRTY,
    DISPATCHED,
    FIRST,
    GRID,
    LEFT,
    NOT_QUEUED,
    PARTITION,
    QUEUE,
    QUEUED,
    RATE,
    REGISTERS,
    RESIDENT,
    RESIDENT_THREADS,
    ROOM,
    ROWS,
    SAVED,
    SAVED_LEFT,
    SERIAL,
    SHARED,
    SINCE_US,
    SPREAD,
    STARTED,
    STOPPED,
    THREADS,
    WAITING,
    WARPS,
)
from gpusched_env.hardware.placement import block_noise, fit, within


@njit(_nrt=False, forceinline=True)
def overlap(a, b, grids, sms):
    """Whether the partitions of the grids in slots ``a`` and ``b`` share an SM."""
    return within(grids[b, FIRST], grids[a, FIRST], grids[a, PARTITION], sms) or within(
        grids[a, FIRST], grids[b, FIRST], grids[b, PARTITION], sms
    )


@njit(_nrt=False, forceinline=True)
def blocked(position, lists, grids, sms):
    """Whether a grid earlier in the queue holds this one up."""
    for p in range(position):
        if overlap(lists[QUEUE, p], lists[QUEUE, position], grids, sms):
            return True
    return False


@njit(_nrt=False, forceinline=True)
def room(slot, rank, limits, sms, grids):
    """Blocks of a grid that an SM can still take."""
    carveout = grids[slot, CARVEOUT] if sms[BLOCKS, rank] == 0 else sms[CARVEOUT, rank]
    return fit(
        limits[THREADS] - sms[THREADS, rank],
        limits[WARPS] - sms[WARPS, rank],
        limits[BLOCKS] - sms[BLOCKS, rank],
        limits[REGISTERS] - sms[REGISTERS, rank],
        carveout - sms[SHARED, rank],
        grids[slot, THREADS],
        grids[slot, WARPS],
        grids[slot, REGISTERS],
        grids[slot, SHARED],
    )


@njit(_nrt=False, forceinline=True)
def alike(a, b, sms):
    """Whether two SMs have the same resources left."""
    return (
        sms[THREADS, a] == sms[THREADS, b]
        and sms[WARPS, a] == sms[WARPS, b]
        and sms[BLOCKS, a] == sms[BLOCKS, b]
        and sms[REGISTERS, a] == sms[REGISTERS, b]
        and sms[SHARED, a] == sms[SHARED, b]
        and (sms[BLOCKS, a] == 0 or sms[CARVEOUT, a] == sms[CARVEOUT, b])
    )


@njit(_nrt=False)
def measure_room(slot, limits, sms, grids):
    """Fill ``sms[ROOM]`` for a grid; returns the most room on any SM. Equal neighbours share the arithmetic."""
    count = sms.shape[1]
    most = 0
    twin = -1
    for rank in range(count):
        if not within(rank, grids[slot, FIRST], grids[slot, PARTITION], count):
            sms[ROOM, rank] = 0
        elif twin >= 0 and alike(rank, twin, sms):
            sms[ROOM, rank] = sms[ROOM, twin]
        else:
            twin = rank
            sms[ROOM, rank] = room(slot, rank, limits, sms, grids)
            most = max(most, sms[ROOM, rank])
    return most


@njit(_nrt=False, forceinline=True)
def occupy(blocks, slot, rank, sms, grids, counts):
    """Take what ``blocks`` blocks of a grid need of an SM; negative: give it back."""
    if sms[BLOCKS, rank] == 0:
        sms[CARVEOUT, rank] = grids[slot, CARVEOUT]
        counts[BUSY_SMS] += 1
    sms[THREADS, rank] += blocks * grids[slot, THREADS]
    sms[WARPS, rank] += blocks * grids[slot, WARPS]
    sms[BLOCKS, rank] += blocks
    sms[REGISTERS, rank] += blocks * grids[slot, REGISTERS]
    sms[SHARED, rank] += blocks * grids[slot, SHARED]
    sms[DIRTY, rank] = 1
    grids[slot, RESIDENT] += blocks
    counts[RESIDENT_THREADS] += blocks * grids[slot, THREADS]
    if sms[BLOCKS, rank] == 0:
        counts[BUSY_SMS] -= 1


@njit(_nrt=False, forceinline=True)
def start(blocks, slot, rank, now, sms, rows, held, grids, work, lists, counts):
    """Start waiting blocks of a grid on an SM: only saved ones, as long as there are any (see :func:`share`).

    Blocks that start together with equal ones join their row.
    """
    if grids[slot, BEGUN] == 0:
        grids[slot, BEGUN] = 1
        lists[STARTED, counts[STARTED]] = slot
        counts[STARTED] += 1
    occupy(blocks, slot, rank, sms, grids, counts)
    saved = grids[slot, SAVED] > 0
    if saved:
        grids[slot, SAVED] -= blocks
    if work[slot, SPREAD] > 0.0 and not saved:
        for b in range(blocks):
            draw = block_noise(rank, grids[slot, SERIAL], grids[slot, WAITING] - b)
            add_row(1, 1.0 + work[slot, SPREAD] * draw, slot, rank, now, sms, rows, held)
    else:
        add_row(blocks, work[slot, SAVED_LEFT] if saved else 1.0, slot, rank, now, sms, rows, held)
    grids[slot, WAITING] -= blocks


@njit(_nrt=False, forceinline=True)
def add_row(blocks, left, slot, rank, now, sms, rows, held):
    """Put blocks with ``left`` of their work to do on an SM, into the row of equal ones or a new one."""
    last = sms[ROWS, rank]
    for r in range(last):
        same = held[GRID, r, rank] == slot and held[STOPPED, r, rank] == 0
        if same and rows[LEFT, r, rank] == left and rows[SINCE_US, r, rank] == now:
            held[COUNT, r, rank] += blocks
            return
    held[GRID, last, rank] = slot
    held[COUNT, last, rank] = blocks
    held[STOPPED, last, rank] = 0
    rows[LEFT, last, rank] = left
    rows[RATE, last, rank] = 0.0
    rows[SINCE_US, last, rank] = now
    sms[ROWS, rank] = last + 1


@njit(_nrt=False, forceinline=True)
def share(slot, grids):
    """Waiting blocks of a grid that are equal and go next: its saved ones come first."""
    waiting = grids[slot, WAITING]
    return min(grids[slot, SAVED], waiting) if grids[slot, SAVED] > 0 else waiting


@njit(_nrt=False)
def spread(slot, most, now, sms, rows, held, grids, work, lists, counts):
    """Hand out the :func:`share` of a grid as far as there is room, at most ``most`` on an SM.

    One block goes to each SM with the most room, in placement order, before the level sinks: a block
    placed takes one off its SM's room. So all levels down to some are filled, and the next one in part.

    Returns:
        the most room on any SM afterwards.
    """
    count = sms.shape[1]
    blocks = share(slot, grids)
    level = most
    while level > 0:
        wide = 0
        for rank in range(count):
            wide += sms[ROOM, rank] >= level
        if wide > blocks:
            break
        blocks -= wide
        level -= 1
    for rank in range(count):
        given = max(0, sms[ROOM, rank] - level)
        if level > 0 and blocks > 0 and sms[ROOM, rank] >= level:
            given += 1
            blocks -= 1
        if given > 0:
            sms[ROOM, rank] -= given
            start(given, slot, rank, now, sms, rows, held, grids, work, lists, counts)
    return level


@njit(_nrt=False)
def leave_queue(position, grids, lists, counts):
    """A grid has no waiting blocks any more."""
    slot = lists[QUEUE, position]
    grids[slot, QUEUED] = NOT_QUEUED
    lists[DISPATCHED, counts[DISPATCHED]] = slot
    counts[DISPATCHED] += 1
    counts[QUEUE] -= 1
    for p in range(position, counts[QUEUE]):
        lists[QUEUE, p] = lists[QUEUE, p + 1]


@njit(_nrt=False)
def dispatch_all(now, limits, sms, rows, held, grids, work, lists, counts):
    """Hand out blocks to any SM until nothing eligible fits."""
    position = 0
    while position < counts[QUEUE]:
        if blocked(position, lists, grids, sms.shape[1]):
            position += 1
            continue
        slot = lists[QUEUE, position]
        most = measure_room(slot, limits, sms, grids)
        while grids[slot, WAITING] > 0 and most > 0:
            most = spread(slot, most, now, sms, rows, held, grids, work, lists, counts)
        if grids[slot, WAITING] == 0:
            leave_queue(position, grids, lists, counts)
        else:
            position += 1


@njit(_nrt=False, forceinline=True)
def head_for(rank, lists, grids, counts, sms):
    """Queue position of the grid that may hand out blocks to an SM; -1: none."""
    for position in range(counts[QUEUE]):
        slot = lists[QUEUE, position]
        if within(rank, grids[slot, FIRST], grids[slot, PARTITION], sms) and not blocked(position, lists, grids, sms):
            return position
    return -1


@njit(_nrt=False, forceinline=True)
def dispatch_to(rank, position, now, limits, sms, rows, held, grids, work, lists, counts):
    """Hand out blocks of a queued grid to one SM that just got room; all others were full before.

    Returns:
        True if the grid left the queue, so that the grids behind it may now start anywhere.
    """
    slot = lists[QUEUE, position]
    fitting = room(slot, rank, limits, sms, grids)
    while fitting > 0 and grids[slot, WAITING] > 0:
        blocks = min(fitting, share(slot, grids))
        start(blocks, slot, rank, now, sms, rows, held, grids, work, lists, counts)
        fitting -= blocks
    if grids[slot, WAITING] == 0:
        leave_queue(position, grids, lists, counts)
        return True
    return False

"""Progress of resident blocks: rates are constant between events, so every step is exact.

The arrays are those of :mod:`~gpusched_env.devices.reference.state`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from gpusched_env.compiling import cached
from gpusched_env.devices.reference.dispatcher import dispatch_all, dispatch_to, head_for, occupy, overlap
from gpusched_env.devices.reference.rates import set_next, set_rates
from gpusched_env.devices.reference.state import (
    AHEAD,
    BLOCKS,
    BUSY_SMS,
    CARVEOUT,
    COUNT,
    DEPTH,
    DIRTY,
    DISPATCHED,
    ENDED,
    FINISHED,
    GRID,
    HELD_FIELDS,
    LEFT,
    NEXT,
    NOT_QUEUED,
    NOW,
    QUEUE,
    QUEUED,
    RATE,
    RESIDENT,
    ROW_FIELDS,
    ROWS,
    SAVED,
    SAVED_LEFT,
    SINCE_US,
    SPREAD,
    STARTED,
    STOPPED,
    TRAFFIC,
    WAITING,
)
from gpusched_env.hardware.placement import within

DONE = 1e-9
"""A block with less than this share of its work left has ended (absorbs rounding of products)."""
WHOLE = 2.0**40
"""Work is summed in this part of a block, in whole numbers: so the sum does not hang on the order."""


@cached(_nrt=False)
def step(limits, physics, sms, memory, rows, held, grids, work, lists, counts, clock, ended, jumping, full, now):
    """Advance to ``now``: progress, block ends, dispatch, new rates, next event.

    Args:
        jumping: whether steady states may be jumped over (see :func:`jump`).
        full: whether grids or partitions changed since the last step, so that any SM may get blocks.
        now: simulated time (us), not before ``clock[NOW]``; no block may end earlier than that.

    Returns:
        the time of the next block end, DRAM traffic, busy SMs, lengths of the lists of what happened.
    """
    counts[STARTED] = 0
    counts[DISPATCHED] = 0
    counts[FINISHED] = 0
    counts[ENDED] = 0
    progress(now, sms, rows, held, grids, counts, clock)
    for rank in range(sms.shape[1]):
        r = 0
        while r < sms[ROWS, rank]:
            if rows[LEFT, r, rank] > DONE:
                r += 1
            else:
                end_row(rank, r, now, limits, sms, rows, held, grids, work, lists, counts, ended)
    if full:
        dispatch_all(now, limits, sms, rows, held, grids, work, lists, counts)
    set_rates(physics, sms, memory, rows, held, grids, work, counts, clock)
    if jumping and counts[QUEUE] > 0:
        jump(sms, rows, held, grids, work, lists, counts)
    set_next(sms, rows, counts, clock)
    return clock[NEXT], clock[TRAFFIC], counts[BUSY_SMS], counts[STARTED], counts[DISPATCHED], counts[FINISHED]


@cached(_nrt=False)
def progress(now, sms, rows, held, grids, counts, clock):
    """Carry all rows to ``now`` and give waves that have not begun back to their grids."""
    dt = now - clock[NOW]
    clock[NOW] = now
    for r in range(counts[DEPTH]):
        for rank in range(sms.shape[1]):
            rows[LEFT, r, rank] -= rows[RATE, r, rank] * dt
    if counts[AHEAD] == 1:
        counts[AHEAD] = 0
        for rank in range(sms.shape[1]):
            for r in range(sms[ROWS, rank]):
                waves = waves_ahead(rows[LEFT, r, rank])
                progressed = (now - rows[SINCE_US, r, rank]) * rows[RATE, r, rank] > 2.0 * DONE
                if progressed and rows[LEFT, r, rank] > waves + 1.0 - DONE:
                    # A wave ends at this very moment: its blocks leave the SM like all others that end now.
                    waves += 1
                rows[LEFT, r, rank] -= waves
                grids[held[GRID, r, rank], WAITING] += waves * held[COUNT, r, rank]


@njit(_nrt=False, forceinline=True)
def waves_ahead(left):
    """Waves in a row's ``left`` that have not begun."""
    return int(np.ceil(left - DONE)) - 1 if left > 1.0 + DONE else 0


@njit(_nrt=False, forceinline=True)
def end_row(rank, r, now, limits, sms, rows, held, grids, work, lists, counts, ended):
    """End the blocks of one row, as if one at a time; the dispatcher runs after each."""
    slot = held[GRID, r, rank]
    blocks = held[COUNT, r, rank]
    ended[counts[ENDED], 0] = rank
    ended[counts[ENDED], 1] = slot
    ended[counts[ENDED], 2] = blocks
    ended[counts[ENDED], 3] = rows[SINCE_US, r, rank]
    counts[ENDED] += 1
    remove_row(rank, r, sms, rows, held)
    while blocks > 0:
        position = head_for(rank, lists, grids, counts, sms.shape[1])
        leaving = blocks
        if position >= 0 and grids[lists[QUEUE, position], WAITING] <= limits[BLOCKS]:
            # The head may run out of blocks on the way, and then grids behind it see the SMs at that moment.
            leaving = 1
        elif position >= 0 and blocks > 1 and blocks == sms[BLOCKS, rank]:
            # The last block leaves an idle SM, whose carve-out is open, only if none has started by then.
            leaving = blocks - 1
        occupy(-leaving, slot, rank, sms, grids, counts)
        blocks -= leaving
        if position >= 0 and dispatch_to(rank, position, now, limits, sms, rows, held, grids, work, lists, counts):
            dispatch_all(now, limits, sms, rows, held, grids, work, lists, counts)
    if grids[slot, RESIDENT] == 0 and (grids[slot, WAITING] == 0 or grids[slot, QUEUED] == NOT_QUEUED):
        lists[FINISHED, counts[FINISHED]] = slot
        counts[FINISHED] += 1


@njit(_nrt=False, forceinline=True)
def remove_row(rank, r, sms, rows, held):
    """Take a row off an SM's list; what it holds of the SM stays taken."""
    last = sms[ROWS, rank] - 1
    for i in range(r, last):
        for field in range(ROW_FIELDS):
            rows[field, i, rank] = rows[field, i + 1, rank]
        for field in range(HELD_FIELDS):
            held[field, i, rank] = held[field, i + 1, rank]
    # Rows out of use take part in loops over all SMs, and must stay as they are there.
    rows[LEFT, last, rank] = 1.0
    rows[RATE, last, rank] = 0.0
    sms[ROWS, rank] = last


@njit(_nrt=False)
def jump(sms, rows, held, grids, work, lists, counts):
    """Let rows of the head grid run several waves in one event, as far as its waiting blocks surely last.

    While a grid waits at the head of the queue, every slot that its blocks free is taken by its next
    blocks, so nothing changes from wave to wave. Rows get whole waves in advance; what is left over
    is dispatched block by block. Any other event gives unbegun waves back first (:func:`progress`).
    """
    slot = lists[QUEUE, 0]
    if grids[slot, SAVED] > 0 or work[slot, SPREAD] > 0.0:
        return
    for position in range(1, counts[QUEUE]):
        if not overlap(slot, lists[QUEUE, position], grids, sms.shape[1]):
            return
    resident = 0
    fastest = 0.0
    for rank in range(sms.shape[1]):
        for r in range(sms[ROWS, rank]):
            if held[GRID, r, rank] == slot:
                resident += held[COUNT, r, rank]
                fastest = max(fastest, rows[RATE, r, rank])
    spare = grids[slot, WAITING] - 2 * resident
    if spare <= resident or fastest <= 0.0:
        return
    until = spare / (resident * fastest)
    for rank in range(sms.shape[1]):
        if sms[CARVEOUT, rank] != grids[slot, CARVEOUT]:
            # When this wave ends the SM may be idle, and then takes the grid's own carve-out: no steady state.
            continue
        r = youngest_alone(slot, rank, sms, held)
        if r >= 0 and rows[RATE, r, rank] > 0.0:
            # Waves that begin within ``until``: the first when the present block ends.
            waves = int(np.floor(until * rows[RATE, r, rank] - rows[LEFT, r, rank])) + 1
            if waves > 0:
                rows[LEFT, r, rank] += waves
                grids[slot, WAITING] -= waves * held[COUNT, r, rank]
                counts[AHEAD] = 1


@njit(_nrt=False, forceinline=True)
def youngest_alone(slot, rank, sms, held):
    """The row of a grid on an SM if it is the youngest there and the grid's only one, else -1.

    Rows are in order of age, which decides their rates: a wave takes the place of the one before it only if
    that was the youngest already.
    """
    last = sms[ROWS, rank] - 1
    if last < 0 or held[GRID, last, rank] != slot:
        return -1
    for r in range(last):
        if held[GRID, r, rank] == slot:
            return -1
    return last


@cached(_nrt=False)
def stop(slot, first, count, sms, rows, held):
    """Stop the blocks of a grid on ``count`` SMs from rank ``first`` on; returns their number."""
    blocks = 0
    for rank in range(sms.shape[1]):
        if not within(rank, first, count, sms.shape[1]):
            continue
        for r in range(sms[ROWS, rank]):
            if held[GRID, r, rank] == slot:
                held[STOPPED, r, rank] = 1
                sms[DIRTY, rank] = 1
                blocks += held[COUNT, r, rank]
    return blocks


@cached(_nrt=False)
def evict(slot, sms, rows, held, grids, work, counts):
    """Take the stopped blocks of a grid off the SMs; they wait again, as saved ones with the mean of what is left.

    Returns:
        their number.
    """
    blocks = 0
    left = 0
    for rank in range(sms.shape[1]):
        r = 0
        while r < sms[ROWS, rank]:
            if held[GRID, r, rank] != slot or held[STOPPED, r, rank] == 0:
                r += 1
                continue
            count = held[COUNT, r, rank]
            blocks += count
            left += count * int(rows[LEFT, r, rank] * WHOLE)
            remove_row(rank, r, sms, rows, held)
            occupy(-count, slot, rank, sms, grids, counts)
    if blocks > 0:
        saved = grids[slot, SAVED]
        work[slot, SAVED_LEFT] = (saved * work[slot, SAVED_LEFT] + left / WHOLE) / (saved + blocks)
        grids[slot, SAVED] = saved + blocks
        grids[slot, WAITING] += blocks
    return blocks


@cached(_nrt=False)
def waiting_blocks(slot, now, sms, rows, held, grids, clock):
    """Blocks of a grid not handed out at ``now``, waves jumped over included."""
    waiting = grids[slot, WAITING]
    for rank in range(sms.shape[1]):
        for r in range(sms[ROWS, rank]):
            if held[GRID, r, rank] == slot:
                left = rows[LEFT, r, rank] - rows[RATE, r, rank] * (now - clock[NOW])
                waiting += waves_ahead(left) * held[COUNT, r, rank]
    return waiting

"""Progress of resident blocks: rates are constant between events, so every step is exact.

As :mod:`gpusched_env.devices.reference.blocks`, by classes of equal SMs.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.devices.compiled import members as sets
from gpusched_env.devices.compiled.access import classes, grids, members, problem, queue, rows, scratch
from gpusched_env.devices.compiled.classes import join, merge, occupy, remove_row, split
from gpusched_env.devices.compiled.dispatch import dispatch_all, overlap
from gpusched_env.devices.compiled.ends import DONE, end_blocks
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import PARTITION, PICK
from gpusched_env.devices.compiled.rates import set_next, set_rates

WHOLE = 2.0**40
"""Work is summed in this part of a block, in whole numbers: so the sum does not hang on the order."""


@called
def step(w, x, now, jumping):
    """Advance to ``now``: progress, block ends, dispatch, new rates, next event.

    Args:
        jumping: whether steady states may be jumped over (see :func:`jump`).
        now: simulated time (us), not before the context's; no block may end earlier than that.
    """
    progress(w, x, now)
    if mark_ended(w, x):
        end_blocks(w, x)
    if x.changed == 1:
        x.changed = 0
        dispatch_all(w, x)
    merge(x)
    set_rates(w, x)
    if jumping and x.queued > 0:
        jump(w, x)
    set_next(w, x)


@inlined
def mark_ended(w, x):
    """Mark the classes that have a row without work left; whether there is one."""
    some = False
    for c in range(1, x.classes):
        sm = classes(x, c)
        sm.ended = 0
        for r in range(sm.rows):
            if rows(x, c, r).left <= DONE:
                sm.ended = 1
                some = True
                break
    return some


@called
def progress(w, x, now):
    """Carry all rows to ``now`` and give waves that have not begun back to their grids."""
    dt = now - x.now_us
    x.now_us = now
    for c in range(1, x.classes):
        for r in range(classes(x, c).rows):
            row = rows(x, c, r)
            row.left -= row.rate * dt
    if x.ahead == 1:
        x.ahead = 0
        for c in range(1, x.classes):
            for r in range(classes(x, c).rows):
                row = rows(x, c, r)
                waves = waves_ahead(row.left)
                progressed = (now - row.since_us) * row.rate > 2.0 * DONE
                if progressed and row.left > waves + 1.0 - DONE:
                    # A wave ends at this very moment: its blocks leave the SM like all others that end now.
                    waves += 1
                row.left -= waves
                grids(x, row.grid).waiting += waves * row.blocks * classes(x, c).sms


@inlined
def waves_ahead(left):
    """Waves in a row's ``left`` that have not begun."""
    return int(np.ceil(left - DONE)) - 1 if left > 1.0 + DONE else 0


@called
def jump(w, x):
    """Let rows of the head grid run several waves in one event, as far as its waiting blocks surely last.

    While a grid waits at the head of the queue, every slot that its blocks free is taken by its next
    blocks, so nothing changes from wave to wave. Rows get whole waves in advance; what is left over
    is dispatched block by block. Any other event gives unbegun waves back first (:func:`progress`).
    """
    slot = queue(x, 0).value
    grid = grids(x, slot)
    if grid.saved > 0 or grid.spread > 0.0:
        return
    for position in range(1, x.queued):
        if not overlap(w, x, slot, queue(x, position).value):
            return
    resident = 0
    fastest = 0.0
    for c in range(1, x.classes):
        sms = classes(x, c).sms
        for r in range(classes(x, c).rows):
            row = rows(x, c, r)
            if row.grid == slot:
                resident += row.blocks * sms
                fastest = max(fastest, row.rate)
    spare = grid.waiting - 2 * resident
    if spare <= resident or fastest <= 0.0:
        return
    until = spare / (resident * fastest)
    for c in range(1, x.classes):
        sm = classes(x, c)
        if sm.carveout != grid.carveout:
            # When this wave ends the SM may be idle, and then takes the grid's own carve-out: no steady state.
            continue
        r = youngest_alone(w, x, c, slot)
        if r >= 0 and rows(x, c, r).rate > 0.0:
            row = rows(x, c, r)
            # Waves that begin within ``until``: the first when the present block ends.
            waves = int(np.floor(until * row.rate - row.left)) + 1
            if waves > 0:
                row.left += waves
                grid.waiting -= waves * row.blocks * sm.sms
                x.ahead = 1


@inlined
def youngest_alone(w, x, c, slot):
    """The row of a grid in a class if it is the youngest there and the grid's only one, else -1.

    Rows are in order of age, which decides their rates: a wave takes the place of the one before it only if
    that was the youngest already.
    """
    last = classes(x, c).rows - 1
    if last < 0 or rows(x, c, last).grid != slot:
        return -1
    for r in range(last):
        if rows(x, c, r).grid == slot:
            return -1
    return last


@called
def stop(w, x, slot, first, sms):
    """Stop the blocks of a grid that are resident on ``sms`` SMs from rank ``first`` on; returns their number."""
    progress(w, x, x.now_us)
    x.changed = 1
    where = scratch(w, PARTITION)
    sets.ring(where, x.words, first, sms, problem(w).sms)
    stopped = 0
    for c in range(1, x.classes):
        inside = sets.common(members(x, c), where, x.words)
        if inside == 0 or not holds(x, c, slot):
            continue
        d = c
        if inside < classes(x, c).sms:
            picked = scratch(w, PICK)
            sets.copy(members(x, c), picked, x.words)
            sets.keep(picked, where, x.words)
            d = split(x, c, picked)
        classes(x, d).dirty = 1
        for r in range(classes(x, d).rows):
            row = rows(x, d, r)
            if row.grid == slot:
                row.stopped = 1
                stopped += row.blocks * inside
    return stopped


@inlined
def holds(x, c, slot):
    """Whether the SMs of a class hold blocks of a grid."""
    for r in range(classes(x, c).rows):  # noqa: SIM110 (Numba has no any() over generators)
        if rows(x, c, r).grid == slot:
            return True
    return False


@called
def evict(x, slot):
    """Take the stopped blocks of a grid off the SMs; they wait again, as saved ones with the mean of what is left.

    Returns:
        their number.
    """
    blocks = 0
    work = 0
    c = x.classes - 1
    while c > 0:
        sms = classes(x, c).sms
        r = 0
        while r < classes(x, c).rows:
            row = rows(x, c, r)
            if row.grid != slot or row.stopped == 0:
                r += 1
                continue
            count = row.blocks
            blocks += count * sms
            work += count * sms * int(row.left * WHOLE)
            remove_row(x, c, r)
            occupy(x, c, -count, slot, sms)
        if classes(x, c).rows == 0:
            join(x, c, 0)
        c -= 1
    if blocks > 0:
        grid = grids(x, slot)
        grid.saved_left = (grid.saved * grid.saved_left + work / WHOLE) / (grid.saved + blocks)
        grid.saved += blocks
        grid.waiting += blocks
    x.changed = 1
    return blocks


@called
def waiting_blocks(w, x, slot, now):
    """Blocks of a grid not handed out at ``now``, waves jumped over included."""
    waiting = grids(x, slot).waiting
    if x.ahead == 1:
        elapsed = now - x.now_us if x.active == 1 else 0.0
        for c in range(1, x.classes):
            for r in range(classes(x, c).rows):
                row = rows(x, c, r)
                if row.grid == slot:
                    waiting += waves_ahead(row.left - row.rate * elapsed) * row.blocks * classes(x, c).sms
    return waiting

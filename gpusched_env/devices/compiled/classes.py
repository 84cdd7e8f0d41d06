"""Classes of equal SMs: SMs that hold the same, bit by bit, are simulated once.

Class 0 holds the idle SMs and is never removed; the others have at least one SM and one row of residents.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import members as sets
from gpusched_env.devices.compiled.access import class_ends, classes, grids, members, rows
from gpusched_env.devices.compiled.sharing import count_traffic
from gpusched_env.hardware.clock import NEVER

IDLE = 0


@inlined
def class_of_sm(context, rank):
    """The class that the SM of a rank is in."""
    for sm_class in range(context.classes):
        if sets.contains(members(context, sm_class), rank):
            return sm_class
    return -1


@inlined
def copy_row(source, target):
    """Copy a record of :data:`~gpusched_env.devices.compiled.layout.ROW`."""
    target.grid = source.grid
    target.blocks = source.blocks
    target.stopped = source.stopped
    target.number = source.number
    target.passed = source.passed
    target.held = source.held
    target.limited = source.limited
    target.since_ps = source.since_ps
    target.at_ps = source.at_ps
    target.end_ps = source.end_ps
    target.waves = source.waves
    target.left = source.left
    target.rate = source.rate
    target.time_us = source.time_us
    target.floor = source.floor


@called
def copy_class(context, source, target):
    """Copy what the SMs of a class hold to another class."""
    a = classes(context, source)
    b = classes(context, target)
    b.rows = a.rows
    b.threads = a.threads
    b.warps = a.warps
    b.blocks = a.blocks
    b.registers = a.registers
    b.shared = a.shared
    b.carveout = a.carveout
    b.dirty = a.dirty
    b.room = a.room
    b.demand = a.demand
    b.loading = a.loading
    b.throttle = a.throttle
    b.leaver = a.leaver
    b.leaving = a.leaving
    class_ends(context, target).value = class_ends(context, source).value
    for r in range(a.rows):
        copy_row(rows(context, source, r), rows(context, target, r))


@called
def split(context, sm_class, picked):
    """Move SMs of a class, the set at ``picked``, to a new class; returns its number.

    All of them move only where ``sm_class`` is the idle class.
    """
    d = context.classes
    context.classes = d + 1
    copy_class(context, sm_class, d)
    sets.copy(picked, members(context, d), context.words)
    sets.drop(members(context, sm_class), picked, context.words)
    moved = sets.size(picked, context.words)
    classes(context, d).sms = moved
    classes(context, sm_class).sms -= moved
    return d


@called
def join(context, sm_class, target):
    """Move all SMs of a class to another one and remove it; the last class takes its number."""
    sm = classes(context, sm_class)
    into = classes(context, target)
    sets.add(members(context, target), members(context, sm_class), context.words)
    if sm.demand != into.demand or sm.loading != into.loading:
        count_traffic(context, sm.demand, sm.loading, -sm.sms)
        count_traffic(context, into.demand, into.loading, sm.sms)
    into.sms += sm.sms
    remove_class(context, sm_class)


@called
def remove_class(context, sm_class):
    """Remove a class whose SMs are in others; the last class takes its number."""
    last = context.classes - 1
    context.classes = last
    if sm_class != last:
        copy_class(context, last, sm_class)
        classes(context, sm_class).sms = classes(context, last).sms
        sets.copy(members(context, last), members(context, sm_class), context.words)


@inlined
def alike(context, a, b):
    """Whether the SMs of two classes hold the same, bit by bit (rates and durations follow from the rest)."""
    one = classes(context, a)
    other = classes(context, b)
    if class_ends(context, a).value != class_ends(context, b).value:
        return False
    if one.rows != other.rows or one.carveout != other.carveout or one.threads != other.threads:
        return False
    for r in range(one.rows):
        p = rows(context, a, r)
        q = rows(context, b, r)
        if p.left != q.left or p.grid != q.grid or p.blocks != q.blocks or p.since_ps != q.since_ps:
            return False
        if p.stopped != q.stopped or p.number != q.number or p.at_ps != q.at_ps or p.end_ps != q.end_ps:
            return False
        if p.rate != q.rate or p.held != q.held or p.floor != q.floor:
            return False
    return True


@inlined
def soonest_end(context, sm_class):
    """The next block end of a class, or when its blocks come to their limit."""
    soonest_ps = NEVER
    for r in range(classes(context, sm_class).rows):
        soonest_ps = min(soonest_ps, rows(context, sm_class, r).end_ps)
    return soonest_ps


@called
def merge(context):
    """Join classes that have become equal: SMs without blocks, and changed ones that hold the same as others."""
    for sm_class in range(1, context.classes):
        if classes(context, sm_class).dirty == 1:
            class_ends(context, sm_class).value = soonest_end(context, sm_class)
    sm_class = context.classes - 1
    while sm_class > IDLE:
        if classes(context, sm_class).rows == 0:
            join(context, sm_class, IDLE)
        elif classes(context, sm_class).dirty == 1:
            for b in range(1, context.classes):
                if b != sm_class and alike(context, b, sm_class):
                    join(context, sm_class, b)
                    break
        sm_class -= 1


@inlined
def occupy(context, sm_class, blocks, slot, sms):
    """Take what ``blocks`` blocks of a grid need of each of the ``sms`` SMs of a class; negative: give back."""
    sm = classes(context, sm_class)
    grid = grids(context, slot)
    if sm.blocks == 0:
        sm.carveout = grid.carveout
        context.busy_sms += sms
    sm.threads += blocks * grid.threads
    sm.warps += blocks * grid.warps
    sm.blocks += blocks
    sm.registers += blocks * grid.registers
    sm.shared += blocks * grid.shared_bytes
    sm.dirty = 1
    grid.resident += blocks * sms
    context.resident_threads += blocks * grid.threads * sms
    if sm.blocks == 0:
        context.busy_sms -= sms


@inlined
def add_row(context, sm_class, blocks, left, number, slot, now_ps):
    """Put blocks with ``left`` of their work to do on the SMs of a class, into the row of equal ones or a new one.

    ``number``: of a block that stands for them, where tiles are synchronised; -1: they are not.
    """
    sm = classes(context, sm_class)
    for r in range(sm.rows):
        row = rows(context, sm_class, r)
        same = row.grid == slot and row.left == left and row.since_ps == now_ps
        if same and row.stopped == 0 and row.number == number:
            row.blocks += blocks
            return
    row = rows(context, sm_class, sm.rows)
    row.grid = slot
    row.blocks = blocks
    row.stopped = 0
    row.number = number
    row.passed = 0
    row.held = 1 if number >= 0 else 0
    row.limited = 0
    row.floor = 0.0
    row.since_ps = now_ps
    row.at_ps = now_ps
    row.end_ps = NEVER
    row.waves = 0
    row.left = left
    row.rate = 0.0
    row.time_us = 0.0
    sm.rows += 1


@inlined
def remove_row(context, sm_class, r):
    """Take a row off a class's list; what it holds of the SMs stays taken."""
    sm = classes(context, sm_class)
    sm.rows -= 1
    for i in range(r, sm.rows):
        copy_row(rows(context, sm_class, i + 1), rows(context, sm_class, i))

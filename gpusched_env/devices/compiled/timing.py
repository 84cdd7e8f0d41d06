"""The timers of an environment: an indexed heap in the order of events.

Each owner has one timer: the slicer, every tenant's arrivals and deadlines, every host thread, every core, and every
flight two, for what its launch waits for and for its preemption.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import heap, launches, problem, timers
from gpusched_env.devices.compiled.layout import (
    ARRIVALS,
    CORES,
    DEADLINES,
    HOSTS,
    NONE,
    PHASE,
    SLICER,
)
from gpusched_env.hardware.clock import NEVER

SLICER_TIMER = 0
"""Owner of the slicer's timer."""


@inlined
def arrival_timer(tenant):
    return 1 + tenant


@inlined
def deadline_timer(w, tenant):
    return 1 + problem(w).tenants + tenant


@inlined
def thread_timer(w, k):
    return 1 + 2 * problem(w).tenants + k


@inlined
def core_timer(w, c):
    return 1 + 2 * problem(w).tenants + problem(w).host_threads + c


@inlined
def launch_timer(w, slot):
    """Owner of a launch's own timer; the next one is that of its preemption. It has a flight."""
    return core_timer(w, problem(w).cores) + 2 * launches(w, slot).flight


@inlined
def comes_before(w, one, other):
    """Whether the timer of one owner is due before another's."""
    a = timers(w, one)
    b = timers(w, other)
    return a.at_ps < b.at_ps or (a.at_ps == b.at_ps and a.order < b.order)


@called
def rise(w, place, owner):
    """Put an owner at a place of the heap or above it."""
    while place > 0:
        above = (place - 1) >> 1
        other = heap(w, above).value
        if not comes_before(w, owner, other):
            break
        heap(w, place).value = other
        timers(w, other).place = place
        place = above
    heap(w, place).value = owner
    timers(w, owner).place = place


@called
def sink(w, place, owner):
    """Put an owner at a place of the heap or below it."""
    length = w.heap_length
    while True:
        below = 2 * place + 1
        if below >= length:
            break
        if below + 1 < length and comes_before(w, heap(w, below + 1).value, heap(w, below).value):
            below += 1
        other = heap(w, below).value
        if not comes_before(w, other, owner):
            break
        heap(w, place).value = other
        timers(w, other).place = place
        place = below
    heap(w, place).value = owner
    timers(w, owner).place = place


@called
def stop(w, owner):
    """Stop a timer; it may not be set."""
    timer = timers(w, owner)
    place = timer.place
    if place == NONE:
        return
    timer.place = NONE
    timer.at_ps = NEVER
    w.heap_length -= 1
    if place < w.heap_length:
        last = heap(w, w.heap_length).value
        if place > 0 and comes_before(w, last, heap(w, (place - 1) >> 1).value):
            rise(w, place, last)
        else:
            sink(w, place, last)


@called
def arm(w, owner, at_ps, order):
    """Set a timer, which may be set already."""
    stop(w, owner)
    timer = timers(w, owner)
    timer.at_ps = at_ps
    timer.order = order
    w.heap_length += 1
    rise(w, w.heap_length - 1, owner)


@inlined
def arm_launch(w, slot, at_ps, phase):
    """Set a launch's own timer."""
    arm(w, launch_timer(w, slot), at_ps, phase * PHASE + launches(w, slot).id)


@inlined
def arm_preemption(w, slot, at_ps, phase):
    """Set the timer of a launch's preemption."""
    arm(w, launch_timer(w, slot) + 1, at_ps, phase * PHASE + launches(w, slot).id)


@inlined
def arm_slicer(w, at_ps):
    arm(w, SLICER_TIMER, at_ps, SLICER * PHASE)


@inlined
def arm_arrival(w, tenant, at_ps):
    arm(w, arrival_timer(tenant), at_ps, ARRIVALS * PHASE + tenant)


@inlined
def arm_deadline(w, tenant, at_ps):
    arm(w, deadline_timer(w, tenant), at_ps, DEADLINES * PHASE + tenant)


@inlined
def arm_thread(w, k, at_ps):
    arm(w, thread_timer(w, k), at_ps, HOSTS * PHASE + k)


@inlined
def arm_core(w, c, at_ps):
    arm(w, core_timer(w, c), at_ps, CORES * PHASE + c)

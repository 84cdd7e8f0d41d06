"""Launches from their issue to their streams: what they wait for, and handing them over.

The rules are in docs/devices.md (entities).
"""

from __future__ import annotations

from gpusched_env.devices.compiled.access import (
    afters,
    edges,
    flight_of,
    jobs,
    launches,
    marks,
    ops,
    problem,
    queues,
    streams,
)
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import LAUNCHED, NONE, PENDING, STREAMS
from gpusched_env.devices.compiled.lists import add_pending
from gpusched_env.devices.compiled.slots import add_edge, holds, new_launch, take_flight
from gpusched_env.devices.compiled.timing import arm_launch, arm_slicer
from gpusched_env.workload.workload import OpKind

KERNEL = int(OpKind.KERNEL)
GRAPH = int(OpKind.GRAPH)


@inlined
def is_scheduled(kind):
    """Whether launches of a kind are the scheduler's: kernels and graphs, not copies."""
    return kind in (KERNEL, GRAPH)


@inlined
def wake_slicer(w):
    """A kernel was launched or has left, or a slice has ended."""
    if w.slicer_asleep == 1:
        w.slicer_asleep = 0
        arm_slicer(w, w.now_ps)


@called
def make_launch(w, id_, place, tenant, number):
    """A launch of an operation of a job, and what it waits for; returns its slot."""
    op = ops(w, place)
    slot = new_launch(w, id_, place, tenant, number)
    launch = launches(w, slot)
    launch.row = op.stream
    launch.arrived_ps = jobs(w, tenant, number).arrived_ps
    launch.deadline_ps = jobs(w, tenant, number).deadline_ps
    stream = streams(w, op.stream)
    if holds(w, stream.last_slot, stream.last_id):
        launch.queue_slot = stream.last_slot
        launch.queue_id = stream.last_id
        wait_for(w, slot, stream.last_slot)
    for i in range(op.afters):
        mark = marks(w, tenant, afters(w, op.first_after + i))
        if mark.finished == 0 and mark.launch != launch.queue_id:
            wait_for(w, slot, mark.slot)
    if op.tiles >= 0:
        mark = marks(w, tenant, op.tiles)
        if mark.finished == 0:
            launch.tile_slot = mark.slot
            launch.tile_id = mark.launch
    stream.last_slot = slot
    stream.last_id = launch.id
    return slot


@inlined
def wait_for(w, slot, source):
    """A new launch waits for an unfinished one."""
    add_edge(w, source, slot)
    if launches(w, source).state == PENDING:
        launches(w, slot).unlaunched += 1


@called
def settle_issue(w, slot, at_ps):
    """A launch is there: the scheduler intercepts kernels and graphs, a copy goes on by itself, at ``at_ps``."""
    launch = launches(w, slot)
    launch.state = PENDING
    if is_scheduled(ops(w, launch.op).kind):
        add_pending(w, slot)
        streams(w, launch.row).window += 1
        if launch.unlaunched == 0:
            w.awake = 1
    elif launch.unlaunched == 0:
        launch.after = NONE
        hand_over_copies(w, slot, at_ps, slot)


@called
def hand_over_copies(w, first, at_ps, last):
    """Launch copies that wait for nothing pending, a list by ``after`` up to ``last``, and those that they held up."""
    while first != NONE:
        take_flight(w, first)
        launch = launches(w, first)
        flight = flight_of(w, launch)
        flight.stream = launch.row
        flight.priority = streams(w, launch.row).priority
        last = hand_over(w, first, at_ps, last)
        first = launch.after


@called
def hand_over(w, slot, at_ps, last):
    """Pass a launch to the queue that it names; copies that it held up are put behind ``last`` in a list by ``after``.

    Returns:
        the last of that list.
    """
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    launch.state = LAUNCHED
    flight.launched_ps = at_ps
    flight.ready_ps = at_ps + problem(w).launch_latency_ps
    if flight.stream != NONE:
        queue = queues(w, flight.stream, flight.priority)
        if holds(w, queue.last_slot, queue.last_id) and queue.last_id != launch.queue_id:
            add_edge(w, queue.last_slot, slot)
        queue.last_slot = slot
        queue.last_id = launch.id
    last = tell_launched(w, slot, last)
    if launch.upstream == 0:
        arm_launch(w, slot, max(flight.ready_ps, w.now_ps), STREAMS)
    return last


@called
def tell_launched(w, slot, last):
    """What waits for a launch learns that it is pending no more; see :func:`hand_over`."""
    number = launches(w, slot).edges_out
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.target, edge.target_id):
            target = launches(w, edge.target)
            if target.state == PENDING:
                target.unlaunched -= 1
                if target.unlaunched == 0 and not is_scheduled(ops(w, target.op).kind):
                    launches(w, last).after = edge.target
                    target.after = NONE
                    last = edge.target
        number = edge.next_out
    return last


@called
def tell_pending(w, slot):
    """What waits for a launch learns that it is pending again."""
    number = launches(w, slot).edges_out
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.target, edge.target_id) and launches(w, edge.target).state == PENDING:
            launches(w, edge.target).unlaunched += 1
        number = edge.next_out


@called
def come_back(w, slot, at_ps):
    """A preempted kernel goes back to its place, which was kept; what was saved of it is read back first."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    launch.state = LAUNCHED
    flight.launched_ps = at_ps
    flight.ready_ps = at_ps + problem(w).launch_latency_ps + flight.restore_ps
    last = tell_launched(w, slot, slot)
    arm_launch(w, slot, max(flight.ready_ps, w.now_ps), STREAMS)
    return last

"""Launches that start: kernels with their children, graphs with their nodes, copies, and what a GPU outside of the
simulation reports.

With ``w.external`` a launch goes to the outbox when it is handed to its stream. The GPU, not this device, keeps it
waiting for what is before it, and says when it has started and ended.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    afters,
    copies,
    engines,
    flight_of,
    flights,
    launches,
    ops,
    problem,
    tilings,
)
from gpusched_env.devices.compiled.finishing import complete, ended, is_node, kernel_finished, kernel_preempted
from gpusched_env.devices.compiled.issuing import add_to_outbox, arm_when_ready, is_graph, is_scheduled, open_gate
from gpusched_env.devices.compiled.layout import ENGINE, HIDDEN, LAUNCHED, NONE, PENDING, READY, STREAMS
from gpusched_env.devices.compiled.slots import (
    add_edge,
    add_pending,
    end_flight,
    new_launch,
    next_id,
    note_start,
    take_flight,
)
from gpusched_env.devices.compiled.tiles import clear_tiling
from gpusched_env.devices.compiled.timing import arm_launch
from gpusched_env.devices.rules.copies import ON_DEVICE, direction, engine_for
from gpusched_env.devices.rules.world import log_copy
from gpusched_env.hardware.clock import NEVER


@called
def begin_graph(w, slot):
    """A graph is ready: its nodes become launches, and those that wait for none are ready at once."""
    graph = launches(w, slot)
    op = ops(w, graph.op)
    graph.state = READY
    flight_of(w, graph).offspring = op.offspring
    first = w.ids
    newest = slot
    for i in range(op.offspring):
        number = new_launch(w, next_id(w), op.more + i, graph.tenant, graph.job)
        if problem(w).tiled == 1:
            clear_tiling(w, number)
        node = launches(w, number)
        node.state = LAUNCHED
        node.parent = slot
        node.parent_id = graph.id
        node.stream = graph.stream
        node.priority = graph.priority
        node.partition_first = graph.partition_first
        node.partition_sms = graph.partition_sms
        node.arrived_ps = graph.arrived_ps
        node.deadline_ps = graph.deadline_ps
        node.issued_ps = graph.issued_ps
        node.launched_ps = graph.launched_ps
        node.ready_ps = w.now_ps
        # The nodes before it, newest first: found by their ids.
        node.before = newest
        own = ops(w, node.op)
        for k in range(own.afters):
            id_ = first + afters(w, own.first_after + k)
            other = newest
            while launches(w, other).id != id_:
                other = launches(w, other).before
            add_edge(w, other, number)
        if node.upstream == 0:
            arm_when_ready(w, number)
        newest = number


@called
def kernel_started(w, slot):
    """The first block of a kernel has started since it was launched."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    first = flight.first_started_ps == NEVER
    if first:
        flight.first_started_ps = w.now_ps
    if is_node(w, launch):
        flight.started_ps = min(flight.started_ps, w.now_ps)
        note_start(w, launch.parent)
        return
    note_start(w, slot)
    if problem(w).tiled == 1 and tilings(w, slot).gates == 1:
        open_gate(w, slot)
    if first and ops(w, launch.op).offspring > 0:
        launch_children(w, slot)


@called
def launch_children(w, slot):
    """A kernel has started: its children are on their way."""
    kernel = launches(w, slot)
    op = ops(w, kernel.op)
    flight_of(w, kernel).offspring = op.offspring
    for i in range(op.offspring):
        number = new_launch(w, next_id(w), op.more + i, kernel.tenant, kernel.job)
        if problem(w).tiled == 1:
            clear_tiling(w, number)
        # For the timer of its way.
        take_flight(w, number)
        child = launches(w, number)
        child.state = HIDDEN
        child.parent = slot
        child.parent_id = kernel.id
        child.arrived_ps = kernel.arrived_ps
        child.deadline_ps = kernel.deadline_ps
        arm_launch(w, number, w.now_ps + problem(w).child_launch_ps, STREAMS)


@called
def issue_child(w, slot):
    """A child is issued: it waits for the scheduler, and for nothing else."""
    child = launches(w, slot)
    end_flight(w, slot)
    child.state = PENDING
    child.issued_ps = w.now_ps
    add_pending(w, slot)
    w.awake = 1


@called
def request_copy(w, slot):
    """A copy is ready: it waits for its engine, if it needs one."""
    launch = launches(w, slot)
    launch.state = READY
    flight_of(w, launch).behind = NONE
    way = direction(ops(w, launch.op).kind)
    if way == ON_DEVICE:
        start_copy(w, slot)
        return
    engine = engines(w, engine_for(w, way))
    if engine.busy == 0:
        engine.busy = 1
        start_copy(w, slot)
    elif engine.first == NONE:
        engine.first = slot
        engine.last = slot
    else:
        flights(w, engine.last).behind = slot
        engine.last = slot


@inlined
def start_copy(w, slot):
    """A copy starts."""
    launch = launches(w, slot)
    flight_of(w, launch).started_ps = w.now_ps
    if is_node(w, launch):
        note_start(w, launch.parent)
    arm_launch(w, slot, w.now_ps + copies(w, ops(w, launch.op).more).device_ps, ENGINE)


@called
def end_copy(w, slot):
    """A copy has ended; the next one for its engine starts."""
    launch = launches(w, slot)
    way = direction(ops(w, launch.op).kind)
    if way != ON_DEVICE:
        engine = engines(w, engine_for(w, way))
        follower = engine.first
        if follower == NONE:
            engine.busy = 0
        else:
            engine.first = flights(w, follower).behind
            start_copy(w, follower)
    log_copy(w, way, launch)
    ended(w, slot)


@inlined
def recall(w, slot):
    """A kernel is to hand out no further blocks."""
    add_to_outbox(w, -1 - slot)


@called
def left_reported(w, slot, blocks):
    """A kernel that was recalled has left the GPU, at the present time, with so many blocks that have not run."""
    flight_of(w, launches(w, slot)).blocks = blocks
    kernel_preempted(w, slot, True)


@called
def start_reported(w, slot):
    """A launch has started, at the present time."""
    launch = launches(w, slot)
    launch.state = READY
    if not is_scheduled(launch):
        flight_of(w, launch).started_ps = w.now_ps
    elif is_graph(w, launch):
        note_start(w, slot)
    else:
        kernel_started(w, slot)


@called
def end_reported(w, slot):
    """A launch has ended, at the present time; its start was reported before."""
    launch = launches(w, slot)
    if not is_scheduled(launch):
        log_copy(w, direction(ops(w, launch.op).kind), launch)
        ended(w, slot)
    elif is_graph(w, launch):
        complete(w, slot)
    else:
        kernel_finished(w, slot)

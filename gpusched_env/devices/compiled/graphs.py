"""Launches that come from launches: the nodes of a graph, and children launched from the device."""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.devices.compiled.access import afters, flight_of, launches, ops, problem, tilings
from gpusched_env.devices.compiled.finishing import is_node
from gpusched_env.devices.compiled.issuing import be_due, open_gate
from gpusched_env.devices.compiled.layout import HIDDEN, LAUNCHED, PENDING, READY, STREAMS
from gpusched_env.devices.compiled.lists import add_pending, note_start
from gpusched_env.devices.compiled.slots import add_edge, end_flight, new_launch, next_id, take_flight
from gpusched_env.devices.compiled.tiles import clear_tiling
from gpusched_env.devices.compiled.timing import arm_launch
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
            be_due(w, number)
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

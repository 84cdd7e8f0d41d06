"""Slots of launches, of their flights and of edges: taking them and giving them back."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import edges, flight_at, flight_of, launches, ops, problem
from gpusched_env.devices.compiled.layout import FREE, NONE
from gpusched_env.devices.compiled.timing import launch_s, stop
from gpusched_env.hardware.clock import NEVER


@called
def new_launch(w, id_, op, tenant, job):
    """A slot for a launch of an operation."""
    slot = w.free_launch
    launch = launches(w, slot)
    w.free_launch = launch.after
    w.free_launches -= 1
    launch.id = id_
    launch.op = op
    launch.identity = ops(w, op).identity
    launch.tenant = tenant
    launch.job = job
    launch.parent = NONE
    launch.parent_id = NONE
    launch.row = NONE
    launch.stream = NONE
    launch.priority = 0
    launch.partition_first = 0
    launch.partition_sms = problem(w).sms
    launch.previous = NONE
    launch.next = NONE
    launch.flight = NONE
    launch.upstream = 0
    launch.unlaunched = 0
    launch.edges_out = NONE
    launch.edges_in = NONE
    launch.issued_ps = w.now_ps
    return slot


@inlined
def next_id(w):
    """An id: they count up, in the order in which work is issued."""
    id_ = w.ids
    w.ids += 1
    return id_


@called
def take_flight(w, slot):
    """A launch gets a flight, in which nothing has happened; there are as many as launches."""
    number = w.free_flight
    flight = flight_at(w, number)
    w.free_flight = flight.slot
    w.free_flights -= 1
    launches(w, slot).flight = number
    flight.slot = slot
    flight.behind = NONE
    flight.grid = NONE
    flight.saved = 0
    flight.saved_left = 1.0
    flight.preempting = 0
    flight.save_sms = 0
    flight.preemptions = 0
    flight.offspring = 0
    flight.done_blocks = 0
    flight.blocks = NONE
    flight.started_ps = NEVER
    flight.first_started_ps = NEVER
    flight.ran_ps = 0
    flight.restore_ps = 0
    flight.preempted_ps = -1


@called
def end_flight(w, slot):
    """Give the flight of a launch back; its timers are stopped."""
    launch = launches(w, slot)
    stop(w, launch_s(w, slot))
    stop(w, launch_s(w, slot) + 1)
    flight_of(w, launch).slot = w.free_flight
    w.free_flight = launch.flight
    w.free_flights += 1
    launch.flight = NONE


@inlined
def free_edges_in(w, launch):
    """Give the edges to what a launch waits for back."""
    edge = launch.edges_in
    launch.edges_in = NONE
    while edge != NONE:
        after = edges(w, edge).next_in
        edges(w, edge).next_in = w.free_edge
        w.free_edge = edge
        w.free_edges += 1
        edge = after


@called
def free_launch(w, slot):
    """Give a slot back, with its flight and the edges to what its launch waited for."""
    launch = launches(w, slot)
    free_edges_in(w, launch)
    if launch.flight != NONE:
        end_flight(w, slot)
    launch.id = NONE
    launch.state = FREE
    launch.after = w.free_launch
    w.free_launch = slot
    w.free_launches += 1


@inlined
def holds(w, slot, id_):
    """Whether a slot still holds the launch of that id."""
    return slot != NONE and launches(w, slot).id == id_


@called
def add_edge(w, source, target):
    """``target`` waits for ``source``: slots."""
    number = w.free_edge
    edge = edges(w, number)
    w.free_edge = edge.next_in
    w.free_edges -= 1
    a = launches(w, source)
    b = launches(w, target)
    edge.source = source
    edge.source_id = a.id
    edge.target = target
    edge.target_id = b.id
    edge.next_out = a.edges_out
    a.edges_out = number
    edge.next_in = b.edges_in
    b.edges_in = number
    b.upstream += 1


@called
def drop_edge(w, source, target):
    """``target`` waits for ``source`` no more, which it did by an edge: slots."""
    a = launches(w, source)
    b = launches(w, target)
    before = NONE
    number = b.edges_in
    while edges(w, number).source != source or edges(w, number).source_id != a.id:
        before = number
        number = edges(w, number).next_in
    if before == NONE:
        b.edges_in = edges(w, number).next_in
    else:
        edges(w, before).next_in = edges(w, number).next_in
    unlink_out(w, a, number)
    edges(w, number).next_in = w.free_edge
    w.free_edge = number
    w.free_edges += 1
    b.upstream -= 1


@inlined
def unlink_out(w, source, number):
    """Take an edge off the list of those to what waits for a launch."""
    before = NONE
    at = source.edges_out
    while at != number:
        before = at
        at = edges(w, at).next_out
    if before == NONE:
        source.edges_out = edges(w, number).next_out
    else:
        edges(w, before).next_out = edges(w, number).next_out


@called
def drop_edges_in(w, slot):
    """What a launch waits for is no longer to tell it, nor known."""
    launch = launches(w, slot)
    number = launch.edges_in
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.source, edge.source_id):
            unlink_out(w, launches(w, edge.source), number)
        number = edge.next_in
    free_edges_in(w, launch)

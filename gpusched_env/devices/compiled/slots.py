"""Slots of launches, of their flights and of edges, and the lists that launches are in."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    clients,
    edges,
    flight_at,
    flight_of,
    flights,
    kernels,
    launches,
    ops,
    problem,
)
from gpusched_env.devices.compiled.layout import FREE, NONE
from gpusched_env.devices.compiled.timing import launch_timer, stop
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
    stop(w, launch_timer(w, slot))
    stop(w, launch_timer(w, slot) + 1)
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


# ---- pending launches, in order of id --------------------------------------------------------------------


@called
def add_pending(w, slot):
    """Put a launch into its tenant's list: behind all of lower ids."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    w.pending += 1
    client.kernels_pending += 1
    before = client.pending_last
    while before != NONE and launches(w, before).id > launch.id:
        before = launches(w, before).before
    launch.before = before
    if before == NONE:
        launch.after = client.pending_first
        client.pending_first = slot
    else:
        launch.after = launches(w, before).after
        launches(w, before).after = slot
    if launch.after == NONE:
        client.pending_last = slot
    else:
        launches(w, launch.after).before = slot


@called
def remove_pending(w, slot):
    """Take a launch out of its tenant's list."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    w.pending -= 1
    client.kernels_pending -= 1
    if launch.before == NONE:
        client.pending_first = launch.after
    else:
        launches(w, launch.before).after = launch.after
    if launch.after == NONE:
        client.pending_last = launch.before
    else:
        launches(w, launch.after).before = launch.before


@called
def find_pending(w, id_):
    """The slot of a launch that the scheduler may launch: among the first of a tenant."""
    for tenant in range(problem(w).tenants):
        slot = clients(w, tenant).pending_first
        while slot != NONE and launches(w, slot).id <= id_:
            if launches(w, slot).id == id_:
                return slot
            slot = launches(w, slot).after
    return NONE


# ---- launched ones, in order of launch ---------------------------------------------------------------------


@called
def add_running(w, slot):
    """A kernel or graph was launched."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    launch.order = w.launch_count
    w.launch_count += 1
    launch.before = client.running_last
    launch.after = NONE
    if client.running_last == NONE:
        client.running_first = slot
    else:
        launches(w, client.running_last).after = slot
    client.running_last = slot
    client.kernels_launched += 1
    client.launched_profiled_us += left_to_run_us(w, launch)


@called
def remove_running(w, slot):
    """A kernel or graph has finished, or is pending again."""
    launch = launches(w, slot)
    client = clients(w, launch.tenant)
    if launch.before == NONE:
        client.running_first = launch.after
    else:
        launches(w, launch.before).after = launch.after
    if launch.after == NONE:
        client.running_last = launch.before
    else:
        launches(w, launch.after).before = launch.before
    client.kernels_launched -= 1
    if flight_of(w, launch).started_ps < NEVER:
        remove_started(w, slot)
    # The sum starts anew when nothing is launched, so that rounding does not pile up.
    left_us = left_to_run_us(w, launch)
    client.launched_profiled_us = client.launched_profiled_us - left_us if client.kernels_launched else 0.0


@inlined
def left_to_run_us(w, launch):
    """Profiled duration of a launch, less what it ran before it was preempted."""
    profiled_us = kernels(w, launch.identity).profiled_us
    return profiled_us if launch.flight == NONE else profiled_us - min(profiled_us, flight_of(w, launch).ran_ps / 1e6)


@called
def note_start(w, slot):
    """The first block of a launch, or of a graph's node, starts: it stands among those that have."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    if flight.started_ps < NEVER:
        return
    flight.started_ps = w.now_ps
    before = w.started_last
    while before != NONE and launches(w, before).order > launch.order:
        before = flights(w, before).started_before
    flight.started_before = before
    if before == NONE:
        flight.started_after = w.started_first
        w.started_first = slot
    else:
        flight.started_after = flights(w, before).started_after
        flights(w, before).started_after = slot
    if flight.started_after == NONE:
        w.started_last = slot
    else:
        flights(w, flight.started_after).started_before = slot


@called
def remove_started(w, slot):
    """A launch that had started has finished, or is pending again."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    if flight.started_before == NONE:
        w.started_first = flight.started_after
    else:
        flights(w, flight.started_before).started_after = flight.started_after
    if flight.started_after == NONE:
        w.started_last = flight.started_before
    else:
        flights(w, flight.started_after).started_before = flight.started_before


@called
def find_started(w, id_):
    """The slot of a launch that has started."""
    slot = w.started_first
    while slot != NONE and launches(w, slot).id != id_:
        slot = flights(w, slot).started_after
    return slot

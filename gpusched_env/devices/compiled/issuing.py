"""Launches from their issue to their streams: what they wait for, and handing them over.

The rules are in docs/devices.md (entities).
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    afters,
    edges,
    flight_of,
    jobs,
    launches,
    marks,
    ops,
    outbox,
    problem,
    queues,
    stream_rows,
    streams,
    tilings,
)
from gpusched_env.devices.compiled.layout import EMPTIED, LAUNCHED, NONE, PENDING, STREAMS
from gpusched_env.devices.compiled.slots import (
    add_edge,
    add_pending,
    drop_edge,
    drop_edges_in,
    holds,
    new_launch,
    take_flight,
)
from gpusched_env.devices.compiled.tiles import clear_tiling, forms_of, may_synchronise
from gpusched_env.devices.compiled.timing import arm_launch, arm_slicer


@inlined
def is_scheduled(launch):
    """Whether a launch, or those of an operation, are the scheduler's: kernels and graphs, not copies."""
    return launch.identity != NONE


@inlined
def is_graph(w, launch):
    """Whether a launch, or those of an operation, are graphs, which follow the kernels in their table."""
    return launch.identity >= problem(w).kernels


@inlined
def wake_slicer(w):
    """A kernel was launched or has left, or a slice has ended."""
    if w.slicer_asleep == 1:
        w.slicer_asleep = 0
        arm_slicer(w, w.now_ps)


@inlined
def is_windowed(w, launch):
    """Whether a launch passed a window."""
    return launch.row != NONE and stream_rows(w, launch.row).windowed == 1


@inlined
def is_launchable(w, launch):
    """Whether nothing that a pending launch waits for is pending; in a window: some stream may take it."""
    if is_windowed(w, launch):
        return launch.upstream == 0 if not is_scheduled(launch) else stream_for(w, launch) != NONE
    return launch.unlaunched == 0


@called
def stream_for(w, launch):
    """The scheduler's stream that takes a pending launch of a window: its own again; that of all that it waits for; of
    those with room the one that holds least. -1: none does."""
    if launch.flight != NONE:
        return launch.stream
    if launch.upstream > 0:
        return stream_of_upstream(w, launch)
    if w.open_streams == 0:
        return NONE
    first = problem(w).streams - problem(w).own_streams
    best = first
    for row in range(first + 1, problem(w).streams):
        if streams(w, row).held < streams(w, best).held:
            best = row
    return best


@called
def stream_of_upstream(w, launch):
    """The scheduler's stream that holds all that a launch waits for, if it has room; otherwise -1."""
    if launch.unlaunched > 0:
        return NONE
    row = NONE
    number = launch.edges_in
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.source, edge.source_id):
            stream = launches(w, edge.source).stream
            if row != NONE and stream != row:
                return NONE
            row = stream
        number = edge.next_in
    # A copy is in its program's stream.
    own = row >= problem(w).streams - problem(w).own_streams
    return row if own and streams(w, row).held < problem(w).window_depth else NONE


@inlined
def take_stream(w, launch, row):
    """A launch of a window gets a stream of the scheduler's, that of a row or (-1) :func:`stream_for` it."""
    launch.stream = row if row != NONE else stream_for(w, launch)
    streams(w, launch.stream).held += 1
    if streams(w, launch.stream).held == problem(w).window_depth:
        w.open_streams -= 1


@inlined
def leave_stream(w, launch):
    """What passed a window holds no place in its stream any more."""
    if is_windowed(w, launch):
        if streams(w, launch.stream).held == problem(w).window_depth:
            w.open_streams += 1
        streams(w, launch.stream).held -= 1


@called
def make_launch(w, id_, place, tenant, number):
    """A launch of an operation of a job, and what it waits for; returns its slot."""
    op = ops(w, place)
    slot = new_launch(w, id_, place, tenant, number)
    launch = launches(w, slot)
    if problem(w).tiled == 1:
        clear_tiling(w, slot)
    launch.row = op.stream
    launch.arrived_ps = jobs(w, tenant, number).arrived_ps
    launch.deadline_ps = jobs(w, tenant, number).due_ps
    stream = streams(w, op.stream)
    if holds(w, stream.last_slot, stream.last_id) and stream_rows(w, op.stream).windowed == 0:
        before = launches(w, stream.last_slot)
        before.next = slot
        launch.previous = stream.last_slot
        launch.upstream = 1
        launch.unlaunched = 1 if before.state == PENDING else 0
    for i in range(op.afters):
        mark = marks(w, tenant, afters(w, op.first_after + i))
        if mark.finished == 0 and mark.slot != launch.previous:
            add_edge(w, mark.slot, slot)
            if launches(w, mark.slot).state == PENDING:
                launch.unlaunched += 1
    if op.tiles >= 0:
        mark = marks(w, tenant, op.tiles)
        tilings(w, slot).producer = mark.slot if mark.finished == 0 else NONE
        tilings(w, slot).producer_id = mark.launch
    stream.last_slot = slot
    stream.last_id = launch.id
    return slot


@called
def settle_issue(w, slot, at_ps):
    """A launch is there: the scheduler intercepts kernels and graphs, a copy goes on by itself, at ``at_ps``."""
    launch = launches(w, slot)
    launch.state = PENDING
    if is_scheduled(launch):
        add_pending(w, slot)
        streams(w, launch.row).window += 1
        if is_launchable(w, launch) or may_synchronise(w, slot) or forms_of(w, slot) > 0:
            w.awake = 1
    elif is_launchable(w, launch):
        add_copy(w, slot)
        hand_over_copies(w, at_ps)


@called
def add_copy(w, slot):
    """Nothing that a copy waits for is pending: it is to be handed over (:func:`hand_over_copies`)."""
    launches(w, slot).after = NONE
    if w.copy_first == NONE:
        w.copy_first = slot
    else:
        launches(w, w.copy_last).after = slot
    w.copy_last = slot


@called
def hand_over_copies(w, at_ps):
    """Launch the copies that are to be, and those that they held up."""
    while w.copy_first != NONE:
        slot = w.copy_first
        launch = launches(w, slot)
        w.copy_first = launch.after
        launch.stream = launch.row
        launch.priority = streams(w, launch.row).priority
        hand_over(w, slot, at_ps)


@called
def hand_over(w, slot, at_ps):
    """Pass a launch to the queue that it names; copies that it held up are to follow it."""
    launch = launches(w, slot)
    launch.state = LAUNCHED
    launch.launched_ps = at_ps
    launch.ready_ps = ready_ps(w, launch, at_ps)
    if problem(w).tiled == 1 and tilings(w, slot).gated == 1:
        launch.ready_ps += problem(w).wait_kernel_ps
        tilings(w, slot).gated = 0
    if is_windowed(w, launch):
        if is_scheduled(launch):
            join_window_stream(w, slot)
    elif launch.stream != NONE:
        queue = queues(w, launch.stream, launch.priority)
        if holds(w, queue.last_slot, queue.last_id) and not follows(w, launch, queue.last_slot):
            add_edge(w, queue.last_slot, slot)
            if problem(w).tiled == 1 and wait_kernel_waits_for(w, queue.last_slot, slot):
                # It waits for the end of that anyway.
                tilings(w, queue.last_slot).gates = 0
        queue.last_slot = slot
        queue.last_id = launch.id
    tell_waiters_launched(w, slot)
    if w.external == 1:
        send(w, slot)
    elif launch.upstream == 0:
        arm_when_ready(w, slot)


@called
def send(w, slot):
    """A launch goes to a GPU outside, which keeps it waiting for what is before it."""
    take_flight(w, slot)
    add_to_outbox(w, slot)


@inlined
def add_to_outbox(w, entry):
    """Something goes into the outbox: a launch, or (negative) :func:`.external.recall`."""
    outbox(w, w.sent).value = entry
    w.sent += 1


@inlined
def ready_ps(w, launch, at_ps):
    """When a launch reaches the GPU; of a window when the thread of its stream has launched it."""
    if is_windowed(w, launch) and is_scheduled(launch):
        stream = streams(w, launch.stream)
        stream.thread_ps = max(at_ps, stream.thread_ps) + problem(w).launch_latency_ps
        return stream.thread_ps
    return at_ps + problem(w).launch_latency_ps


@called
def join_window_stream(w, slot):
    """A launch of a window waits for the end of the one before it in its stream, and with it for all that it has to."""
    launch = launches(w, slot)
    drop_edges_in(w, slot)
    launch.upstream = 0
    launch.unlaunched = 0
    stream = streams(w, launch.stream)
    if holds(w, stream.last_slot, stream.last_id) and launches(w, stream.last_slot).state != EMPTIED:
        launches(w, stream.last_slot).next = slot
        launch.previous = stream.last_slot
        launch.upstream = 1
    stream.last_slot = slot
    stream.last_id = launch.id


@inlined
def follows(w, launch, slot):
    """Whether a launch waits for an unfinished one anyway: it comes before it in its program's stream."""
    return launch.previous != NONE and launches(w, slot).row == launch.row


@inlined
def wait_kernel_waits_for(w, slot, consumer):
    """Whether the wait kernel before a launch waits for the start of ``slot``."""
    tiling = tilings(w, slot)
    return tiling.gates == 1 and tiling.consumer == consumer and tiling.consumer_id == launches(w, consumer).id


@called
def open_gate(w, slot):
    """A producer has started: the wait kernel before its consumer ends."""
    tiling = tilings(w, slot)
    tiling.gates = 0
    if not holds(w, tiling.consumer, tiling.consumer_id):
        return
    drop_edge(w, slot, tiling.consumer)
    consumer = launches(w, tiling.consumer)
    if consumer.state == LAUNCHED:
        consumer.ready_ps = max(consumer.ready_ps, w.now_ps + problem(w).wait_kernel_ps)
        if consumer.upstream == 0:
            arm_when_ready(w, tiling.consumer)


@inlined
def arm_when_ready(w, slot):
    """Nothing is before a launch any more: it goes on when it is ready."""
    take_flight(w, slot)
    arm_launch(w, slot, max(launches(w, slot).ready_ps, w.now_ps), STREAMS)


@called
def tell_waiters_launched(w, slot):
    """What waits for a launch learns that it is pending no more; copies are to follow it."""
    if launches(w, slot).next != NONE:
        one_dependency_launched(w, launches(w, slot).next)
    number = launches(w, slot).edges_out
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.target, edge.target_id):
            one_dependency_launched(w, edge.target)
        number = edge.next_out


@inlined
def one_dependency_launched(w, slot):
    """One thing less that a launch waits for is pending."""
    launch = launches(w, slot)
    if launch.state == PENDING:
        launch.unlaunched -= 1
        if launch.unlaunched == 0 and not is_scheduled(launch) and not is_windowed(w, launch):
            add_copy(w, slot)


@called
def tell_waiters_pending(w, slot):
    """What waits for a launch learns that it is pending again."""
    if launches(w, slot).next != NONE:
        one_dependency_pending(w, launches(w, slot).next)
    number = launches(w, slot).edges_out
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.target, edge.target_id):
            one_dependency_pending(w, edge.target)
        number = edge.next_out


@inlined
def one_dependency_pending(w, slot):
    """One thing more that a launch waits for is pending."""
    if launches(w, slot).state == PENDING:
        launches(w, slot).unlaunched += 1


@called
def relaunch_preempted(w, slot, at_ps):
    """A preempted kernel goes back to its place, which was kept; what was saved of it is read back first."""
    launch = launches(w, slot)
    launch.state = LAUNCHED
    launch.launched_ps = at_ps
    launch.ready_ps = ready_ps(w, launch, at_ps) + flight_of(w, launch).restore_ps
    tell_waiters_launched(w, slot)
    if w.external == 1:
        add_to_outbox(w, slot)
    else:
        arm_launch(w, slot, max(launch.ready_ps, w.now_ps), STREAMS)

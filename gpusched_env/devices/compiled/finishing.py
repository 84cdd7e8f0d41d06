"""Launches that end, come back to the scheduler or vanish, and what that tells those that wait for them."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    contexts,
    edges,
    flight_of,
    flights,
    launches,
    ops,
    problem,
    resident,
    streams,
)
from gpusched_env.devices.compiled.hosting import drop_ahead_of_job
from gpusched_env.devices.compiled.issuing import (
    add_copy,
    arm_when_ready,
    hand_over_copies,
    is_graph,
    is_scheduled,
    is_windowed,
    leave_stream,
    tell_waiters_pending,
    wake_slicer,
)
from gpusched_env.devices.compiled.layout import EMPTIED, LAUNCHED, NONE, PENDING, PREEMPTION
from gpusched_env.devices.compiled.slots import (
    add_pending,
    drop_edges_in,
    free_launch,
    holds,
    remove_pending,
    remove_running,
)
from gpusched_env.devices.compiled.timing import arm_launch, launch_timer, stop
from gpusched_env.devices.rules.world import log_kernel
from gpusched_env.hardware.clock import NEVER
from gpusched_env.workload.host import operation_finished


@inlined
def is_node(w, launch):
    """Whether a launch is a node of a graph."""
    return holds(w, launch.parent, launch.parent_id) and is_graph(w, launches(w, launch.parent))


@inlined
def clear_gpu_state(w, slot):
    """A kernel has left the SMs; a preemption of it that is under way has nothing left to do."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    flight.grid = NONE
    flight.preempting = 0
    stop(w, launch_timer(w, slot) + 1)


@called
def kernel_finished(w, slot):
    """All blocks of a kernel have ended."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    clear_gpu_state(w, slot)
    log_kernel(w, launch)
    if is_node(w, launch):
        flights(w, launch.parent).done_blocks += flight.done_blocks
    if flight.offspring > 0:
        launch.state = EMPTIED
    else:
        ended(w, slot)


@inlined
def ended(w, slot):
    """A kernel or copy has ended; whoever launched it from a window knows when its synchronisation returns."""
    launch = launches(w, slot)
    if problem(w).window_sync_ps > 0 and is_windowed(w, launch):
        launch.state = EMPTIED
        arm_launch(w, slot, w.now_ps + problem(w).window_sync_ps, PREEMPTION)
        release_next(w, launch)
    else:
        complete(w, slot)


@called
def complete(w, slot):
    """A launch has finished."""
    launch = launches(w, slot)
    if is_scheduled(launch) and not is_node(w, launch):
        leave_stream(w, launch)
        remove_running(w, slot)
        wake_slicer(w)
        w.awake = 1
    elif is_windowed(w, launch):
        # A kernel may have waited for the copy.
        w.awake = 1
    release(w, slot)
    launch_is_gone(w, slot)


@called
def launch_is_gone(w, slot):
    """A launch is no more; and with it those whose last node or child it was have finished."""
    while slot != NONE:
        launch = launches(w, slot)
        parent = launch.parent if holds(w, launch.parent, launch.parent_id) else NONE
        if launch.row != NONE:
            operation_finished(w, launch.tenant, launch.job, launch.row, ops(w, launch.op).mark, launch.id)
        free_launch(w, slot)
        slot = NONE
        if parent != NONE:
            above = launches(w, parent)
            flight = flight_of(w, above)
            flight.offspring -= 1
            if flight.offspring == 0 and (is_graph(w, above) or above.state == EMPTIED):
                slot = parent
                if is_scheduled(above):
                    remove_running(w, slot)
                    wake_slicer(w)
                    w.awake = 1
                release(w, slot)


@called
def release(w, slot):
    """What waits for a launch learns that it has ended, or has vanished."""
    source = launches(w, slot)
    release_next(w, source)
    number = source.edges_out
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.target, edge.target_id):
            one_dependency_ended(w, source, edge.target)
        number = edge.next_out
    hand_over_copies(w, w.now_ps)


@inlined
def release_next(w, source):
    """The launch behind one that has ended, or vanished, in its stream waits for it no more."""
    if source.next != NONE:
        launches(w, source.next).previous = NONE
        one_dependency_ended(w, source, source.next)
        source.next = NONE


@called
def one_dependency_ended(w, source, slot):
    """A launch waits for ``source`` no more; if it has been launched and waits for nothing else, it is due."""
    launch = launches(w, slot)
    launch.upstream -= 1
    if launch.state == LAUNCHED:
        gap_ps = ops(w, launch.op).gap_ps
        same = launch.stream == source.stream and launch.priority == source.priority
        if not same and not is_node(w, source):
            gap_ps = max(gap_ps, problem(w).event_latency_ps)
        if problem(w).graph_gap_beside_ps > 0 and is_node(w, launch) and has_others_beside(w, launch):
            gap_ps += problem(w).graph_gap_beside_ps
        launch.ready_ps = max(launch.ready_ps, w.now_ps + gap_ps)
        if launch.upstream == 0 and w.external == 0:
            arm_when_ready(w, slot)
    elif source.state != PENDING and not is_scheduled(launch) and is_windowed(w, launch) and launch.upstream == 0:
        # What waits for one that vanishes vanishes with it.
        add_copy(w, slot)


@called
def has_others_beside(w, node):
    """Whether kernels that are not of a node's graph are resident."""
    context = contexts(w, node.tenant if problem(w).sliced == 1 else 0)
    for place in range(context.grids):
        other = launches(w, resident(context, place).slot)
        if other.parent != node.parent or other.parent_id != node.parent_id:
            return True
    return False


@called
def kernel_preempted(w, slot, keeps_progress):
    """A kernel has left the GPU unfinished; it is pending again, at its place in the order of ids."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    clear_gpu_state(w, slot)
    remove_running(w, slot)
    wake_slicer(w)
    flight.preemptions += 1
    flight.ran_ps = flight.ran_ps + w.now_ps - flight.started_ps if keeps_progress else 0
    flight.started_ps = NEVER
    launch.state = PENDING
    add_pending(w, slot)
    tell_waiters_pending(w, slot)
    w.awake = 1


@called
def vanish(w, tenant, number):
    """The pending launches of a job that was rejected are gone, in order of id."""
    last = NONE
    while True:
        found = NONE
        for slot in range(w.launch_room):
            launch = launches(w, slot)
            mine = launch.state == PENDING and launch.tenant == tenant and launch.job == number and launch.id > last
            if mine and (found == NONE or launch.id < launches(w, found).id):
                found = slot
        if found == NONE:
            break
        gone = launches(w, found)
        last = gone.id
        if is_scheduled(gone):
            remove_pending(w, found)
            if gone.flight != NONE:
                leave_stream(w, gone)
            if gone.row != NONE and gone.flight == NONE:
                streams(w, gone.row).window -= 1
        relink_stream_neighbours(w, found)
        release_waiters_of_vanished(w, found)
        release(w, found)
        drop_edges_in(w, found)
        launch_is_gone(w, found)
    drop_ahead_of_job(w, tenant, number)


@called
def relink_stream_neighbours(w, slot):
    """A launch vanishes from its program's stream: the one behind it waits for the one before it, if there are both."""
    gone = launches(w, slot)
    if gone.row == NONE:
        return
    before = gone.previous
    stream = streams(w, gone.row)
    if stream.last_slot == slot and stream.last_id == gone.id:
        stream.last_slot = before
        stream.last_id = launches(w, before).id if before != NONE else NONE
    if before == NONE:
        return
    behind = gone.next
    launches(w, before).next = behind
    gone.previous = NONE
    gone.next = NONE
    if behind != NONE:
        launches(w, behind).previous = before
        if launches(w, before).state != PENDING:
            release_waiter_of_vanished(w, gone, behind)


@called
def release_waiters_of_vanished(w, slot):
    """What waits for a launch that vanishes is not held up by it; copies of other jobs are launched."""
    gone = launches(w, slot)
    if gone.next != NONE:
        release_waiter_of_vanished(w, gone, gone.next)
    number = gone.edges_out
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.target, edge.target_id):
            release_waiter_of_vanished(w, gone, edge.target)
        number = edge.next_out
    hand_over_copies(w, w.now_ps)


@inlined
def release_waiter_of_vanished(w, gone, slot):
    """A launch is not held up by one that vanishes; of the same job it vanishes, too."""
    launch = launches(w, slot)
    if launch.state == PENDING:
        launch.unlaunched -= 1
        mine = launch.job == gone.job and launch.tenant == gone.tenant
        if launch.unlaunched == 0 and not mine and not is_scheduled(launch):
            add_copy(w, slot)

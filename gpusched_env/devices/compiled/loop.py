"""The event loop: what happens, in the order that all simulated devices keep, up to the next decision.

The order at equal times is that of docs/devices.md.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import commands, hosting, ruling  # noqa: F401 (what shared texts read)
from gpusched_env.devices.compiled.access import (
    clients,
    contexts,
    flight_at,
    heap,
    launches,
    problem,
    timers,
)
from gpusched_env.devices.compiled.context import settle_context, submit
from gpusched_env.devices.compiled.finishing import complete
from gpusched_env.devices.compiled.hosting import fill_all_windows, has_slots
from gpusched_env.devices.compiled.issuing import is_graph, is_scheduled
from gpusched_env.devices.compiled.layout import (
    DEADLOCK,
    DECIDE,
    EMPTIED,
    FLUSH,
    GROW_JOBS,
    GROW_LAUNCHES,
    HIDDEN,
    IDLE,
    LAUNCHED,
    OVER,
    PHASE,
    PREEMPTION,
)
from gpusched_env.devices.compiled.preemption import begin_preemption, end_preemption, requeue, slicer_due
from gpusched_env.devices.compiled.starting import begin_graph, end_copy, issue_child, request_copy
from gpusched_env.devices.compiled.timing import core_timer, stop
from gpusched_env.hardware.clock import NEVER
from gpusched_env.scheduling.legality import any_legal
from gpusched_env.workload.cores.ticking import core_due
from gpusched_env.workload.host import arrival_due, deadline_due, thread_due


@called
def run(w):
    """Process events up to the next decision or the end of the episode; returns why it stopped."""
    horizon_ps = problem(w).horizon_ps
    w.stands = 0
    while w.over == 0:
        if w.log_rows > w.log_room:
            return FLUSH
        if not has_slots(w):
            return GROW_LAUNCHES
        if w.short == 1:
            fill_all_windows(w)
            continue
        context = contexts(w, w.slicer_context)
        upcoming_ps = context.next_ps if context.active == 1 else NEVER
        ends = True
        if w.heap_length > 0 and timers(w, heap(w, 0).value).at_ps < upcoming_ps:
            upcoming_ps = timers(w, heap(w, 0).value).at_ps
            ends = False
        if upcoming_ps > w.now_ps:
            if w.done == 1 or w.now_ps >= horizon_ps:
                w.over = 1
                break
            limit_ps = min(w.timer_ps, horizon_ps)
            if w.awake == 1:
                if w.busy_until_ps > w.now_ps:
                    limit_ps = min(limit_ps, w.busy_until_ps)
                elif w.hushed == 0 and any_legal(w):
                    return DECIDE
                elif w.hushed == 0 and w.once_ps == w.now_ps:
                    # Nothing is legal only because of the instant: to be asked again something must happen first.
                    w.awake = 0
            if min(upcoming_ps, limit_ps) > w.real_ps:
                w.now_ps = max(w.now_ps, w.real_ps)
                w.due_ps = min(upcoming_ps, w.timer_ps)
                w.stands = 1
                return IDLE
            if upcoming_ps > limit_ps:
                deciding = w.awake == 1 and w.busy_until_ps > w.now_ps
                if upcoming_ps == NEVER and w.timer_ps == NEVER and not deciding and w.external == 0:
                    return DEADLOCK
                if limit_ps >= w.timer_ps:
                    w.timer_ps = NEVER
                    w.awake = 1
                w.now_ps = limit_ps
                continue
            w.now_ps = upcoming_ps
        if ends:
            settle_context(w, context)
            continue
        owner = heap(w, 0).value
        order = timers(w, owner).order
        if is_arrival(w, owner) and not has_room_for_job(w, owner - 1):
            return GROW_JOBS
        stop(w, owner)
        timer_event(w, owner, order // PHASE)
    return OVER


@inlined
def is_arrival(w, owner):
    return 1 <= owner <= problem(w).tenants


@inlined
def has_room_for_job(w, tenant):
    """Whether a tenant's ring of jobs has room for one more."""
    client = clients(w, tenant)
    return client.arrived - client.first <= w.job_mask


@called
def timer_event(w, owner, phase):
    """A timer has fired."""
    tenants = problem(w).tenants
    first = core_timer(w, problem(w).cores)
    if owner == 0:
        slicer_due(w)
    elif owner <= tenants:
        arrival_due(w, owner - 1)
    elif owner <= 2 * tenants:
        deadline_due(w, owner - 1 - tenants)
    elif owner < core_timer(w, 0):
        thread_due(w, owner - 1 - 2 * tenants)
    elif owner < first:
        core_due(w, owner - core_timer(w, 0))
    else:
        slot = flight_at(w, (owner - first) >> 1).slot
        if (owner - first) & 1:
            if phase == PREEMPTION:
                end_preemption(w, slot)
            else:
                begin_preemption(w, slot)
        else:
            launch_due(w, slot)


@called
def launch_due(w, slot):
    """What a launch waited for has happened."""
    launch = launches(w, slot)
    if launch.state == HIDDEN:
        issue_child(w, slot)
    elif launch.state == EMPTIED:
        complete(w, slot)
    elif launch.state == LAUNCHED:
        if not is_scheduled(launch):
            request_copy(w, slot)
        elif is_graph(w, launch):
            begin_graph(w, slot)
        else:
            submit(w, slot)
    elif is_scheduled(launch):
        requeue(w, slot)
    else:
        end_copy(w, slot)

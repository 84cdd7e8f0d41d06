"""The event loop: what happens, in the order that all simulated devices keep, up to the next decision.

The order at equal times is that of :mod:`gpusched_env.devices.reference.phases`; chained events (one thing
causes another at the same time) come before any timer, first in, first out.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.devices.compiled.access import chain, clients, contexts, problem, timers
from gpusched_env.devices.compiled.context import settle, submit
from gpusched_env.devices.compiled.copies import end_copy, start_copy
from gpusched_env.devices.compiled.handover import pending
from gpusched_env.devices.compiled.host import begin_arrivals, go_on_arriving, next_arrival, run_host
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import (
    ARRIVAL,
    ARRIVALS_BEGIN,
    ARRIVALS_GO_ON,
    COMPLETION,
    COPY_STARTS,
    DEADLINE,
    DEADLOCK,
    DECIDE,
    ENGINE,
    EXECUTING,
    FLUSH,
    GROW_JOBS,
    HOST,
    HOST_WAKES,
    NO_TENANT,
    OVER,
    PHASES,
    PREEMPTION,
    RESUMING,
    SLICER,
    SLICER_WAKES,
    STREAM,
    STREAM_GOES_ON,
    STREAM_WAKES,
)
from gpusched_env.devices.compiled.preemption import begin_preemption, end_preemption, requeue
from gpusched_env.devices.compiled.queueing import miss_deadline, wake_slicer
from gpusched_env.devices.compiled.slicer import give_gpu, slicer_wakes
from gpusched_env.devices.compiled.stream import end_operation, execute, go_on
from gpusched_env.devices.compiled.views import may_preempt, may_set_partition


@called
def run(w):
    """Process events up to the next decision or the end of the episode; returns why it stopped."""
    horizon_us = problem(w).horizon_us
    count = PHASES * w.tenants
    while w.over == 0:
        if w.log_rows > w.log_room:
            return FLUSH
        if w.stalled != NO_TENANT:
            tenant = w.stalled
            w.stalled = NO_TENANT
            if w.stall == GROW_JOBS:
                go_on_arriving(w, tenant)
            else:
                run_host(w, tenant)
        elif w.chain_length > 0:
            chained_event(w)
        else:
            upcoming_us = np.inf
            upcoming = 0
            for i in range(count):
                due_us = timers(w, i).value
                if due_us < upcoming_us:
                    upcoming_us = due_us
                    upcoming = i
            if upcoming_us > w.now_us:
                if w.done == 1 or w.now_us >= horizon_us:
                    w.over = 1
                    break
                limit_us = min(w.timer_us, horizon_us)
                if w.awake == 1:
                    if w.busy_until_us > w.now_us:
                        limit_us = min(limit_us, w.busy_until_us)
                    elif has_choice(w):
                        return DECIDE
                if upcoming_us > limit_us:
                    if upcoming_us == np.inf and w.timer_us == np.inf and w.awake == 0:
                        return DEADLOCK
                    if limit_us >= w.timer_us:
                        w.timer_us = np.inf
                        w.awake = 1
                    w.now_us = limit_us
                    continue
                w.now_us = upcoming_us
            timers(w, upcoming).value = np.inf
            timer_event(w, upcoming // w.tenants, upcoming % w.tenants)
        if w.stalled != NO_TENANT:
            return w.stall
    return OVER


@inlined
def has_choice(w):
    """Whether a command other than waiting is legal (of those that the scenario offers)."""
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        if pending(client) > 0 or (problem(w).preempts == 1 and may_preempt(w, client)):
            return True
        if problem(w).partitions == 1 and may_set_partition(w, client):
            return True
    return False


@called
def chained_event(w):
    """The next event at the present time."""
    code = chain(w, w.chain_first).code
    tenant = chain(w, w.chain_first).tenant
    w.chain_length -= 1
    w.chain_first += 1
    if w.chain_first == w.chain_ring:
        w.chain_first = 0
    if code == HOST_WAKES:
        run_host(w, tenant)
    elif code == STREAM_WAKES:
        go_on(w, tenant)
    elif code == STREAM_GOES_ON:
        end_operation(w, tenant)
        go_on(w, tenant)
    elif code == ARRIVALS_GO_ON:
        next_arrival(w, tenant)
        go_on_arriving(w, tenant)
    elif code == ARRIVALS_BEGIN:
        begin_arrivals(w, tenant)
        go_on_arriving(w, tenant)
    elif code == COPY_STARTS:
        start_copy(w, tenant)
    elif code == SLICER_WAKES:
        slicer_wakes(w)
    else:
        give_gpu(w)


@called
def timer_event(w, phase, tenant):
    """A timer has fired."""
    if phase == COMPLETION:
        settle(w, contexts(w, tenant))
    elif phase == STREAM:
        if clients(w, tenant).stream_state == RESUMING:
            clients(w, tenant).stream_state = EXECUTING
            submit(w, tenant)
        elif clients(w, tenant).stream_state == EXECUTING:
            requeue(w, tenant)
        else:
            execute(w, tenant)
    elif phase == HOST:
        run_host(w, tenant)
    elif phase == ARRIVAL:
        go_on_arriving(w, tenant)
    elif phase == ENGINE:
        end_copy(w, tenant)
    elif phase == DEADLINE:
        miss_deadline(w, tenant)
    elif phase == PREEMPTION:
        end_preemption(w, tenant)
    elif phase == SLICER:
        if w.slicer_switching == 1:
            give_gpu(w)
        else:
            wake_slicer(w)
    else:
        begin_preemption(w, tenant)

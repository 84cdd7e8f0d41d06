"""Copy engines: one copy at a time each, in order of arrival (Amert et al., RTSS 2017, rules C1-C4)."""

from __future__ import annotations

from gpusched_env.devices.compiled.access import clients, due, engine_queue, launches, ops, problem
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import COPY_STARTS, ENGINE
from gpusched_env.devices.compiled.queueing import complete, then
from gpusched_env.devices.compiled.record import log_copy
from gpusched_env.workload.workload import OpKind

TO_DEVICE = 0
TO_HOST = 1
ON_DEVICE = 2
"""Engine numbers in the timeline."""

COPY_TO_DEVICE = int(OpKind.COPY_TO_DEVICE)
COPY_TO_HOST = int(OpKind.COPY_TO_HOST)


@inlined
def direction(w, tenant):
    """Where the copy at the head of a tenant's stream goes."""
    kind = ops(w, launches(w, tenant, clients(w, tenant).finished).op).kind
    if kind == COPY_TO_DEVICE:
        return TO_DEVICE
    return TO_HOST if kind == COPY_TO_HOST else ON_DEVICE


@inlined
def engine_for(w, way):
    """The engine for a direction between host and device: both may share one."""
    return way if problem(w).copy_engines == 2 else 0


@called
def request_copy(w, tenant):
    """The copy at the head of a tenant's stream waits for its engine, if it needs one."""
    way = direction(w, tenant)
    if way == ON_DEVICE:
        start_copy(w, tenant)
    elif engine_for(w, way) == 0:
        if w.engine_busy_0 == 1:
            engine_queue(w, 0, w.engine_queue_0).value = tenant
            w.engine_queue_0 += 1
        else:
            w.engine_busy_0 = 1
            then(w, COPY_STARTS, tenant)
    elif w.engine_busy_1 == 1:
        engine_queue(w, 1, w.engine_queue_1).value = tenant
        w.engine_queue_1 += 1
    else:
        w.engine_busy_1 = 1
        then(w, COPY_STARTS, tenant)


@inlined
def start_copy(w, tenant):
    """The copy at the head of a tenant's stream starts."""
    client = clients(w, tenant)
    client.copy_started_us = w.now_us
    op = ops(w, launches(w, tenant, client.finished).op)
    due(w, ENGINE, tenant).value = w.now_us + op.device_us


@called
def end_copy(w, tenant):
    """The copy at the head of a tenant's stream has ended; the next one for its engine starts."""
    client = clients(w, tenant)
    launch = launches(w, tenant, client.finished)
    op = ops(w, launch.op)
    way = direction(w, tenant)
    if way != ON_DEVICE:
        if engine_for(w, way) == 0:
            w.engine_busy_0 = 0
            if w.engine_queue_0 > 0:
                w.engine_busy_0 = 1
                w.engine_queue_0 -= 1
                then(w, COPY_STARTS, next_in_line(w, 0, w.engine_queue_0))
        else:
            w.engine_busy_1 = 0
            if w.engine_queue_1 > 0:
                w.engine_busy_1 = 1
                w.engine_queue_1 -= 1
                then(w, COPY_STARTS, next_in_line(w, 1, w.engine_queue_1))
    log_copy(w, way, tenant, op.bytes, client.copy_started_us)
    complete(w, tenant, launch, op)


@called
def next_in_line(w, engine, left):
    """Take the first tenant off the queue of an engine, in which ``left`` remain."""
    tenant = engine_queue(w, engine, 0).value
    for i in range(left):
        engine_queue(w, engine, i).value = engine_queue(w, engine, i + 1).value
    return tenant

"""Handing operations over to their streams, at the scheduler's word."""

from __future__ import annotations

from gpusched_env.devices.compiled.access import clients, due, kernels, launches, ops, problem
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import ASLEEP, AWAKE, RESUMING, STREAM, STREAM_WAKES
from gpusched_env.devices.compiled.queueing import KERNEL, count_launched, then


@inlined
def pending(client):
    """Issued operations of a tenant that wait for the scheduler."""
    return client.issued - client.handed + client.returned


@inlined
def oldest_pending(w, tenant):
    """Number of a tenant's oldest pending operation (there is one)."""
    client = clients(w, tenant)
    return client.finished if client.returned == 1 else client.handed


@called
def hand_over(w, tenant, at_us):
    """Pass a tenant's oldest pending operation to its stream, and copies right behind it too."""
    client = clients(w, tenant)
    arrives_us = at_us + problem(w).launch_latency_us
    if client.returned == 1:
        # A preempted kernel comes back to the head of its stream, where it still is.
        client.returned = 0
        launch = launches(w, tenant, client.finished)
        count_launched(w, tenant, launch, kernels(w, ops(w, launch.op).identity))
        launch.launched_us = at_us
        launch.arrives_us = arrives_us
        due(w, STREAM, tenant).value = arrives_us + client.restore_us
        client.stream_state = RESUMING
    else:
        put(w, tenant, at_us, arrives_us)
    while client.handed < client.issued and ops(w, launches(w, tenant, client.handed).op).kind != KERNEL:
        put(w, tenant, at_us, arrives_us)


@called
def put(w, tenant, at_us, arrives_us):
    """Append a tenant's next operation to its stream."""
    client = clients(w, tenant)
    launch = launches(w, tenant, client.handed)
    op = ops(w, launch.op)
    if op.kind == KERNEL:
        count_launched(w, tenant, launch, kernels(w, op.identity))
    launch.launched_us = at_us
    launch.arrives_us = arrives_us
    client.handed += 1
    if client.stream_state == ASLEEP:
        client.stream_state = AWAKE
        then(w, STREAM_WAKES, tenant)

"""Tenants' streams: launched operations start in order, with the latencies of launches and dependencies.

As :mod:`gpusched_env.devices.reference.stream`.
"""

from __future__ import annotations

from gpusched_env.devices.compiled.access import clients, due, launches, ops, programs
from gpusched_env.devices.compiled.context import submit
from gpusched_env.devices.compiled.copies import request_copy
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import ASLEEP, EXECUTING, READYING, STREAM
from gpusched_env.devices.compiled.queueing import KERNEL


@called
def go_on(w, tenant):
    """The operation before has ended, or one was put into an empty stream."""
    client = clients(w, tenant)
    if client.finished == client.handed:
        client.stream_state = ASLEEP
        return
    launch = launches(w, tenant, client.finished)
    program = programs(w, tenant)
    same = launch.priority == client.stream_priority or ops(w, launch.op).kind != KERNEL
    ready_us = max(launch.arrives_us, client.stream_ended_us + (program.gap_us if same else program.event_gap_us))
    client.stream_state = READYING
    if ready_us > w.now_us:
        due(w, STREAM, tenant).value = ready_us
    else:
        execute(w, tenant)


@inlined
def end_operation(w, tenant):
    """The stream learns that its operation has ended."""
    client = clients(w, tenant)
    client.stream_ended_us = w.now_us
    if client.ended_kernel == 1:
        client.stream_priority = client.ended_priority


@called
def execute(w, tenant):
    """The oldest operation reaches the device."""
    client = clients(w, tenant)
    client.stream_state = EXECUTING
    if ops(w, launches(w, tenant, client.finished).op).kind == KERNEL:
        submit(w, tenant)
    else:
        request_copy(w, tenant)

"""Host processes: jobs arrive, a tenant's host thread works through their operations in order.

As :mod:`gpusched_env.devices.reference.host`. Both processes stop where a ring buffer is full, and go on when it
has grown.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.devices.compiled.access import (
    clients,
    due,
    factors,
    jobs,
    launches,
    ops,
    problem,
    programs,
    randoms,
    variants,
)
from gpusched_env.devices.compiled.handover import hand_over, pending
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import (
    ARRIVAL,
    BURSTS,
    CLOSED_LOOP,
    GROW_JOBS,
    GROW_LAUNCHES,
    HOST,
    PERIODIC,
    POISSON,
)
from gpusched_env.devices.compiled.meter import accrue_jobs
from gpusched_env.devices.compiled.queueing import KERNEL, arm_deadline, wake_host
from gpusched_env.devices.compiled.randomness import uniform
from gpusched_env.workload.workload import OpKind

SYNC = int(OpKind.SYNC)

# Where a host thread stands.
IDLE = 0
NEXT_OPERATION = 1
HOST_TIME_SPENT = 2
ISSUES = 3
SYNCHRONISES = 4
SYNCHRONISED = 5


@inlined
def exponential_us(random, rate_per_s):
    """A random gap of mean ``1e6 / rate_per_s``, by inversion."""
    return -np.log1p(-uniform(random)) * 1e6 / rate_per_s


@inlined
def begin_arrivals(w, tenant):
    """The time of a tenant's first job."""
    program = programs(w, tenant)
    client = clients(w, tenant)
    client.arrives_us = program.start_us
    if program.arrivals == POISSON or program.arrivals == BURSTS:
        client.arrives_us += exponential_us(randoms(w, tenant, 0), program.rate_per_s)


@called
def next_arrival(w, tenant):
    """When the job after the one that has just arrived (closed loop: completed) does."""
    program = programs(w, tenant)
    client = clients(w, tenant)
    now = w.now_us
    if program.arrivals == CLOSED_LOOP:
        client.arrives_us = now + program.think_us
    elif program.arrivals == POISSON:
        client.arrives_us = now + exponential_us(randoms(w, tenant, 0), program.rate_per_s)
    elif program.arrivals == PERIODIC:
        client.arrives_us = now + program.period_us
    elif program.arrivals == BURSTS:
        client.arrives_us = now
        # A burst goes on with probability 1 - 1/mean.
        if uniform(randoms(w, tenant, 0)) >= program.burst_go:
            client.arrives_us = now + exponential_us(randoms(w, tenant, 0), program.rate_per_s)
    else:
        client.arrives_us = now


@called
def go_on_arriving(w, tenant):
    """Jobs arrive until the next one is due later, or waits for a completion."""
    program = programs(w, tenant)
    client = clients(w, tenant)
    while program.jobs < 0 or client.arrived < program.jobs:
        if client.arrives_us > w.now_us:
            due(w, ARRIVAL, tenant).value = client.arrives_us
            return
        if client.arrived - client.completed > w.job_mask:
            w.stalled = tenant
            w.stall = GROW_JOBS
            return
        arrive(w, tenant)
        if program.arrivals == CLOSED_LOOP:
            return
        next_arrival(w, tenant)


@called
def arrive(w, tenant):
    """A job arrives; which recorded iteration it repeats, and how fast the host is, is drawn."""
    program = programs(w, tenant)
    client = clients(w, tenant)
    now = w.now_us
    variant = variants(w, program.first_variant + int(uniform(randoms(w, tenant, 1)) * program.variants))
    factor = factors(w, program.first_factor + int(uniform(randoms(w, tenant, 1)) * program.factors))
    job = jobs(w, tenant, client.arrived)
    job.first_op = variant.first_op
    job.ops = variant.ops
    job.unfinished = variant.device_ops
    job.arrived_us = now
    job.started_us = np.inf
    job.deadline_us = now + program.slo_us
    job.factor = factor
    accrue_jobs(w, tenant)
    client.arrived += 1
    if client.completed + client.overdue == client.arrived - 1:
        arm_deadline(w, tenant)
    w.awake = 1
    wake_host(w, tenant)


@called
def run_host(w, tenant):
    """A host thread goes on until it waits for something."""
    client = clients(w, tenant)
    while True:
        if client.host_state == IDLE:
            if client.taken == client.arrived:
                client.host_asleep = 1
                return
            job = jobs(w, tenant, client.taken)
            job.started_us = w.now_us
            client.host_job = client.taken
            client.taken += 1
            client.host_op = job.first_op
            client.host_end = job.first_op + job.ops
            client.host_factor = job.factor
            client.host_state = NEXT_OPERATION
        elif client.host_state == NEXT_OPERATION:
            if client.host_op == client.host_end:
                client.host_state = IDLE
                continue
            client.host_state = HOST_TIME_SPENT
            host_us = ops(w, client.host_op).host_us
            if host_us > 0.0:
                due(w, HOST, tenant).value = w.now_us + host_us * client.host_factor
                return
        elif client.host_state == HOST_TIME_SPENT:
            client.host_state = SYNCHRONISES if ops(w, client.host_op).kind == SYNC else ISSUES
        elif client.host_state == SYNCHRONISES:
            if client.issued > client.finished:
                client.host_asleep = 1
                return
            client.host_state = SYNCHRONISED
            returns_us = client.last_end_us + problem(w).sync_latency_us
            if returns_us > w.now_us:
                due(w, HOST, tenant).value = returns_us
                return
        elif client.host_state == SYNCHRONISED:
            client.host_op += 1
            client.host_state = NEXT_OPERATION
        else:
            outstanding = client.issued - client.finished
            if outstanding >= problem(w).launch_depth:
                client.host_asleep = 1
                return
            if outstanding > w.launch_mask:
                w.stalled = tenant
                w.stall = GROW_LAUNCHES
                return
            issue(w, tenant)
            client.host_op += 1
            client.host_state = NEXT_OPERATION


@called
def issue(w, tenant):
    """A host issues an operation; the scheduler intercepts kernels, copies pass in their order."""
    client = clients(w, tenant)
    kernel = ops(w, client.host_op).kind == KERNEL
    alone = pending(client) == 0
    launch = launches(w, tenant, client.issued)
    launch.id = w.ids
    launch.op = client.host_op
    launch.job = client.host_job
    launch.priority = 0
    launch.issued_us = w.now_us
    w.ids += 1
    client.issued += 1
    if not kernel and alone:
        hand_over(w, tenant, w.now_us)
        return
    client.kernels_pending += kernel
    if alone:
        w.awake = 1

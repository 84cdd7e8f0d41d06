"""What an operation's issue, completion and return to the scheduler do to the books of its tenant.

Rings are indexed by running numbers (:data:`~gpusched_env.devices.compiled.layout.CLIENT`).
"""

from __future__ import annotations

import numpy as np

from gpusched_env.devices.compiled.access import chain, clients, due, jobs, kernels, launches, ops, programs
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import (
    ARRIVALS_GO_ON,
    CLOSED_LOOP,
    DEADLINE,
    HOST_WAKES,
    PREEMPTION,
    PREEMPTION_BEGINS,
    SLICER_WAKES,
    STREAM_GOES_ON,
)
from gpusched_env.devices.compiled.meter import accrue_jobs
from gpusched_env.devices.compiled.record import log_job, log_kernel
from gpusched_env.workload.workload import OpKind

KERNEL = int(OpKind.KERNEL)


@inlined
def then(w, code, tenant):
    """Let something happen at the present time, after what is in line already."""
    last = w.chain_first + w.chain_length
    if last >= w.chain_ring:
        last -= w.chain_ring
    event = chain(w, last)
    event.code = code
    event.tenant = tenant
    w.chain_length += 1


@inlined
def wake_slicer(w):
    """A kernel was launched or has left, or a slice has ended."""
    if w.slicer_asleep == 1:
        w.slicer_asleep = 0
        then(w, SLICER_WAKES, 0)


@inlined
def wake_host(w, tenant):
    """Something that a host thread may wait for has happened."""
    client = clients(w, tenant)
    if client.host_asleep == 1:
        client.host_asleep = 0
        then(w, HOST_WAKES, tenant)


@inlined
def count_launched(w, tenant, launch, kernel):
    """A kernel was handed to its stream."""
    client = clients(w, tenant)
    launch.order = w.launch_count
    w.launch_count += 1
    client.kernels_launched += 1
    client.launched_profiled_us += kernel.profiled_us
    wake_slicer(w)


@inlined
def count_left(w, tenant, kernel):
    """A launched kernel has left the GPU; a preemption of it that is under way has nothing left to do."""
    client = clients(w, tenant)
    client.on_device = 0
    client.preempting = 0
    due(w, PREEMPTION, tenant).value = np.inf
    due(w, PREEMPTION_BEGINS, tenant).value = np.inf
    client.kernels_launched -= 1
    # The sum starts anew when nothing is launched, so that rounding does not pile up.
    client.launched_profiled_us = client.launched_profiled_us - kernel.profiled_us if client.kernels_launched else 0.0
    wake_slicer(w)


@inlined
def clear_head(client):
    """The next operation of a tenant has not been on the device."""
    client.started_us = np.inf
    client.preemptions = 0
    client.restore_us = 0.0
    client.blocks = -1
    client.saved = 0
    client.saved_left = 1.0


@called
def kernel_finished(w, tenant):
    """All blocks of a tenant's kernel have ended."""
    client = clients(w, tenant)
    launch = launches(w, tenant, client.finished)
    op = ops(w, launch.op)
    count_left(w, tenant, kernels(w, op.identity))
    log_kernel(w, tenant, launch, op)
    w.awake = 1
    complete(w, tenant, launch, op)


@called
def kernel_preempted(w, tenant):
    """A kernel has left the GPU unfinished; it is pending again, before later ones of its tenant."""
    client = clients(w, tenant)
    launch = launches(w, tenant, client.finished)
    client.preemptions += 1
    count_left(w, tenant, kernels(w, ops(w, launch.op).identity))
    client.returned = 1
    client.kernels_pending += 1
    w.awake = 1


@called
def complete(w, tenant, launch, op):
    """A tenant's oldest operation has finished: its host and its stream go on."""
    client = clients(w, tenant)
    number = launch.job
    client.ended_kernel = op.kind == KERNEL
    client.ended_priority = launch.priority
    client.finished += 1
    clear_head(client)
    client.last_end_us = w.now_us
    job = jobs(w, tenant, number)
    job.unfinished -= 1
    if job.unfinished == 0:
        complete_job(w, tenant, number, job)
    wake_host(w, tenant)
    then(w, STREAM_GOES_ON, tenant)


@called
def complete_job(w, tenant, number, job):
    """All operations of a job have finished."""
    client = clients(w, tenant)
    program = programs(w, tenant)
    accrue_jobs(w, tenant)
    client.completed += 1
    turnaround_us = w.now_us - job.arrived_us
    client.last_turnaround_us = turnaround_us
    mean_us = client.mean_turnaround_us
    client.mean_turnaround_us = turnaround_us if client.completed == 1 else mean_us + (turnaround_us - mean_us) / 8.0
    if client.overdue > 0:
        client.overdue -= 1
    else:
        arm_deadline(w, tenant)
    log_job(w, tenant, number, job)
    if program.jobs >= 0:
        w.to_complete -= 1
        if w.to_complete == 0:
            w.done = 1
            w.done_us = w.now_us
    w.awake = 1
    if program.arrivals == CLOSED_LOOP:
        then(w, ARRIVALS_GO_ON, tenant)


@inlined
def arm_deadline(w, tenant):
    """Set the timer to the deadline of the oldest job that is not past it (deadlines come in order)."""
    client = clients(w, tenant)
    number = client.completed + client.overdue
    due(w, DEADLINE, tenant).value = jobs(w, tenant, number).deadline_us if number < client.arrived else np.inf


@inlined
def miss_deadline(w, tenant):
    """A job in the system has exceeded its SLO."""
    client = clients(w, tenant)
    client.slo_misses += 1
    client.overdue += 1
    arm_deadline(w, tenant)

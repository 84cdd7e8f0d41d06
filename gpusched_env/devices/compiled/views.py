"""Filling the tables of a :class:`~gpusched_env.scheduling.view.View`, and those that an observation shows."""

from __future__ import annotations

import numpy as np

from gpusched_env.devices.compiled.access import (
    clients,
    contexts,
    grids,
    jobs,
    kernels,
    launches,
    ops,
    problem,
    programs,
)
from gpusched_env.devices.compiled.blocks import waiting_blocks
from gpusched_env.devices.compiled.context import context_of
from gpusched_env.devices.compiled.handover import pending
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.queueing import KERNEL
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn

EMPTY = -1.0
"""Id in rows that show no kernel."""


@inlined
def runs(client):
    """Whether a tenant's oldest operation is a kernel that has started and is on the device."""
    return client.placed == 1 and client.started_us < np.inf


@inlined
def may_preempt(w, client):
    """Whether all of a tenant's oldest operation, a kernel, may be preempted now."""
    return runs(client) and client.preempting == 0 and client.preempted_us < w.now_us


@inlined
def may_set_partition(w, client):
    """Whether a tenant's partition may be changed now."""
    return client.partitioned_us < w.now_us


@called
def fill_pending(w, tenant, number, launchable, row):
    """The row of a pending kernel."""
    client = clients(w, tenant)
    launch = launches(w, tenant, number)
    op = ops(w, launch.op)
    kernel = kernels(w, op.identity)
    job = jobs(w, tenant, launch.job)
    returned = client.returned == 1 and number == client.finished
    row[PendingColumn.ID] = launch.id
    row[PendingColumn.TENANT] = tenant
    row[PendingColumn.JOB] = launch.job
    row[PendingColumn.IDENTITY] = op.identity
    row[PendingColumn.LAUNCHABLE] = launchable
    row[PendingColumn.PRIORITY] = programs(w, tenant).priority
    row[PendingColumn.BLOCKS] = client.blocks if returned and client.blocks >= 0 else kernel.grid_blocks
    row[PendingColumn.THREADS] = kernel.block_threads
    row[PendingColumn.BLOCKS_PER_SM] = kernel.blocks_per_sm
    row[PendingColumn.SMS] = kernel.uses_sms
    row[PendingColumn.PROFILED_US] = kernel.profiled_us if kernel.profiled_us > 0.0 else np.nan
    row[PendingColumn.PROFILED_GAP_US] = kernel.gap_us
    row[PendingColumn.PROFILED_ISSUE] = kernel.issue
    row[PendingColumn.PROFILED_DRAM] = kernel.dram
    row[PendingColumn.ISSUED_US] = launch.issued_us
    row[PendingColumn.WAITED_US] = w.now_us - launch.issued_us
    row[PendingColumn.JOB_ARRIVED_US] = job.arrived_us
    row[PendingColumn.DEADLINE_US] = job.deadline_us
    row[PendingColumn.JOB_LEFT_US] = op.left_us
    row[PendingColumn.PREEMPTED] = 1.0 if returned and client.preemptions > 0 else 0.0


@called
def fill_running(w, tenant, number, row):
    """The row of a launched, unfinished kernel."""
    client = clients(w, tenant)
    now = w.now_us
    launch = launches(w, tenant, number)
    op = ops(w, launch.op)
    kernel = kernels(w, op.identity)
    oldest = number == client.finished
    started = oldest and client.started_us < np.inf
    placed = oldest and client.placed == 1
    row[RunningColumn.ID] = launch.id
    row[RunningColumn.TENANT] = tenant
    row[RunningColumn.JOB] = launch.job
    row[RunningColumn.IDENTITY] = op.identity
    row[RunningColumn.PRIORITY] = programs(w, tenant).priority
    row[RunningColumn.STREAM_PRIORITY] = launch.priority
    row[RunningColumn.STARTED] = 1.0 if started and placed else 0.0
    row[RunningColumn.PREEMPTING] = 1.0 if oldest and client.preempting == 1 else 0.0
    row[RunningColumn.LAUNCHED_US] = launch.launched_us
    row[RunningColumn.STARTED_US] = client.started_us if started else np.inf
    row[RunningColumn.ELAPSED_US] = now - client.started_us if started else 0.0
    row[RunningColumn.BLOCKS] = kernel.grid_blocks
    row[RunningColumn.BLOCKS_WAITING] = client.blocks if oldest and client.blocks >= 0 else kernel.grid_blocks
    row[RunningColumn.BLOCKS_RESIDENT] = 0.0
    if placed:
        x = context_of(w, tenant)
        row[RunningColumn.BLOCKS_WAITING] = waiting_blocks(w, x, tenant, now)
        row[RunningColumn.BLOCKS_RESIDENT] = grids(x, tenant).resident
    row[RunningColumn.PROFILED_US] = kernel.profiled_us if kernel.profiled_us > 0.0 else np.nan
    row[RunningColumn.PROFILED_ISSUE] = kernel.issue
    row[RunningColumn.PROFILED_DRAM] = kernel.dram
    row[RunningColumn.DEADLINE_US] = jobs(w, tenant, launch.job).deadline_us
    row[RunningColumn.IDEMPOTENT] = kernel.idempotent
    row[RunningColumn.PREEMPTIBLE] = 1.0 if oldest and may_preempt(w, client) else 0.0


@called
def fill_tenant(w, tenant, row):
    """The row of a tenant."""
    client = clients(w, tenant)
    program = programs(w, tenant)
    now = w.now_us
    row[TenantColumn.PRIORITY] = program.priority
    row[TenantColumn.WEIGHT] = program.weight
    row[TenantColumn.SLO_US] = program.slo_us
    row[TenantColumn.ALONE_US] = program.alone_us
    row[TenantColumn.JOBS_WAITING] = client.arrived - client.completed
    row[TenantColumn.JOBS_DONE] = client.completed
    row[TenantColumn.KERNELS_PENDING] = client.kernels_pending
    row[TenantColumn.KERNELS_LAUNCHED] = client.kernels_launched
    row[TenantColumn.OLDEST_ARRIVED_US] = (
        jobs(w, tenant, client.completed).arrived_us if client.arrived > client.completed else np.inf
    )
    row[TenantColumn.LAST_TURNAROUND_US] = client.last_turnaround_us
    row[TenantColumn.MEAN_TURNAROUND_US] = client.mean_turnaround_us
    row[TenantColumn.PARTITION_FIRST] = client.partition_first
    row[TenantColumn.PARTITION_SMS] = client.partition_sms
    row[TenantColumn.LAST_END_US] = max(0.0, client.last_end_us)
    left_us = client.launched_profiled_us
    running_us = np.inf
    if client.kernels_launched > 0 and client.returned == 0 and client.started_us < np.inf:
        profiled_us = kernels(w, ops(w, launches(w, tenant, client.finished).op).identity).profiled_us
        elapsed_us = now - client.started_us
        left_us -= min(profiled_us, elapsed_us)
        if client.placed == 1:
            running_us = max(0.0, profiled_us - elapsed_us)
    row[TenantColumn.LAUNCHED_LEFT_US] = left_us
    row[TenantColumn.RUNNING_LEFT_US] = running_us
    row[TenantColumn.PARTITIONABLE] = 1.0 if may_set_partition(w, client) else 0.0


@called
def occupancy(w):
    """Resident threads over the GPU's maximum, 0 to 1."""
    threads = 0
    for number in range(problem(w).tenants if problem(w).sliced == 1 else 1):
        x = contexts(w, number)
        if x.active == 1:
            threads += x.resident_threads
    return threads / (problem(w).sms * problem(w).threads)


@called
def show_pending(w, out):
    """For each tenant the row of its oldest pending kernel; copies are not shown.

    The oldest pending operation is a kernel, and may be launched.
    """
    for tenant in range(out.shape[0]):
        out[tenant, PendingColumn.ID] = EMPTY
        if tenant < problem(w).tenants and pending(clients(w, tenant)) > 0:
            client = clients(w, tenant)
            fill_pending(w, tenant, client.finished if client.returned == 1 else client.handed, 1.0, out[tenant])


@inlined
def oldest_launched(w, tenant, number):
    """The number of a tenant's first launched kernel from ``number`` on; ``handed``: none."""
    client = clients(w, tenant)
    while number < client.handed and ops(w, launches(w, tenant, number).op).kind != KERNEL:
        number += 1
    return number


@inlined
def first_in_order(w, tenant):
    """Number of a tenant's launched kernel that was launched first (there is one).

    The oldest, unless that one was preempted and launched again.
    """
    client = clients(w, tenant)
    number = oldest_launched(w, tenant, client.finished + client.returned)
    if number == client.finished:
        other = oldest_launched(w, tenant, number + 1)
        if other < client.handed and launches(w, tenant, other).order < launches(w, tenant, number).order:
            return other
    return number


@called
def show_running(w, scratch, out):
    """Launched kernels: those that run, then the first of every other tenant, then the rest, in order of launch.

    Args:
        scratch: int64 ``(3, tenants)``.
        out: shape ``(running slots, columns)``.
    """
    shown, cursors, firsts = scratch[0], scratch[1], scratch[2]
    launched = 0
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        launched += client.kernels_launched
        number = oldest_launched(w, tenant, client.finished + client.returned)
        # The oldest is a candidate of its own: launched again after a preemption, it comes after others.
        shown[tenant] = number != client.finished or number == client.handed
        cursors[tenant] = number if shown[tenant] == 1 else oldest_launched(w, tenant, number + 1)
        firsts[tenant] = first_in_order(w, tenant)
    slots = min(out.shape[0], launched)
    for slot in range(slots, out.shape[0]):
        out[slot, RunningColumn.ID] = EMPTY
    filled = 0
    for group in range(3):
        while filled < slots:
            best = -1
            best_number = 0
            order = 0
            for tenant in range(problem(w).tenants):
                client = clients(w, tenant)
                for candidate in range(2):
                    number = client.finished if candidate == 0 else cursors[tenant]
                    if (candidate == 0 and shown[tenant] == 1) or number >= client.handed:
                        continue
                    if group == 0 and not (candidate == 0 and runs(client)):
                        continue
                    if group == 1 and number != firsts[tenant]:
                        continue
                    launch_order = launches(w, tenant, number).order
                    if best < 0 or launch_order < order:
                        best = tenant
                        best_number = number
                        order = launch_order
            if best < 0:
                break
            fill_running(w, best, best_number, out[filled])
            filled += 1
            if best_number == clients(w, best).finished:
                shown[best] = 1
            else:
                cursors[best] = oldest_launched(w, best, best_number + 1)


@called
def list_pending(w, lookahead, out):
    """Rows of pending kernels, at most ``lookahead`` a tenant; returns their number."""
    rows = 0
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        number = client.finished if client.returned == 1 else client.handed
        listed = 0
        while number < client.issued and listed < lookahead:
            if ops(w, launches(w, tenant, number).op).kind == KERNEL:
                fill_pending(w, tenant, number, 1.0 if listed == 0 else 0.0, out[rows])
                rows += 1
                listed += 1
            number = client.handed if number == client.finished and client.returned == 1 else number + 1
    return rows


@called
def list_running(w, orders, out):
    """Rows of launched, unfinished kernels, by tenant, and the order of their launches; returns their number."""
    rows = 0
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        for number in range(client.finished + client.returned, client.handed):
            launch = launches(w, tenant, number)
            if ops(w, launch.op).kind == KERNEL:
                fill_running(w, tenant, number, out[rows])
                orders[rows] = launch.order
                rows += 1
    return rows

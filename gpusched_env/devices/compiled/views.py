"""What the tables of a :class:`~gpusched_env.scheduling.view.View` say of launches and tenants."""

from __future__ import annotations

import numpy as np

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    clients,
    contexts,
    edges,
    flight_of,
    flights,
    grids,
    jobs,
    kernels,
    launches,
    ops,
    problem,
    programs,
    resident,
    streams,
    tilings,
)
from gpusched_env.devices.compiled.blocks import waiting_blocks
from gpusched_env.devices.compiled.context import context_of
from gpusched_env.devices.compiled.forms import fill_forms
from gpusched_env.devices.compiled.issuing import is_graph, is_launchable, is_windowed, stream_for
from gpusched_env.devices.compiled.layout import EMPTIED, NONE, PENDING, READY
from gpusched_env.devices.compiled.slots import holds
from gpusched_env.devices.compiled.tiles import may_synchronise
from gpusched_env.hardware.clock import NEVER, to_us
from gpusched_env.hardware.tiles import KERNEL
from gpusched_env.scheduling.commands.preempt import may_preempt
from gpusched_env.scheduling.legality import show_tenant
from gpusched_env.scheduling.view import PendingColumn, RunningColumn, TenantColumn
from gpusched_env.workload.host import oldest_unanswered

EMPTY = -1.0
"""Id in rows that show no launch."""


@inlined
def runs(w, launch):
    """Whether a launched kernel or graph has started."""
    return launch.flight != NONE and flight_of(w, launch).started_ps < NEVER


@inlined
def has_blocks(w, launch):
    """Whether a kernel that has started has not left the SMs; on a GPU outside: whether it has not ended."""
    if w.external == 1:
        return launch.state == READY and not is_graph(w, launch)
    return flight_of(w, launch).grid != NONE


@inlined
def elapsed_us(w, launch):
    """How long a launch has run: since its start, and before a preemption that kept its progress."""
    if launch.flight == NONE:
        return 0.0
    flight = flight_of(w, launch)
    since_ps = w.now_ps - flight.started_ps if flight.started_ps < NEVER else 0
    return (since_ps + flight.ran_ps) / 1e6


@inlined
def blocks_to_run(w, launch, kernel):
    """Blocks of a launch that are not on the SMs: all, or what was left at a preemption."""
    if launch.flight == NONE or flight_of(w, launch).blocks < 0:
        return kernel.grid_blocks
    return flight_of(w, launch).blocks


@called
def fill_pending(w, slot, row):
    """The row of a pending launch."""
    launch = launches(w, slot)
    kernel = kernels(w, launch.identity)
    row[PendingColumn.ID] = launch.id
    row[PendingColumn.TENANT] = launch.tenant
    row[PendingColumn.JOB] = launch.job
    row[PendingColumn.IDENTITY] = launch.identity
    row[PendingColumn.LAUNCHABLE] = 1.0 if is_launchable(w, launch) else 0.0
    row[PendingColumn.PRIORITY] = programs(w, launch.tenant).priority
    row[PendingColumn.BLOCKS] = blocks_to_run(w, launch, kernel)
    row[PendingColumn.THREADS] = kernel.block_threads
    row[PendingColumn.BLOCKS_PER_SM] = kernel.blocks_per_sm
    row[PendingColumn.SMS] = kernel.uses_sms
    row[PendingColumn.PROFILED_US] = kernel.profiled_us if kernel.profiled_us > 0.0 else np.nan
    row[PendingColumn.PROFILED_GAP_US] = kernel.gap_us
    row[PendingColumn.PROFILED_ISSUE] = kernel.issue
    row[PendingColumn.PROFILED_DRAM] = kernel.dram
    row[PendingColumn.ISSUED_US] = to_us(launch.issued_ps)
    row[PendingColumn.WAITED_US] = (w.now_ps - launch.issued_ps) / 1e6
    row[PendingColumn.JOB_ARRIVED_US] = to_us(launch.arrived_ps)
    row[PendingColumn.DEADLINE_US] = to_us(launch.deadline_ps)
    row[PendingColumn.JOB_LEFT_US] = ops(w, launch.op).left_us
    row[PendingColumn.PREEMPTED] = 1.0 if launch.flight != NONE else 0.0
    row[PendingColumn.STREAM] = launch.stream if launch.flight != NONE else launch.row
    row[PendingColumn.UPSTREAM] = launch.upstream
    row[PendingColumn.NODES] = kernel.nodes
    row[PendingColumn.PARENT] = launch.parent_id
    row[PendingColumn.QUEUED_US] = 0.0
    row[PendingColumn.BETWEEN_US] = 0.0
    row[PendingColumn.DEPENDENTS] = 0.0
    if is_windowed(w, launch):
        fill_queued(w, launch, row)
        row[PendingColumn.DEPENDENTS] = dependents(w, launch)
    op = ops(w, launch.op)
    row[PendingColumn.PRODUCER] = NONE
    row[PendingColumn.NEEDS] = op.needs if op.tiles >= 0 else NONE
    row[PendingColumn.FOLD] = op.fold if op.tiles >= 0 else 0
    row[PendingColumn.STEPS] = op.steps if op.tiles >= 0 else 0
    row[PendingColumn.SYNCHRONISABLE] = 0.0
    row[PendingColumn.ROWS] = kernel.rows
    row[PendingColumn.COLUMNS] = kernel.columns
    row[PendingColumn.SLICES] = kernel.slices
    row[PendingColumn.POLICY] = KERNEL
    row[PendingColumn.POSTS] = KERNEL
    if problem(w).tiled == 1:
        tiling = tilings(w, slot)
        row[PendingColumn.PRODUCER] = tiling.producer_id if holds(w, tiling.producer, tiling.producer_id) else NONE
        row[PendingColumn.SYNCHRONISABLE] = 1.0 if may_synchronise(w, slot) else 0.0
        row[PendingColumn.POLICY] = tiling.policy
        row[PendingColumn.POSTS] = tiling.posts
    fill_forms(w, slot, row)


@called
def fill_queued(w, launch, row):
    """What a pending launch of a window would be behind in its stream."""
    number = NONE if launch.flight != NONE else stream_for(w, launch)
    if number == NONE:
        return
    stream = streams(w, number)
    left_us = 0.0
    between_us = 0.0
    is_between = True
    slot = stream.last_slot if holds(w, stream.last_slot, stream.last_id) else NONE
    while slot != NONE and launches(w, slot).state != EMPTIED:
        before = launches(w, slot)
        is_between = is_between and not waits_for(w, launch, slot)
        left_us += max(0.0, kernels(w, before.identity).profiled_us - elapsed_us(w, before))
        between_us = left_us if is_between else between_us
        slot = before.previous
    row[PendingColumn.QUEUED_US] = left_us
    row[PendingColumn.BETWEEN_US] = between_us


@called
def waits_for(w, launch, slot):
    """Whether a launch has an edge from an unfinished one."""
    number = launch.edges_in
    while number != NONE:
        edge = edges(w, number)
        if edge.source == slot and holds(w, slot, edge.source_id):
            return True
        number = edge.next_in
    return False


@called
def dependents(w, launch):
    """Pending launches that wait for a pending one of a window."""
    found = 0
    number = launch.edges_out
    while number != NONE:
        edge = edges(w, number)
        if holds(w, edge.target, edge.target_id) and launches(w, edge.target).state == PENDING:
            found += 1
        number = edge.next_out
    return found


@called
def fill_running(w, slot, row):
    """The row of a launched, unfinished kernel or graph."""
    launch = launches(w, slot)
    kernel = kernels(w, launch.identity)
    row[RunningColumn.ID] = launch.id
    row[RunningColumn.TENANT] = launch.tenant
    row[RunningColumn.JOB] = launch.job
    row[RunningColumn.IDENTITY] = launch.identity
    row[RunningColumn.PRIORITY] = programs(w, launch.tenant).priority
    row[RunningColumn.STREAM_PRIORITY] = launch.priority
    row[RunningColumn.STARTED] = 0.0
    row[RunningColumn.PREEMPTING] = 0.0
    row[RunningColumn.LAUNCHED_US] = to_us(launch.launched_ps)
    row[RunningColumn.STARTED_US] = np.inf
    row[RunningColumn.ELAPSED_US] = elapsed_us(w, launch)
    row[RunningColumn.BLOCKS] = kernel.grid_blocks
    row[RunningColumn.BLOCKS_WAITING] = blocks_to_run(w, launch, kernel)
    row[RunningColumn.BLOCKS_RESIDENT] = 0.0
    row[RunningColumn.PREEMPTIBLE] = 0.0
    if launch.flight != NONE:
        fill_flight(w, slot, row)
    row[RunningColumn.PROFILED_US] = kernel.profiled_us if kernel.profiled_us > 0.0 else np.nan
    row[RunningColumn.PROFILED_ISSUE] = kernel.issue
    row[RunningColumn.PROFILED_DRAM] = kernel.dram
    row[RunningColumn.DEADLINE_US] = to_us(launch.deadline_ps)
    row[RunningColumn.IDEMPOTENT] = kernel.idempotent
    row[RunningColumn.POLICY] = KERNEL
    row[RunningColumn.POSTS] = KERNEL
    if problem(w).tiled == 1:
        tiling = tilings(w, slot)
        row[RunningColumn.POLICY] = tiling.policy
        row[RunningColumn.POSTS] = tiling.posts
        if tiling.posts != KERNEL:
            row[RunningColumn.IDEMPOTENT] = 0.0
    row[RunningColumn.STREAM] = launch.stream
    row[RunningColumn.NODES] = kernel.nodes
    row[RunningColumn.PARENT] = launch.parent_id


@called
def fill_flight(w, slot, row):
    """What there is to say of a launch that has nothing before it any more."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    x = context_of(w, launch.tenant)
    row[RunningColumn.STARTED] = 1.0 if runs(w, launch) else 0.0
    row[RunningColumn.PREEMPTING] = flight.preempting
    row[RunningColumn.STARTED_US] = to_us(flight.started_ps)
    row[RunningColumn.PREEMPTIBLE] = 1.0 if may_preempt(w, launch) else 0.0
    if launch.state == EMPTIED:
        row[RunningColumn.BLOCKS_WAITING] = 0.0
    elif is_graph(w, launch):
        waiting, on_sms = graph_blocks(w, x, slot, kernels(w, launch.identity).grid_blocks)
        row[RunningColumn.BLOCKS_WAITING] = waiting
        row[RunningColumn.BLOCKS_RESIDENT] = on_sms
    elif flight.grid != NONE:
        row[RunningColumn.BLOCKS_WAITING] = waiting_blocks(x, flight.grid, w.now_ps)
        row[RunningColumn.BLOCKS_RESIDENT] = grids(x, flight.grid).resident


@called
def graph_blocks(w, x, slot, blocks):
    """Blocks of a launched graph that wait, and those on SMs."""
    graph = launches(w, slot)
    waiting = blocks - flight_of(w, graph).done_blocks
    on_sms = 0
    for place in range(x.grids):
        grid = resident(x, place)
        if launches(w, grid.slot).parent == slot:
            left = waiting_blocks(x, flights(w, grid.slot).grid, w.now_ps)
            waiting -= grid.total - left
            on_sms += grid.resident
    return waiting, on_sms


@called
def fill_tenants(w, out):
    """The rows of all tenants, shape ``(tenants, columns)``."""
    for tenant in range(problem(w).tenants):
        client = clients(w, tenant)
        program = programs(w, tenant)
        row = out[tenant]
        row[TenantColumn.PRIORITY] = program.priority
        row[TenantColumn.WEIGHT] = program.weight
        row[TenantColumn.SLO_US] = program.slo_us
        row[TenantColumn.ALONE_US] = program.answer_us
        row[TenantColumn.DEVICE_US] = program.device_us
        row[TenantColumn.JOBS_A_US] = program.jobs_a_us
        row[TenantColumn.JOBS_WAITING] = client.arrived - client.completed - client.rejected
        row[TenantColumn.JOBS_DONE] = client.completed
        row[TenantColumn.KERNELS_PENDING] = client.kernels_pending
        row[TenantColumn.KERNELS_LAUNCHED] = client.kernels_launched
        oldest = oldest_unanswered(w, tenant)
        row[TenantColumn.OLDEST_ARRIVED_US] = to_us(jobs(w, tenant, oldest).arrived_ps) if oldest != NONE else np.inf
        row[TenantColumn.LAST_TURNAROUND_US] = client.last_turnaround_us
        row[TenantColumn.MEAN_TURNAROUND_US] = client.mean_turnaround_us
        row[TenantColumn.PARTITION_FIRST] = client.partition_first
        row[TenantColumn.PARTITION_SMS] = client.partition_sms
        row[TenantColumn.LAST_END_US] = to_us(client.last_end_ps) if client.last_end_ps > 0 else 0.0
        row[TenantColumn.LAUNCHED_LEFT_US] = client.launched_profiled_us
        row[TenantColumn.RUNNING_LEFT_US] = np.inf
        row[TenantColumn.PAUSE_US] = to_us(client.pause_ps)
        show_tenant(w, tenant, row)
    fill_left(w, out)


@inlined
def fill_left(w, out):
    """What started kernels have done since, and the least that one of each tenant's has left."""
    slot = w.started_first
    while slot != NONE:
        launch = launches(w, slot)
        flight = flight_of(w, launch)
        row = out[launch.tenant]
        left_us = max(0.0, kernels(w, launch.identity).profiled_us - elapsed_us(w, launch))
        row[TenantColumn.LAUNCHED_LEFT_US] -= spent_since_us(w, launch)
        row[TenantColumn.RUNNING_LEFT_US] = min(row[TenantColumn.RUNNING_LEFT_US], left_us)
        slot = flight.started_after


@inlined
def spent_since_us(w, launch):
    """What a started kernel has done of its profiled time since it was launched last."""
    profiled_us = kernels(w, launch.identity).profiled_us
    return min(profiled_us, elapsed_us(w, launch)) - min(profiled_us, flight_of(w, launch).ran_ps / 1e6)


@called
def launched_left_us(w, tenant):
    """One tenant's ``LAUNCHED_LEFT_US``."""
    left_us = clients(w, tenant).launched_profiled_us
    slot = w.started_first
    while slot != NONE:
        launch = launches(w, slot)
        if launch.tenant == tenant:
            left_us -= spent_since_us(w, launch)
        slot = flight_of(w, launch).started_after
    return left_us


@called
def occupancy(w):
    """Resident threads over the GPU's maximum, 0 to 1."""
    x = contexts(w, w.slicer_context)
    threads = x.resident_threads if x.active == 1 else 0
    return threads / (problem(w).sms * problem(w).threads)

"""What may be done with launches and tenants now, and what views say of them
(:mod:`gpusched_env.devices.rules.rows`)."""

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
    kernels,
    launches,
    problem,
    resident,
    streams,
)
from gpusched_env.devices.compiled.blocks import waiting_blocks
from gpusched_env.devices.compiled.context import context_of
from gpusched_env.devices.compiled.issuing import is_graph, is_windowed, stream_for
from gpusched_env.devices.compiled.layout import EMPTIED, NONE, PENDING, READY
from gpusched_env.devices.compiled.slots import holds
from gpusched_env.hardware.clock import NEVER
from gpusched_env.scheduling.view import TenantColumn

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
def blocks_to_run(w, launch):
    """Blocks of a launch that are not on the SMs: all, or what was left at a preemption."""
    if launch.flight == NONE or flight_of(w, launch).blocks < 0:
        return kernels(w, launch.identity).grid_blocks
    return flight_of(w, launch).blocks


@called
def behind(w, launch):
    """What a pending launch of a window would be behind in its stream, and how many pending ones wait for it."""
    left_us = 0.0
    between_us = 0.0
    if not is_windowed(w, launch):
        return left_us, between_us, 0
    number = NONE if launch.flight != NONE else stream_for(w, launch)
    slot = NONE
    if number != NONE and holds(w, streams(w, number).last_slot, streams(w, number).last_id):
        slot = streams(w, number).last_slot
    is_between = True
    while slot != NONE and launches(w, slot).state != EMPTIED:
        before = launches(w, slot)
        is_between = is_between and not waits_for(w, launch, slot)
        left_us += max(0.0, kernels(w, before.identity).profiled_us - elapsed_us(w, before))
        between_us = left_us if is_between else between_us
        slot = before.previous
    return left_us, between_us, dependents(w, launch)


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
def on_gpu(w, slot):
    """Blocks of a launch that wait and that are resident; of a graph summed over its nodes."""
    launch = launches(w, slot)
    context = context_of(w, launch.tenant)
    if launch.flight == NONE:
        return int(blocks_to_run(w, launch)), 0
    if launch.state == EMPTIED:
        return 0, 0
    if is_graph(w, launch):
        return graph_blocks(w, context, slot, kernels(w, launch.identity).grid_blocks)
    grid = flight_of(w, launch).grid
    if grid == NONE:
        return int(blocks_to_run(w, launch)), 0
    return int(waiting_blocks(context, grid, w.now_ps)), int(grids(context, grid).resident)


@called
def graph_blocks(w, context, slot, blocks):
    """Blocks of a launched graph that wait, and those on SMs."""
    graph = launches(w, slot)
    waiting = blocks - flight_of(w, graph).done_blocks
    on_sms = 0
    for place in range(context.grids):
        grid = resident(context, place)
        if launches(w, grid.slot).parent == slot:
            left = waiting_blocks(context, flights(w, grid.slot).grid, w.now_ps)
            waiting -= grid.total - left
            on_sms += grid.resident
    return int(waiting), int(on_sms)


@inlined
def fill_left(w, out):
    """Profiled time left of each tenant's launched kernels, and the least of those that have started."""
    for tenant in range(problem(w).tenants):
        out[tenant, TenantColumn.LAUNCHED_LEFT_US] = clients(w, tenant).launched_profiled_us
        out[tenant, TenantColumn.RUNNING_LEFT_US] = np.inf
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
    context = contexts(w, w.slicer_context)
    threads = context.resident_threads if context.active == 1 else 0
    return threads / (problem(w).sms * problem(w).threads)

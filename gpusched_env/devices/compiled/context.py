"""Contexts: hardware queues in front of the SMs, and the clock of their block ends."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    channels,
    class_ends,
    classes,
    contexts,
    flight_of,
    flights,
    grids,
    heads,
    kernels,
    launches,
    ops,
    problem,
    queue,
    resident,
    rows,
    tilings,
    used,
)
from gpusched_env.devices.compiled.blocks import end_due, ended_blocks, update_rates
from gpusched_env.devices.compiled.dispatch import dispatch_all
from gpusched_env.devices.compiled.finishing import kernel_finished, kernel_preempted
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.layout import IN_QUEUE, NONE, READY, STREAMS
from gpusched_env.devices.compiled.starting import kernel_started
from gpusched_env.devices.compiled.timing import arm_launch
from gpusched_env.devices.rules.l2 import cold_l2_factor, note_l2_traffic
from gpusched_env.devices.rules.meter import gpu_changed
from gpusched_env.hardware.clock import NEVER
from gpusched_env.hardware.queues import held_ps
from gpusched_env.hardware.tiles import KERNEL

# Marks of grids.
BEGUN = 0
DISPATCHED = 1
ENDED = 2


@inlined
def context_of(w, tenant):
    """The context that a tenant's work belongs to."""
    return contexts(w, tenant if problem(w).sliced == 1 else 0)


@inlined
def channel_of(w, context, launch):
    """The hardware queue of a launch: its stream's, beside it for a graph's branches, its own for a child."""
    row = launch.id if launch.stream == NONE else launch.stream + ops(w, launch.op).branch
    return channels(context, row % problem(w).channels)


@called
def submit(w, slot):
    """A kernel is ready: it enters its hardware queue (channel), once the hardware takes kernels from that."""
    launch = launches(w, slot)
    context = context_of(w, launch.tenant)
    channel = channel_of(w, context, launch)
    if problem(w).queue_period_ps > 0:
        if channel.place == NONE:
            channel.place = context.used_queues
            context.used_queues += 1
        at_ps = held_ps(
            channel.place, context.used_queues, problem(w).held_queues, problem(w).queue_period_ps, w.now_ps
        )
        if at_ps > w.now_ps:
            arm_launch(w, slot, at_ps, STREAMS)
            return
    launch.state = READY
    flight_of(w, launch).behind = NONE
    if channel.first == NONE:
        channel.first = slot
        channel.last = slot
        wait_at_head(context, slot)
        settle_context(w, context)
    else:
        flights(w, channel.last).behind = slot
        channel.last = slot


@inlined
def wait_at_head(context, slot):
    """A kernel at the head of its hardware queue waits for a slot among the resident grids."""
    heads(context, context.waiting).value = slot
    context.waiting += 1


@called
def leave_channel(w, context, slot):
    """A grid is fully dispatched (or withdrawn): the kernel behind it in its hardware queue moves up.

    One whose saved blocks came back may have left its hardware queue before.
    """
    channel = channel_of(w, context, launches(w, slot))
    if channel.first != slot:
        return
    follower = flights(w, slot).behind
    channel.first = follower
    if follower == NONE:
        channel.last = NONE
    else:
        wait_at_head(context, follower)


@called
def enter(w, context):
    """Let heads of hardware queues become resident grids, as far as slots are free."""
    entered = 0
    while entered < context.waiting and context.grids < problem(w).resident_grids:
        add_grid(w, context, heads(context, entered).value)
        entered += 1
    context.waiting -= entered
    for i in range(context.waiting):
        heads(context, i).value = heads(context, i + entered).value


@called
def add_grid(w, context, slot):
    """Make a kernel a resident grid; it starts when blocks are handed out next."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    op = ops(w, launch.op)
    kernel = kernels(w, launch.identity)
    number = used(context, context.grids).value
    grid = grids(context, number)
    grid.place = context.grids
    context.grids += 1
    flight.grid = number
    grid.slot = slot
    grid.launch = launch.id
    grid.threads = kernel.threads
    grid.warps = kernel.warps
    grid.registers = kernel.registers
    grid.shared_bytes = kernel.shared_bytes
    grid.carveout = kernel.carveout_bytes
    grid.fit = kernel.blocks_per_sm
    grid.residents = kernel.residents
    grid.total = kernel.grid_blocks
    grid.waiting = flight.blocks if flight.blocks >= 0 else kernel.grid_blocks
    grid.resident = 0
    grid.saved = flight.saved
    grid.priority = launch.priority
    grid.first = launch.partition_first
    grid.sms = launch.partition_sms
    grid.begun = 0
    grid.told = 0
    grid.serial = context.serial
    grid.dispatched = 0
    grid.ended = 0
    scale = op.scale * cold_l2_factor(w, launch.tenant, launch.job, op.cold)
    grid.latency_us = kernel.latency_us * scale
    grid.rho = kernel.rho
    grid.log_idle = kernel.log_idle
    grid.wait = kernel.wait
    grid.dram_bytes = kernel.dram_bytes * scale
    grid.spread = kernel.spread
    grid.saved_left = flight.saved_left
    grid.tiled = 0
    if problem(w).tiled == 1 and (tilings(w, slot).policy != KERNEL or tilings(w, slot).posts != KERNEL):
        grid.tiled = 1
        context.tiles += 1
    context.serial += 1
    enqueue(context, number)


@called
def enqueue(context, number):
    """Let a grid hand out blocks: the queue is in order of priority, then of arrival."""
    grid = grids(context, number)
    position = context.queued
    context.queued += 1
    while position > 0:
        before = grids(context, queue(context, position - 1).value)
        if before.priority < grid.priority or (before.priority == grid.priority and before.serial < grid.serial):
            break
        queue(context, position).value = queue(context, position - 1).value
        position -= 1
    queue(context, position).value = number
    grid.queued = IN_QUEUE
    context.changed = 1


@called
def remove_grid(w, context, grid):
    """Free the slot of a grid that has neither queued nor resident blocks."""
    flights(w, grid.slot).done_blocks = max(flights(w, grid.slot).done_blocks, ended_blocks(grid))
    flights(w, grid.slot).grid = NONE
    if grid.tiled == 1:
        context.tiles -= 1
    context.grids -= 1
    number = used(context, grid.place).value
    last = used(context, context.grids).value
    used(context, grid.place).value = last
    grids(context, last).place = grid.place
    used(context, context.grids).value = number


@inlined
def settle_context(w, context):
    """:func:`bring_to_present`, compiled on its own: it is large, and used at many places."""
    call(w.settle_at, w.address, context.number)


@called
def bring_to_present(w, context):
    """Bring the SMs to the present and handle what happened; set the clock for the next block end."""
    if context.active == 0:
        return
    end_due(w, context, w.now_ps)
    while True:
        if context.changed == 1:
            context.changed = 0
            dispatch_all(w, context)
        report_grid_changes(w, context)
        if context.waiting == 0 or context.grids == problem(w).resident_grids:
            break
        enter(w, context)
    update_rates(w, context, context.jumping == 1)
    gpu_changed(w, context.busy_sms, context.traffic)


@called
def report_grid_changes(w, context):
    """Pass on what happened to grids, in order of launch: they have started, are fully dispatched, have ended."""
    while context.begun > 0:
        grid = earliest(context, BEGUN)
        grid.told = 1
        context.begun -= 1
        kernel_started(w, grid.slot)
    while context.dispatched > 0:
        grid = earliest(context, DISPATCHED)
        grid.dispatched = 0
        context.dispatched -= 1
        leave_channel(w, context, grid.slot)
    while context.ended > 0:
        grid = earliest(context, ENDED)
        grid.ended = 0
        context.ended -= 1
        end_grid(w, context, grid)


@inlined
def earliest(context, mark):
    """The grid of the lowest launch id with a mark that was not passed on."""
    best = NONE
    for place in range(context.grids):
        grid = resident(context, place)
        if is_marked(grid, mark) and (best == NONE or grid.launch < resident(context, best).launch):
            best = place
    return resident(context, best)


@inlined
def is_marked(grid, mark):
    """Whether a grid has a mark that was not passed on."""
    if mark == BEGUN:
        return grid.begun > grid.told
    return (grid.dispatched if mark == DISPATCHED else grid.ended) == 1


@called
def end_grid(w, context, grid):
    """All resident blocks of a grid have ended: it is finished, or drained."""
    slot = grid.slot
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    waiting = grid.waiting
    if waiting > 0:
        flight.blocks = waiting
        flight.saved = grid.saved
        flight.saved_left = grid.saved_left
    remove_grid(w, context, grid)
    if waiting > 0:
        kernel_preempted(w, slot, True)
    else:
        note_l2_traffic(w, launch.tenant, kernels(w, launch.identity).brought_bytes * ops(w, launch.op).scale)
        kernel_finished(w, slot)


@called
def activate(w, context):
    """The context gets the GPU: its blocks go on where they were."""
    away_ps = w.now_ps - context.now_ps
    for sm_class in range(1, context.classes):
        for r in range(classes(context, sm_class).rows):
            row = rows(context, sm_class, r)
            row.at_ps += away_ps
            if row.end_ps < NEVER:
                row.end_ps += away_ps
        if class_ends(context, sm_class).value < NEVER:
            class_ends(context, sm_class).value += away_ps
    context.next_ps = context.next_ps + away_ps if context.next_ps < NEVER else NEVER
    context.now_ps = w.now_ps
    context.active = 1
    settle_context(w, context)


@called
def deactivate(w, context):
    """The context loses the GPU; its blocks stop where they are."""
    settle_context(w, context)
    context.active = 0
    gpu_changed(w, 0, 0.0)

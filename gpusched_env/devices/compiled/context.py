"""Contexts: hardware queues in front of the SMs, and the clock of their block ends."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    channels,
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
def channel_of(w, x, launch):
    """The hardware queue of a launch: its stream's, beside it for a graph's branches, its own for a child."""
    row = launch.id if launch.stream == NONE else launch.stream + ops(w, launch.op).branch
    return channels(x, row % problem(w).channels)


@called
def submit(w, slot):
    """A kernel is ready: it enters its hardware queue (channel), once the hardware takes kernels from that."""
    launch = launches(w, slot)
    x = context_of(w, launch.tenant)
    channel = channel_of(w, x, launch)
    if problem(w).queue_period_ps > 0:
        if channel.place == NONE:
            channel.place = x.used_queues
            x.used_queues += 1
        at_ps = held_ps(channel.place, x.used_queues, problem(w).held_queues, problem(w).queue_period_ps, w.now_ps)
        if at_ps > w.now_ps:
            arm_launch(w, slot, at_ps, STREAMS)
            return
    launch.state = READY
    flight_of(w, launch).behind = NONE
    if channel.first == NONE:
        channel.first = slot
        channel.last = slot
        wait_at_head(x, slot)
        settle_context(w, x)
    else:
        flights(w, channel.last).behind = slot
        channel.last = slot


@inlined
def wait_at_head(x, slot):
    """A kernel at the head of its hardware queue waits for a slot among the resident grids."""
    heads(x, x.waiting).value = slot
    x.waiting += 1


@called
def leave_channel(w, x, slot):
    """A grid is fully dispatched (or withdrawn): the kernel behind it in its hardware queue moves up.

    One whose saved blocks came back may have left its hardware queue before.
    """
    channel = channel_of(w, x, launches(w, slot))
    if channel.first != slot:
        return
    follower = flights(w, slot).behind
    channel.first = follower
    if follower == NONE:
        channel.last = NONE
    else:
        wait_at_head(x, follower)


@called
def enter(w, x):
    """Let heads of hardware queues become resident grids, as far as slots are free."""
    entered = 0
    while entered < x.waiting and x.grids < problem(w).resident_grids:
        add_grid(w, x, heads(x, entered).value)
        entered += 1
    x.waiting -= entered
    for i in range(x.waiting):
        heads(x, i).value = heads(x, i + entered).value


@called
def add_grid(w, x, slot):
    """Make a kernel a resident grid; it starts when blocks are handed out next."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    op = ops(w, launch.op)
    kernel = kernels(w, launch.identity)
    number = used(x, x.grids).value
    grid = grids(x, number)
    grid.place = x.grids
    x.grids += 1
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
    grid.serial = x.serial
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
        x.tiles += 1
    x.serial += 1
    enqueue(x, number)


@called
def enqueue(x, number):
    """Let a grid hand out blocks: the queue is in order of priority, then of arrival."""
    grid = grids(x, number)
    position = x.queued
    x.queued += 1
    while position > 0:
        before = grids(x, queue(x, position - 1).value)
        if before.priority < grid.priority or (before.priority == grid.priority and before.serial < grid.serial):
            break
        queue(x, position).value = queue(x, position - 1).value
        position -= 1
    queue(x, position).value = number
    grid.queued = IN_QUEUE
    x.changed = 1


@called
def remove_grid(w, x, grid):
    """Free the slot of a grid that has neither queued nor resident blocks."""
    flights(w, grid.slot).done_blocks = max(flights(w, grid.slot).done_blocks, ended_blocks(grid))
    flights(w, grid.slot).grid = NONE
    if grid.tiled == 1:
        x.tiles -= 1
    x.grids -= 1
    number = used(x, grid.place).value
    last = used(x, x.grids).value
    used(x, grid.place).value = last
    grids(x, last).place = grid.place
    used(x, x.grids).value = number


@inlined
def settle_context(w, x):
    """:func:`bring_to_present`, compiled on its own: it is large, and used at many places."""
    call(w.settle_at, w.address, x.number)


@called
def bring_to_present(w, x):
    """Bring the SMs to the present and handle what happened; set the clock for the next block end."""
    if x.active == 0:
        return
    end_due(w, x, w.now_ps)
    while True:
        if x.changed == 1:
            x.changed = 0
            dispatch_all(w, x)
        report_grid_changes(w, x)
        if x.waiting == 0 or x.grids == problem(w).resident_grids:
            break
        enter(w, x)
    update_rates(w, x, x.jumping == 1)
    gpu_changed(w, x.busy_sms, x.traffic)


@called
def report_grid_changes(w, x):
    """Pass on what happened to grids, in order of launch: they have started, are fully dispatched, have ended."""
    while x.begun > 0:
        grid = earliest(x, BEGUN)
        grid.told = 1
        x.begun -= 1
        kernel_started(w, grid.slot)
    while x.dispatched > 0:
        grid = earliest(x, DISPATCHED)
        grid.dispatched = 0
        x.dispatched -= 1
        leave_channel(w, x, grid.slot)
    while x.ended > 0:
        grid = earliest(x, ENDED)
        grid.ended = 0
        x.ended -= 1
        end_grid(w, x, grid)


@inlined
def earliest(x, mark):
    """The grid of the lowest launch id with a mark that was not passed on."""
    best = NONE
    for place in range(x.grids):
        grid = resident(x, place)
        if is_marked(grid, mark) and (best == NONE or grid.launch < resident(x, best).launch):
            best = place
    return resident(x, best)


@inlined
def is_marked(grid, mark):
    """Whether a grid has a mark that was not passed on."""
    if mark == BEGUN:
        return grid.begun > grid.told
    return (grid.dispatched if mark == DISPATCHED else grid.ended) == 1


@called
def end_grid(w, x, grid):
    """All resident blocks of a grid have ended: it is finished, or drained."""
    slot = grid.slot
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    waiting = grid.waiting
    if waiting > 0:
        flight.blocks = waiting
        flight.saved = grid.saved
        flight.saved_left = grid.saved_left
    remove_grid(w, x, grid)
    if waiting > 0:
        kernel_preempted(w, slot, True)
    else:
        note_l2_traffic(w, launch.tenant, kernels(w, launch.identity).brought_bytes * ops(w, launch.op).scale)
        kernel_finished(w, slot)


@called
def activate(w, x):
    """The context gets the GPU: its blocks go on where they were."""
    away_ps = w.now_ps - x.now_ps
    for c in range(1, x.classes):
        for r in range(classes(x, c).rows):
            row = rows(x, c, r)
            row.at_ps += away_ps
            if row.end_ps < NEVER:
                row.end_ps += away_ps
    x.next_ps = x.next_ps + away_ps if x.next_ps < NEVER else NEVER
    x.now_ps = w.now_ps
    x.active = 1
    settle_context(w, x)


@called
def deactivate(w, x):
    """The context loses the GPU; its blocks stop where they are."""
    settle_context(w, x)
    x.active = 0
    gpu_changed(w, 0, 0.0)

"""Contexts: hardware queues in front of the SMs, and the clock of their block ends.

As :mod:`gpusched_env.devices.reference.context`. A grid's slot is its tenant: a stream executes one kernel at a
time.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.devices.compiled.access import (
    channels,
    clients,
    contexts,
    due,
    grids,
    heads,
    kernels,
    launches,
    ops,
    problem,
    queue,
)
from gpusched_env.devices.compiled.blocks import step
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import COMPLETION, IN_QUEUE, NO_TENANT
from gpusched_env.devices.compiled.meter import CHANGE, gpu_changed
from gpusched_env.devices.compiled.queueing import kernel_finished, kernel_preempted


@inlined
def context_of(w, tenant):
    """The context that a tenant's work belongs to."""
    return contexts(w, tenant if problem(w).sliced == 1 else 0)


@called
def submit(w, tenant):
    """A kernel has reached the head of its stream: it enters the stream's hardware queue (channel)."""
    x = context_of(w, tenant)
    client = clients(w, tenant)
    client.on_device = 1
    client.behind = NO_TENANT
    channel = channels(x, tenant % problem(w).channels)
    if channel.first == NO_TENANT:
        channel.first = tenant
        channel.last = tenant
        wait_at_head(w, x, tenant)
        settle(w, x)
    else:
        clients(w, channel.last).behind = tenant
        channel.last = tenant


@inlined
def wait_at_head(w, x, tenant):
    """A kernel at the head of its hardware queue waits for a slot among the resident grids."""
    heads(x, x.waiting).value = tenant
    x.waiting += 1


@called
def leave_channel(w, x, tenant):
    """A grid is fully dispatched (or withdrawn): the kernel behind it in its hardware queue moves up.

    One whose saved blocks came back may have left its hardware queue before.
    """
    channel = channels(x, tenant % problem(w).channels)
    if channel.first != tenant:
        return
    follower = clients(w, tenant).behind
    channel.first = follower
    if follower == NO_TENANT:
        channel.last = NO_TENANT
    else:
        wait_at_head(w, x, follower)


@inlined
def has_slot(w, x):
    """Whether a further grid can be resident."""
    return x.grids < problem(w).resident_grids


@called
def enter(w, x):
    """Let heads of hardware queues become resident grids, as far as slots are free."""
    entered = 0
    while entered < x.waiting and has_slot(w, x):
        add_grid(w, x, heads(x, entered).value)
        entered += 1
    x.waiting -= entered
    for i in range(x.waiting):
        heads(x, i).value = heads(x, i + entered).value


@called
def add_grid(w, x, tenant):
    """Make a tenant's kernel a resident grid; it starts in the next step."""
    client = clients(w, tenant)
    launch = launches(w, tenant, client.finished)
    op = ops(w, launch.op)
    kernel = kernels(w, op.identity)
    grid = grids(x, tenant)
    client.placed = 1
    grid.launch = launch.id
    grid.threads = kernel.threads
    grid.warps = kernel.warps
    grid.registers = kernel.registers
    grid.shared_bytes = kernel.shared_bytes
    grid.carveout = kernel.carveout_bytes
    grid.fit = kernel.blocks_per_sm
    grid.waiting = client.blocks if client.blocks >= 0 else kernel.grid_blocks
    grid.resident = 0
    grid.saved = client.saved
    grid.priority = launch.priority
    grid.first = launch.partition_first
    grid.sms = launch.partition_sms
    grid.begun = 0
    grid.serial = x.serial
    grid.dispatched = 0
    grid.ended = 0
    grid.latency_us = kernel.latency_us * op.scale
    grid.rho = kernel.rho
    grid.log_idle = kernel.log_idle
    grid.wait = kernel.wait
    grid.dram_bytes = kernel.dram_bytes * op.scale
    grid.spread = kernel.spread
    grid.saved_left = client.saved_left
    x.serial += 1
    x.grids += 1
    enqueue(x, tenant)


@called
def enqueue(x, tenant):
    """Let a grid hand out blocks: the queue is in order of priority, then of arrival."""
    grid = grids(x, tenant)
    position = x.queued
    x.queued += 1
    while position > 0:
        before = grids(x, queue(x, position - 1).value)
        if before.priority < grid.priority or (before.priority == grid.priority and before.serial < grid.serial):
            break
        queue(x, position).value = queue(x, position - 1).value
        position -= 1
    queue(x, position).value = tenant
    grid.queued = IN_QUEUE
    x.changed = 1


@inlined
def remove_grid(w, x, tenant):
    """Free the slot of a grid that has neither queued nor resident blocks."""
    x.grids -= 1
    clients(w, tenant).placed = 0


@inlined
def settle(w, x):
    """:func:`bring_to_present`, compiled on its own: it is large, and used at many places."""
    call(w.settle_at, w.address, x.number)


@called
def bring_to_present(w, x):
    """Bring the SMs to the present and handle what happened; set the clock for the next block end."""
    now = w.now_us
    if x.active == 0:
        stay(w, x)
        return
    jumping = x.jumping == 1
    catching_up = x.waiting > 0 and x.ahead == 1
    while True:
        if not catching_up:
            enter(w, x)
        # Blocks that end at this very moment leave, and are replaced, before a grid arrives.
        step(w, x, now, jumping and not catching_up)
        handle(w, x)
        if not catching_up and (x.waiting == 0 or not has_slot(w, x)):
            break
        catching_up = not catching_up and x.waiting > 0 and x.ahead == 1
    if x.busy_sms != w.busy_sms or abs(x.traffic - w.traffic) > CHANGE * x.traffic:
        gpu_changed(w, x.busy_sms, x.traffic)
    due(w, COMPLETION, x.number).value = x.next_us


@called
def handle(w, x):
    """Pass on what happened in the last step, by tenant."""
    if x.dispatched > 0:
        x.dispatched = 0
        for tenant in range(problem(w).tenants):
            if grids(x, tenant).dispatched == 1:
                grids(x, tenant).dispatched = 0
                leave_channel(w, x, tenant)
    if x.ended > 0:
        x.ended = 0
        for tenant in range(problem(w).tenants):
            if grids(x, tenant).ended == 1:
                end_grid(w, x, tenant)


@called
def end_grid(w, x, tenant):
    """All resident blocks of a grid have ended: it is finished, or drained."""
    client = clients(w, tenant)
    grid = grids(x, tenant)
    grid.ended = 0
    remove_grid(w, x, tenant)
    if grid.waiting > 0:
        client.blocks = grid.waiting
        client.saved = grid.saved
        client.saved_left = grid.saved_left
        kernel_preempted(w, tenant)
    else:
        kernel_finished(w, tenant)


@inlined
def stay(w, x):
    """Let time pass without progress (the context was switched out)."""
    x.next_us += w.now_us - x.now_us
    x.now_us = w.now_us


@called
def activate(w, x):
    """The context gets the GPU."""
    stay(w, x)
    x.active = 1
    settle(w, x)


@called
def deactivate(w, x):
    """The context loses the GPU; its blocks stop where they are."""
    settle(w, x)
    x.active = 0
    due(w, COMPLETION, x.number).value = np.inf
    if w.busy_sms > 0:
        gpu_changed(w, 0, 0.0)

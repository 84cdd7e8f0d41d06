"""Taking a running kernel off the GPU: drain, save, reset; or only some of its blocks.

As :mod:`gpusched_env.devices.reference.preemption`, and what contexts do for it.
"""

from __future__ import annotations

import numpy as np

from gpusched_env.devices.compiled.access import clients, due, grids, kernels, launches, ops, problem, queue
from gpusched_env.devices.compiled.blocks import evict, progress, stop
from gpusched_env.devices.compiled.context import context_of, end_grid, enqueue, leave_channel, remove_grid, settle
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import NOT_QUEUED, PREEMPTION, RETURNS, STREAM
from gpusched_env.devices.compiled.queueing import kernel_preempted
from gpusched_env.hardware.timing import save_us

DRAIN = 0
SAVE = 1
RESET = 2


@called
def begin_preemption(w, tenant):
    """A preemption of a tenant's kernel takes effect, unless the kernel has ended."""
    client = clients(w, tenant)
    if client.mode == DRAIN:
        due(w, PREEMPTION, tenant).value = w.now_us + problem(w).drain_ack_us
        return
    x = context_of(w, tenant)
    settle(w, x)
    if client.preempting == 0:
        return
    if client.save_sms > 0:
        stopped = stop(w, x, tenant, client.save_first, client.save_sms)
    else:
        leave_queue(w, x, tenant)
        stopped = stop(w, x, tenant, 0, problem(w).sms)
    settle(w, x)
    if stopped == 0 and client.save_sms > 0:
        end_partial_save(w, client)
        return
    client.dead_us = problem(w).reset_us
    if client.mode == SAVE:
        kernel = kernels(w, ops(w, launches(w, tenant, client.finished).op).identity)
        client.dead_us = save_us(stopped * kernel.state_bytes, problem(w).nominal_bytes_per_us)
    due(w, PREEMPTION, tenant).value = w.now_us + client.dead_us


@called
def end_preemption(w, tenant):
    """The dispatcher has acknowledged a drain; a kernel's stopped blocks are saved or killed."""
    client = clients(w, tenant)
    if client.mode == DRAIN:
        withdraw(w, tenant)
    elif client.save_sms > 0:
        put_back(w, tenant)
        end_partial_save(w, client)
    else:
        # What an earlier save left to be read back comes on top.
        client.restore_us = client.restore_us + client.dead_us if client.mode == SAVE else 0.0
        take_off(w, tenant, client.mode == SAVE)


@inlined
def end_partial_save(w, client):
    """Some of a tenant's blocks are saved; its kernel may be preempted again."""
    client.preempting = 0
    w.awake = 1


@called
def withdraw(w, tenant):
    """Hand out no further blocks of a kernel."""
    x = context_of(w, tenant)
    settle(w, x)
    if clients(w, tenant).placed == 1:
        leave_queue(w, x, tenant)
        if grids(x, tenant).resident == 0:
            end_grid(w, x, tenant)
    settle(w, x)


@called
def take_off(w, tenant, keep_progress):
    """Remove a kernel's stopped blocks, which are all; it becomes pending with what is left of it."""
    x = context_of(w, tenant)
    client = clients(w, tenant)
    grid = grids(x, tenant)
    settle(w, x)
    evict(x, tenant)
    client.blocks = grid.waiting if keep_progress else -1
    client.saved = grid.saved if keep_progress else 0
    client.saved_left = grid.saved_left if keep_progress else 1.0
    remove_grid(w, x, tenant)
    kernel_preempted(w, tenant)
    settle(w, x)


@called
def put_back(w, tenant):
    """Take a kernel's stopped blocks off the SMs and the kernel off the queue, until they are read back.

    That takes as long as saving them, after those of earlier saves. There may be none: a context that was switched
    out may find that they had just ended.
    """
    x = context_of(w, tenant)
    client = clients(w, tenant)
    settle(w, x)
    if evict(x, tenant) > 0:
        suspend(w, x, tenant, RETURNS)
        client.preemptions += 1
        timer = due(w, STREAM, tenant)
        timer.value = (timer.value if timer.value < np.inf else w.now_us) + client.dead_us
    settle(w, x)


@called
def requeue(w, tenant):
    """The saved blocks of a kernel are read back: it hands out blocks again."""
    x = context_of(w, tenant)
    settle(w, x)
    enqueue(x, tenant)
    settle(w, x)


@called
def leave_queue(w, x, tenant):
    """Queue a grid no more; what is left of reading saved blocks back is done when it is launched again."""
    suspend(w, x, tenant, NOT_QUEUED)
    leave_channel(w, x, tenant)
    timer = due(w, STREAM, tenant)
    clients(w, tenant).restore_us = timer.value - w.now_us if timer.value < np.inf else 0.0
    timer.value = np.inf


@called
def suspend(w, x, tenant, queued):
    """Take a grid off the queue, if it is there, with waves that have not begun given back to it."""
    grids(x, tenant).queued = queued
    kept = 0
    for position in range(x.queued):
        if queue(x, position).value != tenant:
            queue(x, kept).value = queue(x, position).value
            kept += 1
    if kept < x.queued:
        x.queued = kept
        progress(w, x, x.now_us)
        x.changed = 1

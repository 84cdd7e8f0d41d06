"""Taking kernels off the GPU: preemption (drain, save, reset, or only some blocks), and contexts that take turns on
it.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import (
    clients,
    contexts,
    flight_of,
    grids,
    kernels,
    launches,
    problem,
    queue,
    timers,
)
from gpusched_env.devices.compiled.blocks import evict, stop_blocks, undo_jump
from gpusched_env.devices.compiled.context import (
    activate,
    context_of,
    deactivate,
    end_grid,
    enqueue,
    leave_channel,
    remove_grid,
    settle_context,
)
from gpusched_env.devices.compiled.finishing import kernel_preempted
from gpusched_env.devices.compiled.layout import NONE, NOT_QUEUED, PREEMPTION, RETURNS, STREAMS
from gpusched_env.devices.compiled.starting import recall
from gpusched_env.devices.compiled.tiles import start_over
from gpusched_env.devices.compiled.timing import (
    SLICER_TIMER,
    arm_launch,
    arm_preemption,
    arm_slicer,
    launch_timer,
    stop,
)
from gpusched_env.devices.rules.world import log_turn
from gpusched_env.hardware.clock import to_ps
from gpusched_env.hardware.timing import save_us
from gpusched_env.scheduling.commands import MODES

DRAIN = MODES.index("drain")
SAVE = MODES.index("save")
RESET = MODES.index("reset")


@called
def begin_preemption(w, slot):
    """A preemption of a kernel takes effect."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    if w.external == 1:
        recall(w, slot)
        return
    if flight.mode == DRAIN:
        arm_preemption(w, slot, w.now_ps + problem(w).drain_ack_ps, PREEMPTION)
        return
    context = context_of(w, launch.tenant)
    settle_context(w, context)
    if flight.save_sms > 0:
        stopped = stop_blocks(w, context, flight.grid, flight.save_first, flight.save_sms)
    else:
        leave_queue(w, context, slot)
        stopped = stop_blocks(w, context, flight.grid, 0, problem(w).sms)
    settle_context(w, context)
    if stopped == 0 and flight.save_sms > 0:
        end_partial_save(w, launch)
        return
    flight.dead_ps = problem(w).reset_ps
    if flight.mode == SAVE:
        kernel = kernels(w, launch.identity)
        flight.dead_ps = to_ps(save_us(stopped * kernel.state_bytes, problem(w).nominal_bytes_per_us))
    arm_preemption(w, slot, w.now_ps + flight.dead_ps, PREEMPTION)


@called
def end_preemption(w, slot):
    """The dispatcher has acknowledged a drain; a kernel's stopped blocks are saved or killed."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    if flight.mode == DRAIN:
        withdraw(w, slot)
    elif flight.save_sms > 0:
        put_back(w, slot)
        end_partial_save(w, launch)
    else:
        # What an earlier save left to be read back comes on top.
        flight.restore_ps = flight.restore_ps + flight.dead_ps if flight.mode == SAVE else 0
        take_off(w, slot, flight.mode == SAVE)


@inlined
def end_partial_save(w, launch):
    """Some blocks of a kernel are saved; it may be preempted again."""
    flight_of(w, launch).preempting = 0
    w.awake = 1


@called
def withdraw(w, slot):
    """Hand out no further blocks of a kernel."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    context = context_of(w, launch.tenant)
    settle_context(w, context)
    leave_queue(w, context, slot)
    if grids(context, flight.grid).resident == 0:
        end_grid(w, context, grids(context, flight.grid))
    settle_context(w, context)


@called
def take_off(w, slot, keeps_progress):
    """Remove a kernel's stopped blocks, which are all; it becomes pending with what is left of it."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    context = context_of(w, launch.tenant)
    grid = grids(context, flight.grid)
    settle_context(w, context)
    evict(w, context, flight.grid)
    if grid.tiled == 1 and not keeps_progress:
        start_over(w, slot)
    flight.blocks = grid.waiting if keeps_progress else NONE
    flight.saved = grid.saved if keeps_progress else 0
    flight.saved_left = grid.saved_left if keeps_progress else 1.0
    remove_grid(w, context, grid)
    kernel_preempted(w, slot, keeps_progress)
    settle_context(w, context)


@called
def put_back(w, slot):
    """Take a kernel's stopped blocks off the SMs and the kernel off the queue, until they are read back.

    That takes as long as saving them, after those of earlier saves.
    """
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    context = context_of(w, launch.tenant)
    settle_context(w, context)
    evict(w, context, flight.grid)
    suspend(context, flight.grid, RETURNS)
    flight.preemptions += 1
    arm_launch(w, slot, max(w.now_ps, readback_ps(w, slot)) + flight.dead_ps, STREAMS)
    settle_context(w, context)


@inlined
def readback_ps(w, slot):
    """When the blocks that were saved earlier are read back; 0: none are being."""
    timer = timers(w, launch_timer(w, slot))
    return timer.at_ps if timer.place != NONE else 0


@called
def requeue(w, slot):
    """The saved blocks of a kernel are read back: it hands out blocks again."""
    launch = launches(w, slot)
    context = context_of(w, launch.tenant)
    # A wave that was jumped over and ends now is followed by the next one of its grid: it ends before this comes back.
    settle_context(w, context)
    enqueue(context, flight_of(w, launch).grid)
    settle_context(w, context)


@called
def leave_queue(w, context, slot):
    """Queue a grid no more; what is left of reading saved blocks back is done when it is launched again."""
    launch = launches(w, slot)
    flight = flight_of(w, launch)
    suspend(context, flight.grid, NOT_QUEUED)
    leave_channel(w, context, slot)
    flight.restore_ps = max(0, readback_ps(w, slot) - w.now_ps)
    stop(w, launch_timer(w, slot))


@called
def suspend(context, number, queued):
    """Take a grid off the queue, if it is there, with waves that have not begun given back to it."""
    grids(context, number).queued = queued
    kept = 0
    for position in range(context.queued):
        if queue(context, position).value != number:
            queue(context, kept).value = queue(context, position).value
            kept += 1
    if kept < context.queued:
        context.queued = kept
        undo_jump(context)
        context.changed = 1


@called
def next_context(w, current):
    """The next context after ``current`` that has work; :data:`NONE`: none."""
    count = problem(w).tenants
    for turn in range(1, count):
        tenant = (current + turn) % count
        if clients(w, tenant).kernels_launched > 0:
            return tenant
    return NONE


@called
def take_turns(w):
    """The slicer looks whether the GPU should change hands."""
    other = next_context(w, w.slicer_context)
    w.slicer_lonely = other == NONE
    if other != NONE:
        if clients(w, w.slicer_context).kernels_launched == 0 or w.now_ps >= w.slice_end_ps:
            deactivate(w, contexts(w, w.slicer_context))
            w.slicer_switching = 1
            log_turn(w, NONE)
            w.slicer_context = other
            arm_slicer(w, w.now_ps + problem(w).switch_ps)
            return
        arm_slicer(w, w.slice_end_ps)
    w.slicer_asleep = 1


@called
def slicer_due(w):
    """A switch is over, or: a kernel was launched or has left, or a slice has ended."""
    if w.slicer_switching == 1:
        w.slicer_switching = 0
        log_turn(w, w.slicer_context)
        activate(w, contexts(w, w.slicer_context))
        w.slice_end_ps = w.now_ps + problem(w).slice_ps
        take_turns(w)
        return
    w.slicer_asleep = 0
    stop(w, SLICER_TIMER)
    while w.slicer_lonely == 1 and w.slice_end_ps <= w.now_ps:
        w.slice_end_ps += problem(w).slice_ps
    take_turns(w)

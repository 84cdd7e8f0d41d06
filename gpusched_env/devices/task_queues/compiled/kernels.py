"""Kernels with an end: the host copies the queue's end and launches; blocks go onto free places."""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.devices.task_queues.compiled.events import never, note
from gpusched_env.devices.task_queues.compiled.state import NEVER, UNSET
from gpusched_env.devices.task_queues.compiled.steps import begin_step
from gpusched_env.task_queues.form import STREAMS
from gpusched_env.task_queues.timeline import Event

COPY = int(Event.COPY)
LAUNCH = int(Event.LAUNCH)


@called
def kernel_of(state, number):
    """The row of a kernel."""
    return state.kernels[number % state.kernels.size]


@called
def arrival_ps(state):
    """When the next kernel reaches the GPU."""
    core = state.core[0]
    return kernel_of(state, core.arrived).arrives_ps if core.arrived < core.kernels else NEVER


@called
def arrive(state):
    """A kernel reaches the GPU."""
    core = state.core[0]
    kernel = kernel_of(state, core.arrived)
    note(state, LAUNCH, -1, core.arrived, kernel.limit - kernel.next)
    core.arrived += 1
    dispatch(state)


@called
def read_end(state):
    """A copy of the queue's end is taken; whether the form is over."""
    core, rules, totals = state.core[0], state.rules[0], state.totals[0]
    core.read_ps = NEVER
    running = core.kernels - core.ended
    if core.leaving:
        return running == 0
    totals.copies += 1
    known_ps = core.now_ps + rules.sync_ps
    other = state.counters[1 - core.active]
    queue = state.counters[core.active]
    if queue.end == queue.start and rules.split and other.end > other.start:
        core.active = 1 - core.active
        core.threshold += rules.delta
        queue = other
    note(state, COPY, -1, queue.end, core.active)
    if queue.end > queue.start:
        core.empty = 0
        _launch(state, queue, known_ps + rules.host_launch_ps)
        return False
    if rules.synchronous:
        return True
    core.empty += 1
    if core.empty < rules.polls:
        core.read_ps = known_ps + rules.copy_ps
        return False
    return running == 0


@called
def _launch(state, queue, launched_ps):
    """What is new in a queue becomes a kernel."""
    core, rules = state.core[0], state.rules[0]
    kernel = kernel_of(state, core.kernels)
    kernel.queue = core.active
    kernel.next = queue.start
    kernel.limit = queue.end
    kernel.threshold = core.threshold
    kernel.arrives_ps = launched_ps + rules.launch_ps
    kernel.running = 0
    core.kernels += 1
    queue.start = queue.end
    state.totals[0].kernels += 1
    if not rules.synchronous:
        core.read_ps = launched_ps + rules.copy_ps


@called
def _over(kernel):
    return kernel.next == kernel.limit and kernel.running == 0


@called
def dispatch(state):
    """Blocks of kernels in order, onto free places; a stream's kernel waits for the one before it."""
    core, rules = state.core[0], state.rules[0]
    while core.free > 0 and core.head < core.arrived:
        if core.head >= STREAMS and not _over(kernel_of(state, core.head - STREAMS)):
            return
        kernel = kernel_of(state, core.head)
        core.free -= 1
        number = state.free[core.free]
        worker = state.workers[number]
        worker.queue = kernel.queue
        worker.threshold = kernel.threshold
        worker.kernel = core.head
        worker.index = kernel.next
        worker.limit = min(kernel.next + rules.fetch, kernel.limit)
        kernel.next = worker.limit
        kernel.running += 1
        if kernel.next == kernel.limit:
            core.head += 1
        begin_step(state, number, worker.limit - worker.index)


@called
def block_over(state, number):
    """A block has ended; whether the form is over."""
    core, rules, worker = state.core[0], state.rules[0], state.workers[number]
    worker.next = UNSET
    never(state, number)
    kernel = kernel_of(state, worker.kernel)
    kernel.running -= 1
    state.free[core.free] = number
    core.free += 1
    if _over(kernel):
        core.ended += 1
        if rules.synchronous:
            core.read_ps = core.now_ps + rules.sync_ps + rules.copy_ps
        elif core.ended == core.kernels and core.read_ps == NEVER:
            return True
    dispatch(state)
    return False

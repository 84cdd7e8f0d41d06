"""Kernels with an end: the host copies the queue's end and launches; blocks go onto free places."""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.games.task_queues.device import Event
from gpusched_env.games.task_queues.devices.compiled.events import never, note
from gpusched_env.games.task_queues.devices.compiled.state import NEVER, UNSET
from gpusched_env.games.task_queues.devices.compiled.steps import begin_step
from gpusched_env.games.task_queues.problem import STREAMS

COPY = int(Event.COPY)
LAUNCH = int(Event.LAUNCH)


@called
def kernel_of(state, gpu, number):
    """The row of a kernel."""
    places = state.kernels.size // state.hosts.size
    return state.kernels[gpu * places + number % places]


@called
def _arrival_ps(state, gpu):
    """When the next kernel reaches a GPU."""
    host = state.hosts[gpu]
    return kernel_of(state, gpu, host.arrived).arrives_ps if host.arrived < host.kernels else NEVER


@called
def plan_hosts(state):
    """When a host does something next, and which; of several the first."""
    core = state.core[0]
    core.host_ps = NEVER
    for gpu in range(state.hosts.size):
        when_ps = min(state.hosts[gpu].read_ps, _arrival_ps(state, gpu))
        if when_ps < core.host_ps:
            core.host_ps = when_ps
            core.host = gpu


@called
def schedule_copies(state, at_ps):
    """All hosts take their next copy at a time."""
    for gpu in range(state.hosts.size):
        state.hosts[gpu].read_ps = at_ps
    plan_hosts(state)


@called
def act_of_host(state):
    """A host does something; whether the form is over."""
    core, gpu = state.core[0], state.core[0].host
    if _arrival_ps(state, gpu) == core.now_ps:
        _arrive(state, gpu)
        over = False
    else:
        over = _read_end(state, gpu)
    plan_hosts(state)
    return over


@called
def _all_rest(state):
    """Whether no host waits for anything, and nothing is on the way."""
    for gpu in range(state.hosts.size):
        host = state.hosts[gpu]
        if host.read_ps != NEVER or host.kernels != host.ended:
            return False
    return state.totals[0].flying == 0


@called
def all_arrived(state):
    """A kernel has ended, or nothing is on the way any more; whether the form is over."""
    core, rules = state.core[0], state.rules[0]
    if not _all_rest(state):
        return False
    if rules.synchronous:
        schedule_copies(state, core.now_ps + rules.sync_ps + rules.copy_ps)
        return False
    return core.live == 0


@called
def _arrive(state, gpu):
    """A kernel reaches a GPU."""
    host = state.hosts[gpu]
    kernel = kernel_of(state, gpu, host.arrived)
    note(state, LAUNCH, -1 - gpu, host.arrived, kernel.limit - kernel.next)
    host.arrived += 1
    dispatch(state, gpu)


@called
def _read_end(state, gpu):
    """A copy of the queue's end is taken; whether the form is over."""
    core, host, rules, totals = state.core[0], state.hosts[gpu], state.rules[0], state.totals[0]
    host.read_ps = NEVER
    if core.leaving:
        return _all_rest(state)
    totals.copies += 1
    known_ps = core.now_ps + rules.sync_ps
    own = 2 * gpu
    other = state.counters[own + 1 - host.active]
    queue = state.counters[own + host.active]
    if queue.end == queue.start and rules.split and other.end > other.start:
        host.active = 1 - host.active
        host.threshold += rules.delta
        queue = other
    note(state, COPY, -1 - gpu, queue.end, own + host.active)
    if queue.end > queue.start:
        host.empty = 0
        _launch(state, gpu, queue, known_ps + rules.host_launch_ps)
        return False
    if rules.synchronous:
        return _all_rest(state)
    repairs = host.empty >= rules.polls // 2
    # A repair of the end runs behind all blocks that wait for a place.
    host.empty += not (repairs and host.head < host.kernels)
    host.read_ps = known_ps + rules.copy_ps + repairs * rules.repair_ps
    if totals.flying > 0:
        return False
    for one in range(state.hosts.size):
        if state.hosts[one].empty < rules.polls:
            return False
    # They give up.
    for one in range(state.hosts.size):
        state.hosts[one].read_ps = NEVER
    return _all_rest(state)


@called
def _launch(state, gpu, queue, launched_ps):
    """Make a kernel of what is new in a queue."""
    host, rules = state.hosts[gpu], state.rules[0]
    kernel = kernel_of(state, gpu, host.kernels)
    kernel.queue = 2 * gpu + host.active
    kernel.next = queue.start
    kernel.limit = queue.end
    kernel.threshold = host.threshold
    kernel.arrives_ps = launched_ps + rules.launch_ps
    kernel.running = 0
    host.kernels += 1
    queue.start = queue.end
    state.totals[0].kernels += 1
    if not rules.synchronous:
        host.read_ps = launched_ps + rules.copy_ps


@called
def _over(kernel):
    return kernel.next == kernel.limit and kernel.running == 0


@called
def dispatch(state, gpu):
    """Blocks of kernels in order, onto free places; a stream's kernel waits for the one before it."""
    host, rules = state.hosts[gpu], state.rules[0]
    while host.free > 0 and host.head < host.arrived:
        if host.head >= STREAMS and not _over(kernel_of(state, gpu, host.head - STREAMS)):
            return
        kernel = kernel_of(state, gpu, host.head)
        host.free -= 1
        number = state.owner[gpu * rules.workers + host.free]
        worker = state.workers[number]
        worker.queue = kernel.queue
        worker.threshold = kernel.threshold
        worker.kernel = host.head
        worker.index = kernel.next
        worker.limit = min(kernel.next + rules.fetch, kernel.limit)
        kernel.next = worker.limit
        kernel.running += 1
        if kernel.next == kernel.limit:
            host.head += 1
        begin_step(state, number, worker.limit - worker.index)


@called
def block_over(state, number):
    """A block has ended; whether the form is over."""
    rules, worker = state.rules[0], state.workers[number]
    gpu = worker.gpu
    host = state.hosts[gpu]
    worker.next = UNSET
    never(state, number)
    kernel = kernel_of(state, gpu, worker.kernel)
    kernel.running -= 1
    state.owner[gpu * rules.workers + host.free] = number
    host.free += 1
    if _over(kernel):
        host.ended += 1
        if all_arrived(state):
            return True
    dispatch(state, gpu)
    return False

"""Steps of workers: rounds of slots, what tasks do in them, and pushes."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.games.task_queues.applications import COLOURING, look, offer, pop, settle, vertex_of, visit, warn
from gpusched_env.games.task_queues.devices.compiled.events import WORK, note, set_due
from gpusched_env.games.task_queues.devices.compiled.sending import put, send
from gpusched_env.games.task_queues.devices.compiled.state import ROUND, WRITING
from gpusched_env.games.task_queues.hardware.laws import (
    SLOT_EDGES,
    edges_in_round,
    moved_ps,
    rounds_of,
    served,
    slots_of,
)
from gpusched_env.games.task_queues.timeline import Event

STEP = int(Event.STEP)
RESERVE = int(Event.RESERVE)


@called
def begin_step(state, number, count):
    """A worker takes up ``count`` tasks of its segment."""
    rules, totals, worker, data = state.rules[0], state.totals[0], state.workers[number], state.data
    note(state, STEP, number, worker.index, count)
    totals.steps += 1
    totals.tasks += count
    edges = 0
    for i in range(count):
        task = state.items[worker.queue, worker.index + i]
        vertex = vertex_of(task)
        depth, share = pop(rules.kind, data, rules.damping, task)
        state.held[number, i] = depth + share
        state.edges_before[number, i] = edges
        edges += max(1, data.first[vertex + 1] - data.first[vertex])
    state.edges_before[number, count] = edges
    worker.count = count
    worker.edges = edges
    worker.round = 0
    worker.task = 0
    worker.slot = 0
    if rules.block:
        worker.rounds = rounds_of(slots_of(edges), rules.warps)
    begin_round(state, number, state.core[0].now_ps)


@called
def begin_round(state, number, ready_ps):
    """Colourings look at neighbours now; others act at the round's end."""
    rules, core, totals, worker = state.rules[0], state.core[0], state.totals[0], state.workers[number]
    host = state.hosts[worker.gpu]
    if rules.block:
        edges = edges_in_round(worker.edges, worker.rounds, worker.round)
        opens = worker.round == 0
    else:
        edges = min(SLOT_EDGES, _edges_of(state, number, worker.task) - worker.slot * SLOT_EDGES)
        opens = worker.slot == 0
    totals.edges += edges
    totals.rounds += 1
    if rules.kind == COLOURING:
        if rules.block:
            for i in range(worker.count):
                if _ends_here(state, number, worker, i):
                    state.held[number, i] = look(state.data, state.items[worker.queue, worker.index + i])
        elif _is_last_slot(state, number, worker):
            task = state.items[worker.queue, worker.index + worker.task]
            state.held[number, worker.task] = look(state.data, task)
    host.memory_free_ps = served(host.memory_free_ps, core.now_ps, moved_ps(edges, host.ps_per_edge))
    end_ps = ready_ps + rules.slot_ps
    if opens:
        end_ps += rules.opening_ps
    worker.next = ROUND
    set_due(state, number, max(end_ps, host.memory_free_ps), WORK)


@called
def _edges_of(state, number, i):
    return state.edges_before[number, i + 1] - state.edges_before[number, i]


@called
def _ends_here(state, number, worker, i):
    """Whether the last slot of a block's task is in the present round."""
    return (state.edges_before[number, i + 1] - 1) // SLOT_EDGES % worker.rounds == worker.round


@called
def _is_last_slot(state, number, worker):
    return (worker.slot + 1) * SLOT_EDGES >= _edges_of(state, number, worker.task)


@called
def act(state, number):
    """The end of a round: tasks write. Whether the queues had room for what they push."""
    rules, worker = state.rules[0], state.workers[number]
    state.counters[2 * worker.gpu].new = 0
    state.counters[2 * worker.gpu + 1].new = 0
    if rules.kind == COLOURING:
        if rules.block:
            for i in range(worker.count):
                if _ends_here(state, number, worker, i):
                    _colour(state, number, i)
        elif _is_last_slot(state, number, worker):
            _colour(state, number, worker.task)
    elif rules.block:
        slots = slots_of(worker.edges)
        for slot in range(worker.round, slots, worker.rounds):
            _walk(state, number, slot * SLOT_EDGES, min((slot + 1) * SLOT_EDGES, worker.edges))
    else:
        first = state.edges_before[number, worker.task] + worker.slot * SLOT_EDGES
        _visit(state, number, worker.task, first, min(first + SLOT_EDGES, state.edges_before[number, worker.task + 1]))
    return _reserve(state, number)


@called
def _walk(state, number, low, high):
    """Edges of a block's slot, counted over the tasks of its step."""
    before = state.edges_before[number]
    left, right = 0, state.workers[number].count - 1
    while left < right:
        middle = (left + right + 1) // 2
        if before[middle] <= low:
            left = middle
        else:
            right = middle - 1
    while low < high:
        end = min(high, before[left + 1])
        _visit(state, number, left, low, end)
        low = end
        left += 1


@inlined
def _visit(state, number, i, low, high):
    """Edges of one task, counted over the tasks of the step."""
    rules, worker, data = state.rules[0], state.workers[number], state.data
    share = state.held[number, i]
    depth = int(share)
    vertex = vertex_of(state.items[worker.queue, worker.index + i])
    first = data.first[vertex] - state.edges_before[number, i]
    queue = worker.queue
    if worker.threshold > 0 and depth + 1 >= worker.threshold:
        queue ^= 1
    if rules.gpus > 1:
        _visit_apart(state, number, queue, depth, share, first + low, min(first + high, data.first[vertex + 1]))
        return
    kind, epsilon, neighbour, items = rules.kind, rules.epsilon, data.neighbour, state.items
    counters = state.counters[queue]
    at = counters.alloc + counters.new
    for edge in range(first + low, min(first + high, data.first[vertex + 1])):
        task = visit(kind, data, epsilon, depth, share, neighbour[edge])
        if task != 0:
            if at < items.shape[1]:
                items[queue, at] = task
            at += 1
    counters.new = at - counters.alloc


@called
def _visit_apart(state, number, queue, depth, share, low, high):
    """Edges of one task, some of them to vertices of other GPUs."""
    rules, data, gpu = state.rules[0], state.data, state.workers[number].gpu
    for edge in range(low, high):
        other = data.neighbour[edge]
        owner = data.home[other]
        if owner == gpu:
            task = visit(rules.kind, data, rules.epsilon, depth, share, other)
            if task != 0:
                _append(state, queue, task)
        else:
            value = offer(rules.kind, data, rules.epsilon, gpu, depth, share, other)
            if value >= 0.0:
                put(state, gpu * rules.gpus + owner, other, value)


@called
def _colour(state, number, i):
    worker, data = state.workers[number], state.data
    task, looked = state.items[worker.queue, worker.index + i], int(state.held[number, i])
    pushed = settle(data, task, looked)
    if pushed != 0:
        _append(state, 0, pushed)
    if task < 0 and looked == 0:
        vertex = vertex_of(task)
        for edge in range(data.first[vertex], data.first[vertex + 1]):
            pushed = warn(data, vertex, data.neighbour[edge])
            if pushed != 0:
                _append(state, 0, pushed)


@called
def _append(state, queue, task):
    """A task of the present round; those for which there is no room are counted only."""
    counters = state.counters[queue]
    at = counters.alloc + counters.new
    if at < state.items.shape[1]:
        state.items[queue, at] = task
    counters.new += 1


@called
def _reserve(state, number):
    """What the round has found goes into the queues, and to other GPUs; whether it fits."""
    core, rules, worker = state.core[0], state.rules[0], state.workers[number]
    through_ps, tasks = core.now_ps, 0
    own = 2 * worker.gpu
    for queue in range(own, own + 2):
        counters = state.counters[queue]
        first, new = counters.alloc, counters.new
        if queue == own:
            worker.first_0 = first
            worker.new_0 = new
        else:
            worker.first_1 = first
            worker.new_1 = new
        if new == 0:
            continue
        if first + new > state.items.shape[1]:
            core.failed_queue = queue
            core.failed_worker = number
            return False
        counters.alloc += new
        counters.alloc_free_ps = served(counters.alloc_free_ps, core.now_ps, rules.atomic_ps)
        through_ps = max(through_ps, counters.alloc_free_ps)
        tasks += new
        note(state, RESERVE, number, first, new)
    state.totals[0].pushed += tasks
    if rules.gpus > 1:
        through_ps, collected = send(state, number, through_ps)
        if core.failed_link >= 0:
            return False
        tasks += collected
    if tasks > 0:
        through_ps += rules.push_ps + slots_of(tasks) * rules.write_ps
    if through_ps > core.now_ps:
        worker.next = WRITING
        set_due(state, number, through_ps, WORK)
    return True


@called
def next_round(state, number, ready_ps):
    """Whether the step has another round, which then begins."""
    worker = state.workers[number]
    if state.rules[0].block:
        worker.round += 1
        more = worker.round < worker.rounds
    else:
        if _is_last_slot(state, number, worker):
            worker.task += 1
            worker.slot = 0
        else:
            worker.slot += 1
        more = worker.task < worker.count
    if more:
        begin_round(state, number, ready_ps)
    else:
        worker.index += worker.count
        state.totals[0].worked_ps = state.core[0].now_ps
    return more

"""Steps of workers: rounds of slots, what tasks do in them, pushes, and what is sent to other GPUs: at once, or into
queues from which a communication kernel sends.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.games.task_queues.applications import (
    COLOURING,
    begin_task,
    inspect_neighbours,
    requeue_conflict,
    value_to_send,
    vertex_of,
    visit,
    write_colour,
)
from gpusched_env.games.task_queues.device import Event
from gpusched_env.games.task_queues.devices.compiled.events import WORK, note, set_due
from gpusched_env.games.task_queues.devices.compiled.state import NEVER, ROUND, WRITING
from gpusched_env.games.task_queues.hardware.links import looked_at, sent_at
from gpusched_env.games.task_queues.hardware.machine import (
    SLOT_EDGES,
    crowded,
    edges_in_round,
    moved_ps,
    rounds_of,
    served,
    slots_of,
)

SEND = int(Event.SEND)


@called
def message_of(state, link, number):
    """The row of a message."""
    places = state.rules[0].link_places
    return state.mail[link * places + number % places]


@called
def stage_task(state, link, vertex, value):
    """A task of the present round, for another GPU; those for which there is no room are counted only."""
    row, places = state.links[link], state.rules[0].link_places
    at = row.next + row.new
    if at - row.first < places:
        mail = state.mail[link * places + at % places]
        mail.vertex = vertex
        mail.value = value
    row.new += 1


@called
def send(state, number, through_ps):
    """What the round has put goes over the links: when the answers are there, at ``through_ps`` or later, and how many
    tasks went into aggregation queues."""
    core, rules, worker = state.core[0], state.rules[0], state.workers[number]
    collected = 0
    worker.improved = 0
    for owner in range(rules.gpus):
        link = worker.gpu * rules.gpus + owner
        row = state.links[link]
        new = row.new
        if new == 0:
            continue
        row.new = 0
        note(state, SEND, number, owner, new)
        if row.next + new - row.first > rules.link_places:
            core.failed_link = link
            break
        state.totals[0].sent += new
        state.totals[0].flying += new
        if rules.batch == 0:
            row.next += new
            depart(state, link, new, number)
            through_ps = max(through_ps, row.free_ps + rules.answer_ps)
        else:
            if row.waiting == 0:
                row.first_look_ps = looked_at(rules.look_ps, core.now_ps)
            row.next += new
            row.waiting += new
            plan_batch(state, link, core.now_ps)
            collected += new
    plan_links(state)
    return through_ps, collected


@called
def depart(state, link, count, number):
    """The next ``count`` tasks go over a link, behind those before them."""
    core, rules, row = state.core[0], state.rules[0], state.links[link]
    row.free_ps = served(row.free_ps, core.now_ps, moved_ps(count, rules.task_ps))
    message = message_of(state, link, row.departed)
    message.lands_ps = row.free_ps + rules.lands_ps
    message.announced_ps = row.free_ps + rules.announced_ps
    message.first = row.next - row.waiting - count
    message.count = count
    message.worker = number
    row.departed += 1
    state.totals[0].sendings += 1


@called
def plan_batch(state, link, now_ps):
    """When the communication kernel sends from an aggregation queue next."""
    rules, row = state.rules[0], state.links[link]
    row.send_ps = NEVER
    if row.waiting > 0:
        row.send_ps = sent_at(rules.look_ps, row.first_look_ps, now_ps, row.waiting, rules.batch, rules.wait)


@called
def next_of_link(state, link):
    """The time at which something happens on a link next."""
    row = state.links[link]
    when_ps = row.send_ps
    if row.landed < row.departed:
        when_ps = min(when_ps, message_of(state, link, row.landed).lands_ps)
    if row.announced < row.landed:
        when_ps = min(when_ps, message_of(state, link, row.announced).announced_ps)
    return when_ps


@called
def plan_links(state):
    """When something happens on a link next, and on which; of several the first."""
    core = state.core[0]
    core.link_ps = NEVER
    for link in range(state.links.size):
        when_ps = next_of_link(state, link)
        if when_ps < core.link_ps:
            core.link_ps = when_ps
            core.link = link


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
        depth, share = begin_task(rules.kind, data, rules.damping, task)
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
                    state.held[number, i] = inspect_neighbours(state.data, state.items[worker.queue, worker.index + i])
        elif _is_last_slot(state, number, worker):
            task = state.items[worker.queue, worker.index + worker.task]
            state.held[number, worker.task] = inspect_neighbours(state.data, task)
    host.memory_free_ps = served(host.memory_free_ps, core.now_ps, moved_ps(edges, host.ps_per_edge))
    lone_ps = rules.slot_ps + rules.opening_ps * opens
    worker.crowd = edges
    end_ps = ready_ps + crowded(lone_ps, rules.crowding, edges, rules.warps, number, core.now_ps)
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
def end_round(state, number):
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
            value = value_to_send(rules.kind, data, rules.epsilon, gpu, depth, share, other)
            if value >= 0.0:
                stage_task(state, gpu * rules.gpus + owner, other, value)


@called
def _colour(state, number, i):
    worker, data = state.workers[number], state.data
    task, looked = state.items[worker.queue, worker.index + i], int(state.held[number, i])
    pushed = write_colour(data, task, looked)
    if pushed != 0:
        _append(state, 0, pushed)
    if task < 0 and looked == 0:
        vertex = vertex_of(task)
        for edge in range(data.first[vertex], data.first[vertex + 1]):
            pushed = requeue_conflict(data, vertex, data.neighbour[edge])
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
    """Put what the round has found into the queues, and send it to other GPUs; whether it fits."""
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
        lone_ps = rules.push_ps + slots_of(tasks) * rules.write_ps
        through_ps += crowded(lone_ps, rules.crowding, worker.crowd, rules.warps, number, core.now_ps)
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

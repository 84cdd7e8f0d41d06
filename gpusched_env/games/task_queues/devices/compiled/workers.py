"""Workers of a persistent kernel: segments, looks at the queue, polls, votes, and what wakes them.

Tasks of other GPUs land on links and are announced.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.games.task_queues.applications import receive
from gpusched_env.games.task_queues.device import Event
from gpusched_env.games.task_queues.devices.compiled.events import LOOK, never, note, set_due
from gpusched_env.games.task_queues.devices.compiled.state import LOOKING, PARKED, UNSET
from gpusched_env.games.task_queues.devices.compiled.steps import begin_step, depart, message_of, plan_batch, plan_links
from gpusched_env.games.task_queues.hardware.links import sent_of
from gpusched_env.games.task_queues.hardware.machine import moved_ps, polled_at, published, readable, served

GRAB = int(Event.GRAB)
PUBLISH = int(Event.PUBLISH)
IDLE = int(Event.IDLE)
VOTE = int(Event.VOTE)
LEAVE = int(Event.LEAVE)


@called
def grab_segment(state, number, ready_ps):
    """A worker takes the next segment, whether it is written or not."""
    rules, worker = state.rules[0], state.workers[number]
    counters = state.counters[worker.queue]
    counters.start_free_ps = served(counters.start_free_ps, ready_ps, rules.atomic_ps)
    worker.index = counters.start
    worker.limit = counters.start + rules.fetch
    segment = (counters.start - state.hosts[worker.gpu].base) // rules.fetch
    state.owner[worker.gpu * rules.segments + segment] = number
    counters.start += rules.fetch
    note(state, GRAB, number, worker.index, 0)
    worker.next = LOOKING
    set_due(state, number, counters.start_free_ps + rules.grab_ps, LOOK)


@called
def step_over(state, number, ready_ps):
    """A worker of a persistent kernel has done what was there of its segment."""
    worker = state.workers[number]
    if worker.index == worker.limit:
        grab_segment(state, number, ready_ps)
    else:
        worker.next = LOOKING
        set_due(state, number, ready_ps + state.rules[0].refresh_ps, LOOK)


@called
def look_at_queue(state, number):
    """A worker looks at its GPU's queue. Whether it was the last one of all and has left, with nothing on the way."""
    core, rules, totals, worker = state.core[0], state.rules[0], state.totals[0], state.workers[number]
    was_idle = worker.next == PARKED
    if was_idle:
        # Polls that nobody noticed.
        worker.fruitless += (core.now_ps - worker.since_ps) // rules.poll_ps - 1
    count = 0
    if not core.leaving:
        count = readable(worker.index, worker.limit, state.counters[worker.queue].end)
    if count > 0:
        totals.idle -= was_idle
        begin_step(state, number, count)
        return False
    if core.leaving or _vote_holds(state):
        totals.idle -= was_idle
        note(state, LEAVE, number, 0, 0)
        worker.next = UNSET
        never(state, number)
        core.live -= 1
        return core.live == 0 and totals.flying == 0
    if not was_idle:
        totals.idle += 1
        note(state, IDLE, number, worker.index, 0)
    worker.fruitless += 1
    worker.next = PARKED
    worker.since_ps = core.now_ps
    if worker.fruitless == rules.polls:
        totals.voted += 1
        note(state, VOTE, number, totals.voted, 0)
    if _vote_holds(state):
        set_due(state, number, core.now_ps + rules.poll_ps, LOOK)
        if worker.fruitless == rules.polls:
            _all_have_voted(state, number)
    elif worker.fruitless < rules.polls:
        set_due(state, number, core.now_ps + (rules.polls - worker.fruitless) * rules.poll_ps, LOOK)
    else:
        never(state, number)
    return False


@called
def _vote_holds(state):
    """Whether all have voted, and nothing is on the way to another GPU."""
    totals = state.totals[0]
    return totals.voted == state.rules[0].voters and totals.flying == 0


@called
def vote_anew(state):
    """Nothing is on the way any more: if all have voted, everybody who polls notices at the next poll."""
    if state.rules[0].persistent and _vote_holds(state):
        for number in range(state.workers.size):
            if state.workers[number].next == PARKED:
                _wake(state, number, state.core[0].now_ps)


@called
def _all_have_voted(state, last):
    """Everybody who polls notices at the next poll: those behind the last voter maybe at the same instant."""
    now_ps = state.core[0].now_ps
    for number in range(state.workers.size):
        if number != last and state.workers[number].next == PARKED:
            _wake(state, number, now_ps if number > last else now_ps + 1)


@called
def _wake(state, number, at_ps):
    """A worker that polls looks at ``at_ps`` or at its next poll after that, if not before."""
    worker = state.workers[number]
    when_ps = polled_at(worker.since_ps, state.rules[0].poll_ps, at_ps)
    if 4 * when_ps + LOOK < state.due[state.core[0].leaves + number]:
        set_due(state, number, when_ps, LOOK)


@called
def wake_all(state):
    """All that poll find out at their next poll that another form begins."""
    for number in range(state.workers.size):
        if state.workers[number].next == PARKED:
            _wake(state, number, state.core[0].now_ps + 1)


@called
def publish(state, number):
    """Write what a worker has reserved; gives when it can go on."""
    core, rules, worker = state.core[0], state.rules[0], state.workers[number]
    ready_ps = core.now_ps
    own = 2 * worker.gpu
    for queue in range(own, own + 2):
        first, new = (worker.first_0, worker.new_0) if queue == own else (worker.first_1, worker.new_1)
        if new == 0:
            continue
        counters = state.counters[queue]
        before = counters.end
        counters.top = max(counters.top, first + new)
        counters.count += new
        counters.end = published(before, counters.count, counters.top)
        counters.written_free_ps = served(counters.written_free_ps, core.now_ps, 3 * rules.atomic_ps)
        ready_ps = max(ready_ps, counters.written_free_ps)
        note(state, PUBLISH, number, counters.end, new)
        if rules.persistent and counters.end > before:
            wake_owners(state, worker.gpu, before, counters.end)
    if worker.improved > 0:
        ready_ps += rules.fence_ps
    return ready_ps


@inlined
def wake_owners(state, gpu, before, end):
    """Workers of a GPU that poll for what has become readable."""
    core, rules, base = state.core[0], state.rules[0], state.hosts[gpu].base
    last = min(end, state.counters[2 * gpu].start)
    for segment in range((before - base) // rules.fetch, (last - base + rules.fetch - 1) // rules.fetch):
        number = state.owner[gpu * rules.segments + segment]
        worker = state.workers[number]
        if worker.next == PARKED and worker.index < end and worker.index >= before:
            _wake(state, number, core.now_ps)


BATCH = int(Event.BATCH)
LAND = int(Event.LAND)
ANNOUNCE = int(Event.ANNOUNCE)


@called
def act_of_link(state):
    """The next thing that happens on a link. Whether nothing is on the way after an announcement; a queue without room
    for it is noted."""
    core = state.core[0]
    link, now_ps = core.link, core.now_ps
    row = state.links[link]
    nothing_flies = False
    if row.landed < row.departed and message_of(state, link, row.landed).lands_ps == now_ps:
        _land(state, link)
    elif row.announced < row.landed and message_of(state, link, row.announced).announced_ps == now_ps:
        nothing_flies = _announce(state, link)
    else:
        _look(state, link)
    plan_links(state)
    return nothing_flies


@called
def _land(state, link):
    """Tasks change what their owner knows."""
    core, rules, data, row = state.core[0], state.rules[0], state.data, state.links[link]
    origin, owner = link // rules.gpus, link % rules.gpus
    message = message_of(state, link, row.landed)
    row.landed += 1
    message.kept = 0
    for number in range(message.first, message.first + message.count):
        mail = message_of(state, link, number)
        task = receive(rules.kind, data, rules.epsilon, mail.value, mail.vertex)
        mail.vertex = task
        message.kept += task != 0
    if message.worker >= 0:
        state.workers[message.worker].improved += message.kept
    host = state.hosts[owner]
    host.memory_free_ps = served(host.memory_free_ps, core.now_ps, moved_ps(message.count, host.ps_per_edge))
    note(state, LAND, -1 - owner, origin, message.kept)


@called
def _announce(state, link):
    """Tasks that improve something can be read, at the back of the owner's queue."""
    core, rules, totals, row = state.core[0], state.rules[0], state.totals[0], state.links[link]
    origin, owner = link // rules.gpus, link % rules.gpus
    message = message_of(state, link, row.announced)
    host = state.hosts[owner]
    queue = 2 * owner + host.active
    counters = state.counters[queue]
    if message.kept > 0:
        # Their host does not give up before it has looked anew.
        host.empty = 0
        if counters.alloc + message.kept > rules.places:
            core.failed_queue = queue
            core.failed_worker = -1
            return False
        for number in range(message.first, message.first + message.count):
            task = message_of(state, link, number).vertex
            if task != 0:
                state.items[queue, counters.alloc] = task
                counters.alloc += 1
        before = counters.end
        counters.top = counters.alloc
        counters.count += message.kept
        counters.end = published(before, counters.count, counters.top)
        if rules.persistent and counters.end > before:
            wake_owners(state, owner, before, counters.end)
    row.announced += 1
    row.first += message.count
    totals.pushed += message.kept
    totals.flying -= message.count
    note(state, ANNOUNCE, -1 - owner, origin, counters.end)
    if totals.flying == 0:
        vote_anew(state)
    return totals.flying == 0


@called
def _look(state, link):
    """The communication kernel sends."""
    core, rules, row = state.core[0], state.rules[0], state.links[link]
    count = sent_of(row.waiting, rules.batch)
    row.waiting -= count
    depart(state, link, count, -1)
    row.first_look_ps = core.now_ps + rules.look_ps
    plan_batch(state, link, core.now_ps + 1)
    note(state, BATCH, -1 - link // rules.gpus, link % rules.gpus, count)

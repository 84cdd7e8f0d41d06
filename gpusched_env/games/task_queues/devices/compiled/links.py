"""What happens on links: tasks land, are announced, or are sent from an aggregation queue."""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.games.task_queues.applications import receive
from gpusched_env.games.task_queues.devices.compiled.events import note
from gpusched_env.games.task_queues.devices.compiled.sending import depart, message_of, plan, plan_links
from gpusched_env.games.task_queues.devices.compiled.workers import vote_anew, wake_owners
from gpusched_env.games.task_queues.hardware.laws import moved_ps, published, served
from gpusched_env.games.task_queues.hardware.links import sent_of
from gpusched_env.games.task_queues.timeline import Event

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
    plan(state, link, core.now_ps + 1)
    note(state, BATCH, -1 - link // rules.gpus, link % rules.gpus, count)

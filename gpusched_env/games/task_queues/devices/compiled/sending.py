"""What workers send to other GPUs: at once, or into queues from which a communication kernel sends."""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.games.task_queues.devices.compiled.events import note
from gpusched_env.games.task_queues.devices.compiled.state import NEVER
from gpusched_env.games.task_queues.hardware.laws import moved_ps, served
from gpusched_env.games.task_queues.hardware.links import looked_at, sent_at
from gpusched_env.games.task_queues.timeline import Event

SEND = int(Event.SEND)


@called
def message_of(state, link, number):
    """The row of a message."""
    places = state.rules[0].link_places
    return state.mail[link * places + number % places]


@called
def put(state, link, vertex, value):
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
            plan(state, link, core.now_ps)
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
def plan(state, link, now_ps):
    """When the communication kernel sends from an aggregation queue next."""
    rules, row = state.rules[0], state.links[link]
    row.send_ps = NEVER
    if row.waiting > 0:
        row.send_ps = sent_at(rules.look_ps, row.first_look_ps, now_ps, row.waiting, rules.batch, rules.wait)


@called
def next_of_link(state, link):
    """When something happens on a link next."""
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

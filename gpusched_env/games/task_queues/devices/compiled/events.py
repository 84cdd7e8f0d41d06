"""Who is next: a tree of the workers' events; and the log."""

from __future__ import annotations

from gpusched_env.compiling import called
from gpusched_env.games.task_queues.devices.compiled.state import NEVER

WORK = 1
LOOK = 2
"""Ranks among what happens at one instant, behind the host's 0."""


@called
def set_due(state, worker, when_ps, rank):
    """The next event of a worker."""
    due = state.due
    at = state.core[0].leaves + worker
    due[at] = 4 * when_ps + rank
    while at > 1:
        at >>= 1
        least = min(due[2 * at], due[2 * at + 1])
        if due[at] == least:
            break
        due[at] = least


@called
def first_worker(state):
    """The worker whose event is first, of equal ones the first."""
    due, at = state.due, 1
    leaves = state.core[0].leaves
    while at < leaves:
        at = 2 * at if due[2 * at] == due[at] else 2 * at + 1
    return at - leaves


@called
def never(state, worker):
    """A worker has no event."""
    set_due(state, worker, NEVER, 0)


@called
def note(state, event, worker, a, b):
    """Add a row to the log."""
    core = state.core[0]
    if core.logged < state.log.size:
        row = state.log[core.logged]
        row.time_ps = core.now_ps
        row.event = event
        row.worker = worker
        row.a = a
        row.b = b
        core.logged += 1

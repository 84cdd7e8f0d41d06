"""The run, from event to event."""

from __future__ import annotations

from typing import Final

from gpusched_env.compiling import native
from gpusched_env.games.task_queues.device import Event
from gpusched_env.games.task_queues.devices.compiled.events import WORK, first_worker, note, set_due
from gpusched_env.games.task_queues.devices.compiled.kernels import (
    act_of_host,
    all_arrived,
    block_over,
    schedule_copies,
)
from gpusched_env.games.task_queues.devices.compiled.state import COMING, LOOKING, NEVER, PARKED, ROUND
from gpusched_env.games.task_queues.devices.compiled.steps import end_round, next_round
from gpusched_env.games.task_queues.devices.compiled.workers import (
    act_of_link,
    grab_segment,
    look_at_queue,
    publish,
    step_over,
    wake_all,
)

PAUSED: Final = 0
OVER: Final = 1
STUCK: Final = 2
OVERFLOW: Final = 3
"""How a run comes to a stop: at the time that was asked for; the form's workers have left; a vote cannot complete; a
queue or a link has no room."""
ALL_LEFT = int(Event.OVER)


@native()
def launch(state, at_ps):
    """The form begins, at a time of the host."""
    core, rules = state.core[0], state.rules[0]
    if rules.persistent:
        state.totals[0].kernels += rules.gpus
        for number in range(state.workers.size):
            if number % rules.workers < core.live // rules.gpus:
                state.workers[number].next = COMING
                set_due(state, number, at_ps + rules.host_launch_ps + rules.launch_ps, WORK)
    else:
        schedule_copies(state, at_ps + rules.copy_ps)


@native()
def leave(state):
    """Workers are to leave at their next look at the queue."""
    state.core[0].leaving = 1
    if state.rules[0].persistent:
        wake_all(state)


@native()
def proceed(state, until_ps):
    """Run on up to a time; gives how it came to a stop."""
    core, rules = state.core[0], state.rules[0]
    while True:
        next_ps = min(min(core.host_ps, core.link_ps), state.due[1] >> 2)
        if next_ps >= NEVER:
            return STUCK
        if next_ps > until_ps:
            core.now_ps = until_ps
            return PAUSED
        core.now_ps = next_ps
        if core.host_ps == next_ps:
            over = act_of_host(state)
        elif core.link_ps == next_ps:
            nothing_flies = act_of_link(state)
            if core.failed_queue >= 0:
                return OVERFLOW
            over = nothing_flies and all_arrived(state)
        else:
            number = first_worker(state)
            worker = state.workers[number]
            over = False
            if worker.next == LOOKING or worker.next == PARKED:
                over = look_at_queue(state, number)
            elif worker.next == COMING:
                grab_segment(state, number, next_ps)
            else:
                ready_ps = next_ps
                if worker.next == ROUND:
                    if not end_round(state, number):
                        return OVERFLOW
                    if worker.next != ROUND:
                        continue
                else:
                    ready_ps = publish(state, number)
                if not next_round(state, number, ready_ps):
                    if rules.persistent:
                        step_over(state, number, ready_ps)
                    else:
                        over = block_over(state, number)
        if over:
            note(state, ALL_LEFT, -1, 0, 0)
            return OVER

"""Polls before a vote, chosen for a problem as the authors of Atos chose theirs: as few as will do."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from gpusched_env.errors import DeadlockError
from gpusched_env.games.task_queues.device import TaskDevice
from gpusched_env.games.task_queues.form import Form
from gpusched_env.games.task_queues.problem import TaskProblem

MANY: Final = 1 << 24
"""Polls after which no run is too early."""
MORE: Final = 1.01
"""Times as many where a run still is."""


def run_tuned(problem: TaskProblem, form: Form, device: TaskDevice) -> Form:
    """Run a problem on ``device`` with as few polls as will do; gives the form with their number.

    How often a worker polls in vain before the last task is done is seen in a run with :data:`MANY`: the last of them
    to vote has the fewest. Forms without votes run as they are.
    """
    if form.strategy != "persistent":
        device.begin(problem, form)
        device.advance()
        return form
    machine = problem.machine
    patient = replace(form, polls=MANY)
    device.begin(replace(problem, log=0), patient)
    device.advance()
    poll_ps = machine.poll_ps if form.worker == "block" else machine.warp_poll_ps
    idle_ps = device.time_ps - machine.sync_ps - int(device.totals["worked_ps"])
    polls = max(1, MANY - idle_ps // poll_ps + 2)
    while True:
        tuned = replace(form, polls=polls)
        device.begin(problem, tuned)
        try:
            device.advance()
        except DeadlockError as error:
            if "too early" not in str(error):
                raise
            polls = max(polls + 1, int(polls * MORE))
        else:
            return tuned

"""A run whose form may change on the way, schedulers that say how, polls that are as few as will do, and whether
what was computed is right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from gpusched_env.errors import DeadlockError, IllegalCommand, leaving_is_an_error
from gpusched_env.games.task_queues.applications import UNREACHED, Data
from gpusched_env.games.task_queues.device import FOREVER, TaskDevice, TaskKnowledge, TaskView, knowledge_of, view_of
from gpusched_env.games.task_queues.problem import ENDING_FORM, Form, TaskProblem
from gpusched_env.scheduling.contract import scheduler_rng
from gpusched_env.scheduling.guards import deep_copy
from gpusched_env.workload.graphs import levels

ROUNDING = 1e-9
"""Rounding of ranks, per unit."""


def fault_of(problem: TaskProblem, data: Data) -> str:
    """What is wrong with the results of a finished application; empty: nothing.

    A search has the depths of one that goes level by level. A ranking has no residual of ``epsilon`` or more, and ranks
    and residuals keep the balance that they began with; what one of several GPUs has not sent is such a residual, too.
    A colouring gives neighbours different colours.
    """
    graph = problem.graph
    if problem.application == "bfs":
        level = levels(graph, problem.source)
        wrong = np.flatnonzero(np.where(level < 0, UNREACHED, level) != data.level)
        return f"depth of vertex {wrong[0]} is {data.level[wrong[0]]}, not {level[wrong[0]]}" if len(wrong) else ""
    if problem.application == "colouring":
        same = np.flatnonzero(data.level[graph.origin] == data.level[graph.neighbour])
        if len(same):
            edge = same[0]
            ends = graph.origin[edge], graph.neighbour[edge]
            return f"vertices {ends[0]} and {ends[1]} have colour {data.level[ends[0]]}"
        return "" if (data.level >= 0).all() else f"vertex {int(np.argmin(data.level))} has no colour"
    handed = problem.damping * data.rank / np.maximum(graph.degree, 1)
    received = np.bincount(graph.neighbour, handed[graph.origin], len(graph.degree))
    kept = np.vstack([data.residual, data.kept.reshape(-1, len(graph.degree))])
    balance = np.abs(1.0 - problem.damping + received - data.rank - kept.sum(0))
    worst = int(np.argmax(balance / np.maximum(data.rank, 1.0)))
    if balance[worst] > ROUNDING * max(float(data.rank[worst]), 1.0):
        return f"rank of vertex {worst} is {data.rank[worst]}, out of balance by {balance[worst]}"
    largest = int(np.argmax(kept.max(0)))
    left = float(kept[:, largest].max())
    return f"residual of vertex {largest} is {left}, not below {problem.epsilon}" if left >= problem.epsilon else ""


MANY: Final = 1 << 24
"""Polls after which no run is too early."""
MORE: Final = {"persistent": 1.01, "discrete": 1.5}
"""Factor on the polls, or empty copies, where a run is still too early."""


def run_tuned(problem: TaskProblem, form: Form, device: TaskDevice) -> Form:
    """Run a problem on ``device`` with as few polls as will do; gives the form with their number.

    How often a worker polls in vain before the last task is done is seen in a run with :data:`MANY`: the last of them
    to vote has the fewest. A host of a discrete form begins with the papers' number of empty copies.
    """
    polls = problem.polls_of(form)
    if form.strategy == "persistent":
        device.begin(replace(problem, log=0), replace(form, polls=MANY))
        device.advance()
        idle_ps = device.time_ps - problem.machine.sync_ps - int(device.totals["worked_ps"])
        polls = max(1, MANY - idle_ps // problem.prices(form).poll_ps + 2)
    while True:
        tuned = replace(form, polls=polls)
        device.begin(problem, tuned)
        try:
            device.advance()
        except DeadlockError as error:
            if "too early" not in str(error):
                raise
            polls = max(polls + 1, int(polls * MORE[form.strategy]))
        else:
            return tuned


INTERVAL_US: Final = 50.0
"""Time between decisions: some rounds of a discrete form, some polls of a block."""


class TaskScheduler(Protocol):
    """Chooses the form in which tasks run.

    One that tries the application beforehand says ``clairvoyant = True`` and has a method ``see(problem)``, which is
    called first. One that never changes the form says ``changes = False`` and is not asked.
    """

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        """An application starts, of which this is known beforehand: its first form."""

    def decide(self, view: TaskView) -> Form:
        """The form from now on."""


class TaskSession:
    """An application under way on a device: begin, advance, change, finish."""

    def __init__(self, problem: TaskProblem, device: TaskDevice) -> None:
        self.problem, self.device = problem, device
        self.form = Form()
        """The last one asked for."""
        self.over = False

    def begin(self, form: Form) -> None:
        """Launch the application in a form."""
        self.device.begin(self.problem, form)
        self.form, self.over = form, False

    def advance(self, interval_us: float = INTERVAL_US) -> bool:
        """Run on; whether it is over."""
        self.over = self.device.advance(self.device.time_ps + round(interval_us * 1e6))
        return self.over

    def change(self, form: Form) -> None:
        """Another form from now on; the same: nothing happens."""
        if form != self.form:
            self.device.change(form)
            self.form = form

    def finish(self) -> int:
        """Run to the end; the time, ps."""
        self.over = self.device.advance(FOREVER)
        return self.device.time_ps

    @property
    def view(self) -> TaskView:
        """What there is to see now."""
        return view_of(self.problem, self.device, self.form)


@dataclass(frozen=True, eq=False)
class TaskRun:
    """What a run left behind."""

    problem: TaskProblem
    time_ps: int
    totals: np.void
    """A row of :data:`~gpusched_env.games.task_queues.device.TOTALS`."""

    @property
    def time_us(self) -> float:
        """Simulated time, microseconds."""
        return self.time_ps / 1e6


def time_in(
    problem: TaskProblem, form: Form, device: TaskDevice, *, early: bool, then: tuple[Form, float] | None = None
) -> float:
    """Time of a run in one form, us; infinite if a queue overflows.

    Args:
        problem: what is run.
        form: how, at first.
        device: on which.
        early: whether the host looks for the end as soon as a view says that nothing is left; otherwise it waits.
        then: another form, and from when on, if ends are early.
    """
    session = TaskSession(problem, device)
    try:
        session.begin(form)
        if not early:
            return session.finish() / 1e6
        steps = 0
        while not session.advance():
            steps += 1
            wanted = form if then is None or steps * INTERVAL_US < then[1] else then[0]
            session.change(ENDING_FORM if session.view.finished else wanted)
    except DeadlockError:
        return math.inf
    return device.time_ps / 1e6


def run_tasks_of(
    scheduler: TaskScheduler, problem: TaskProblem, device: TaskDevice, seed: int = 0, interval_us: float = INTERVAL_US
) -> TaskRun:
    """Run an application under ``scheduler`` to its end.

    Raises:
        IllegalCommand: the scheduler gave something else than a form.
        InputError: it calls ``sys.exit``, or gave a form that does not go with the application.
        DeadlockError: the application cannot go on.
    """
    with leaving_is_an_error(f"{type(scheduler).__name__} with seed {seed}"):
        see = getattr(scheduler, "see", None) if getattr(scheduler, "clairvoyant", False) else None
        if see is not None:
            see(deep_copy(problem))
        session = TaskSession(problem, device)
        session.begin(_form(scheduler.reset(knowledge_of(problem), scheduler_rng(seed))))
        if getattr(scheduler, "changes", True):
            while not session.advance(interval_us):
                # Its own form, since that of the session goes on.
                session.change(_form(scheduler.decide(view_of(problem, device, replace(session.form)))))
        else:
            session.finish()
    return TaskRun(problem, device.time_ps, device.totals.copy())


def _form(given: object) -> Form:
    """A copy, checked anew: a scheduler may go on to change what it gave."""
    if type(given) is not Form:
        raise IllegalCommand(f"{given!r} is no form of task queues, which is a Form(strategy, worker, fetch, ...)")
    return replace(given)

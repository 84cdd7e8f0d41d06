"""What a GPU is to a queue of tasks: the protocol of both devices."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.games.task_queues.applications import Data
from gpusched_env.games.task_queues.form import Form
from gpusched_env.games.task_queues.problem import TaskProblem

FOREVER = 1 << 62
"""Later than anything that happens, ps."""


class TaskDevice(Protocol):
    """One GPU, or several, that run one application, in one form after another.

    Use: ``begin(problem, form)``, then ``advance(until_ps)`` until it is true: the application has finished. In between
    ``change(form)`` has the workers leave at their next look at the queue, and then goes on in another form.
    """

    @property
    def time_ps(self) -> int:
        """Simulated time since the beginning; at the end, when the host knows."""

    @property
    def totals(self) -> np.void:
        """A row of :data:`~gpusched_env.games.task_queues.timeline.TOTALS`."""

    @property
    def queues(self) -> NDArray[np.void]:
        """(2 x GPUs,) rows of :data:`~gpusched_env.games.task_queues.timeline.QUEUE`."""

    @property
    def items(self) -> NDArray[np.int64]:
        """(2 x GPUs, places) the tasks in the queues."""

    @property
    def data(self) -> Data:
        """What is computed."""

    @property
    def log(self) -> NDArray[np.void]:
        """Rows of :data:`~gpusched_env.games.task_queues.timeline.LOG`, as many as the problem asked for at most."""

    def begin(self, problem: TaskProblem, form: Form) -> None:
        """Launch the application.

        Raises:
            InputError: the form does not go with the application.
        """

    def advance(self, until_ps: int = FOREVER) -> bool:
        """Run on to a time; whether the application has finished.

        Raises:
            DeadlockError: the queue overflows; workers that wait for room keep a vote from completing; or all have left
                while there are tasks.
        """

    def change(self, form: Form) -> None:
        """Go on in another form, as soon as all workers have left.

        Raises:
            InputError: the form does not go with the application, or the application has finished.
        """


def check_form(problem: TaskProblem, form: Form) -> None:
    """Refuse a form that does not go with a problem.

    Raises:
        InputError: it has a threshold, and the application is no search.
    """
    if form.threshold and problem.application != "bfs":
        raise InputError(f"form {form.name}: a threshold is of depths, which {problem.application} has not")


def overflow_text(problem: TaskProblem, queue: int, time_ps: int, worker: int) -> str:
    """Of a queue that is too small."""
    who = f"worker {worker} pushes" if worker >= 0 else "another GPU pushes" if problem.gpus > 1 else "the host pushes"
    return (
        f"{problem.name}: queue {queue} overflows at {time_ps / 1e6:.3f} us: {who} to place {problem.places}, and it "
        f"has {problem.places} places; give it more (capacity)"
    )


def link_text(problem: TaskProblem, origin: int, owner: int, time_ps: int) -> str:
    """Of a link with too much on the way."""
    return (
        f"{problem.name}: the link from GPU {origin} to GPU {owner} overflows at {time_ps / 1e6:.3f} us: it has "
        f"{problem.link_places} places; use a quicker one (link), or fewer GPUs"
    )


def vote_text(problem: TaskProblem, form: Form, time_ps: int, voted: int) -> str:
    """Of a vote that cannot complete."""
    shape, gpus = problem.shape(form), problem.gpus
    room = "the GPU, which has" if gpus == 1 else f"the {gpus} GPUs, which have"
    return (
        f"{problem.name}: the vote for the end cannot complete at {time_ps / 1e6:.3f} us: {voted} of "
        f"{shape.grid * gpus} workers have voted, and {(shape.grid - shape.workers) * gpus} wait for room on {room} "
        f"{shape.workers * gpus} of them; launch no more (grid)"
    )


def early_text(problem: TaskProblem, form: Form, time_ps: int, left: int) -> str:
    """Of workers that left too early."""
    who = "workers voted" if form.strategy == "persistent" else "host gave up"
    return (
        f"{problem.name}: the {who} too early, at {time_ps / 1e6:.3f} us: {left} tasks are left after "
        f"{problem.polls_of(form)} fruitless polls; allow more (polls)"
    )

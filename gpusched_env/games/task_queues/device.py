"""What a GPU is to a queue of tasks: the protocol of both devices, what a run leaves behind, and what a scheduler sees
of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.games.task_queues.applications import BFS, COLOURING, UNREACHED, Data, vertex_of
from gpusched_env.games.task_queues.problem import Form, TaskProblem

TOTALS: Final = np.dtype(
    [
        (name, np.int64)
        for name in (
            "tasks",
            "edges",
            "steps",
            "rounds",
            "pushed",
            "kernels",
            "copies",
            "changes",
            "idle",
            "voted",
            "worked_ps",
            "sent",
            "sendings",
            "flying",
        )
    ]
)
"""Sums over a run, and what is so now.

* ``tasks``: taken. ``edges``: looked at, one at least a task. ``steps``, ``rounds`` of workers. ``pushed``: tasks.
* ``kernels``: launched; ``copies`` of the queue's end to the host. ``changes``: of the form.
* ``idle``: workers that poll now; ``voted``: that have voted for the end of this form.
* ``worked_ps``: when the last step so far ended.
* ``sent``: tasks to another GPU; ``sendings``: how many went over a link at a time. ``flying``: now on the way.
"""
QUEUE: Final = np.dtype([(name, np.int64) for name in ("start", "alloc", "count", "top", "end")])
"""Counters of a queue (:mod:`gpusched_env.games.task_queues.hardware.machine`)."""


class Event(IntEnum):
    """What a row of the log is of."""

    GRAB = 0
    """A worker takes a segment: its first index."""
    STEP = 1
    """A worker begins with tasks: the first index, and how many."""
    RESERVE = 2
    """A worker reserves room: the first index, and for how many."""
    PUBLISH = 3
    """What a worker reserved is written: the queue's end after that."""
    IDLE = 4
    """A worker has nothing to do at its index."""
    VOTE = 5
    """A worker votes for the end: votes so far."""
    LEAVE = 6
    """A worker leaves the GPU."""
    COPY = 7
    """The host has a copy of the queue's end: that, and which queue (two times the GPU, and 1 for its second)."""
    LAUNCH = 8
    """A kernel reaches the GPU: its number, and its tasks."""
    OVER = 9
    """All of the form's workers have left."""
    CHANGE = 10
    """Another form begins: tasks that were put back."""
    SEND = 11
    """A worker has tasks for another GPU: which, and how many."""
    BATCH = 12
    """A communication kernel sends to another GPU: which, and how many."""
    LAND = 13
    """Tasks change what their owner knows: the GPU that they are from, and how many improve something."""
    ANNOUNCE = 14
    """Tasks of another GPU can be read: the GPU that they are from, and the queue's end after that."""


LOG: Final = np.dtype(
    [("time_ps", np.int64), ("event", np.int64), ("worker", np.int64), ("a", np.int64), ("b", np.int64)]
)
"""``worker``: of GPU g, -1 - g is its host; so it is in rows of what its links do."""


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
        """A row of :data:`~gpusched_env.games.task_queues.device.TOTALS`."""

    @property
    def queues(self) -> NDArray[np.void]:
        """(2 x GPUs,) rows of :data:`~gpusched_env.games.task_queues.device.QUEUE`."""

    @property
    def items(self) -> NDArray[np.int64]:
        """(2 x GPUs, places) the tasks in the queues."""

    @property
    def data(self) -> Data:
        """The graph, and what is computed."""

    @property
    def log(self) -> NDArray[np.void]:
        """Rows of :data:`~gpusched_env.games.task_queues.device.LOG`, as many as the problem asked for at most."""

    def begin(self, problem: TaskProblem, form: Form) -> None:
        """Launch the application of a problem.

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
    """What is said of a queue that is too small."""
    who = f"worker {worker} pushes" if worker >= 0 else "another GPU pushes" if problem.gpus > 1 else "the host pushes"
    return (
        f"{problem.name}: queue {queue} overflows at {time_ps / 1e6:.3f} us: {who} to place {problem.places}, and it "
        f"has {problem.places} places; give it more (capacity)"
    )


def link_text(problem: TaskProblem, origin: int, owner: int, time_ps: int) -> str:
    """What is said of a link with too much on the way."""
    return (
        f"{problem.name}: the link from GPU {origin} to GPU {owner} overflows at {time_ps / 1e6:.3f} us: it has "
        f"{problem.link_places} places; use a quicker one (link), or fewer GPUs"
    )


def vote_text(problem: TaskProblem, form: Form, time_ps: int, voted: int) -> str:
    """What is said of a vote that cannot complete."""
    shape, gpus = problem.shape(form), problem.gpus
    room = "the GPU, which has" if gpus == 1 else f"the {gpus} GPUs, which have"
    return (
        f"{problem.name}: the vote for the end cannot complete at {time_ps / 1e6:.3f} us: {voted} of "
        f"{shape.grid * gpus} workers have voted, and {(shape.grid - shape.workers) * gpus} wait for room on {room} "
        f"{shape.workers * gpus} of them; launch no more (grid)"
    )


def early_text(problem: TaskProblem, form: Form, time_ps: int, left: int) -> str:
    """What is said of workers that left too early."""
    who = "workers voted" if form.strategy == "persistent" else "host gave up"
    return (
        f"{problem.name}: the {who} too early, at {time_ps / 1e6:.3f} us: {left} tasks are left after "
        f"{problem.polls_of(form)} fruitless polls; allow more (polls)"
    )


SAMPLE = 1024
"""Queued tasks whose degrees are looked at, evenly spread."""


@dataclass(frozen=True, slots=True)
class TaskKnowledge:
    """What is known before an application starts: the size of its graph, and which one it is."""

    application: str
    vertices: int
    edges: int
    """Edges, counted in both directions."""
    most_degree: int
    workers: dict[str, int]
    """Workers of a persistent form, by their kind; of all GPUs together."""
    gpus: int = 1


@dataclass(frozen=True, slots=True)
class TaskView:
    """A run at a time at which its form may change."""

    now_us: float
    queued: int
    """Tasks that can be read and are in no step: in the queue, or in places that a worker has grabbed and not looked
    at since they were written."""
    unwritten: int
    """Places that are reserved, but cannot be read yet, and tasks on the way to another GPU."""
    idle: int
    """Workers that poll."""
    workers: int
    """Workers that the present form has room for."""
    tasks: int
    """Tasks taken so far."""
    overwork: float
    """Tasks taken a vertex that has a result; of a colouring, colourings; 0: none has."""
    mean_degree: float
    most_degree: int
    """The largest degree of the queued tasks' vertices, as far as a sample of them shows; 0: there are none."""
    depth: int
    """The largest depth of a search among the queued tasks of that sample; otherwise 0."""
    form: Form

    @property
    def finished(self) -> bool:
        """Whether only the end has to be found: nothing is queued or on its way, and persistent workers only poll.

        Kernels of other forms may still run, and push more.
        """
        waiting = self.queued > 0 or self.unwritten > 0
        return not waiting and (self.form.strategy != "persistent" or self.idle == self.workers)


def knowledge_of(problem: TaskProblem) -> TaskKnowledge:
    """What the scheduler of a problem is told."""
    degree = problem.graph.degree
    workers = {worker: problem.gpus * problem.shape(Form(worker=worker)).workers for worker in ("block", "warp")}
    most = int(degree.max(initial=0))
    return TaskKnowledge(problem.application, len(degree), int(degree.sum()), most, workers, problem.gpus)


def view_before(knowledge: TaskKnowledge, form: Form) -> TaskView:
    """What can be said before anything is launched: a search has one task, the others one a vertex."""
    queued = 1 if knowledge.application == "bfs" else knowledge.vertices
    mean = knowledge.edges / knowledge.vertices
    return TaskView(
        now_us=0.0,
        queued=queued,
        unwritten=0,
        idle=0,
        workers=knowledge.workers[form.worker],
        tasks=0,
        overwork=0.0,
        mean_degree=mean,
        most_degree=knowledge.most_degree,
        depth=0,
        form=form,
    )


def view_of(problem: TaskProblem, device: TaskDevice, form: Form) -> TaskView:
    """What ``device`` shows now."""
    queues, totals, data = device.queues, device.totals, device.data
    sample = np.concatenate(
        [
            device.items[number, start:end][:: max(1, (end - start) // SAMPLE)]
            for number, (start, end) in enumerate(zip(queues["start"].tolist(), queues["end"].tolist(), strict=True))
            if end > start
        ]
        or [np.zeros(0, np.int64)]
    )
    vertices = vertex_of(sample)  # type: ignore[arg-type]
    degrees = problem.graph.degree[vertices]
    tasks = int(totals["tasks"])
    done = len(problem.graph.degree)
    if problem.kind == BFS:
        done = int((data.level < UNREACHED).sum())
    elif problem.kind == COLOURING:
        done = 2 * int((data.level >= 0).sum())
    depths = data.level[vertices] if problem.kind == BFS else np.zeros(0, np.int64)
    reserved = int((queues["alloc"] - queues["end"]).sum())
    return TaskView(
        now_us=device.time_ps / 1e6,
        queued=problem.first_tasks + int(totals["pushed"]) - tasks - reserved,
        unwritten=reserved + int(totals["flying"]),
        idle=int(totals["idle"]),
        workers=problem.gpus * problem.shape(form).workers,
        tasks=tasks,
        overwork=tasks / done if done else 0.0,
        mean_degree=float(degrees.mean()) if len(degrees) else 0.0,
        most_degree=int(degrees.max(initial=0)),
        depth=int(depths.max(initial=0)),
        form=form,
    )

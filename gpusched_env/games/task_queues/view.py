"""What a scheduler of tasks sees, and what it knows beforehand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusched_env.games.task_queues.applications import BFS, COLOURING, UNREACHED, vertex_of
from gpusched_env.games.task_queues.device import TaskDevice
from gpusched_env.games.task_queues.form import Form
from gpusched_env.games.task_queues.problem import TaskProblem

SAMPLE = 1024
"""Queued tasks whose degrees are looked at, evenly spread."""


@dataclass(frozen=True, slots=True)
class TaskKnowledge:
    """What is known before an application starts: the size of its graph, and which one it is."""

    application: str
    vertices: int
    edges: int
    """In both directions."""
    most_degree: int
    workers: dict[str, int]
    """Of a persistent form, by their kind; of all GPUs together."""
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
    """That the present form has room for."""
    tasks: int
    """Taken so far."""
    overwork: float
    """Tasks taken a vertex that has a result; of a colouring, colourings; 0: none has."""
    mean_degree: float
    most_degree: int
    """Of the queued tasks' vertices, as far as a sample of them shows; 0: there are none."""
    depth: int
    """Of a search: largest depth among the queued tasks of that sample; otherwise 0."""
    form: Form

    @property
    def finished(self) -> bool:
        """Whether only the end has to be found: nothing is queued or on its way, and persistent workers only poll.

        Kernels of other forms may still run, and push more.
        """
        waiting = self.queued > 0 or self.unwritten > 0
        return not waiting and (self.form.strategy != "persistent" or self.idle == self.workers)


def knowledge_of(problem: TaskProblem) -> TaskKnowledge:
    """Of a problem, for its scheduler."""
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

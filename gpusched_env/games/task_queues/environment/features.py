"""The columns of an observation of ``gpusched/TaskQueue-v0``."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.features import FLAG, SHARE, Feature
from gpusched_env.games.task_queues.form import MOST_FETCH, STRATEGIES
from gpusched_env.games.task_queues.problem import KINDS
from gpusched_env.games.task_queues.view import TaskKnowledge, TaskView

LOG_TOP: Final = 1e8
LOG: Final = "log"
COLUMNS_NOTE: Final = """\
### Columns
Sources are fields of `gpusched_env.games.task_queues.view.TaskView`, or of what is known beforehand (`TaskKnowledge`).
`log`: log1p(x) / log1p(10^8), at most 1.
"""
MOST_OVERWORK: Final = 4.0
"""What a column of overwork shows as 1."""


class TaskFeature(Feature):
    """The queue, the workers, the graph, and the present form."""

    QUEUED = ("tasks that can be read and are in no step", LOG, 0, 1, "queued")
    UNWRITTEN = ("places that are reserved and cannot be read yet", LOG, 0, 1, "unwritten")
    IDLE = ("workers that poll, of all", SHARE, 0, 1, "idle, workers")
    TASKS = ("tasks taken so far", LOG, 0, 1, "tasks")
    OVERWORK = ("tasks taken a vertex that has a result, of 4", SHARE, 0, 1, "overwork")
    MEAN_DEGREE = ("mean degree of the queued vertices", LOG, 0, 1, "mean_degree")
    MOST_DEGREE = ("largest degree of the queued vertices", LOG, 0, 1, "most_degree")
    DEPTH = ("of a search: largest depth among them", LOG, 0, 1, "depth")
    TIME = ("microseconds since the start", LOG, 0, 1, "now_us")
    PERSISTENT = ("1 if the form is persistent", FLAG, 0, 1, "form.strategy")
    DISCRETE = ("1 if it is discrete", FLAG, 0, 1, "form.strategy")
    SYNCHRONOUS = ("1 if it is bulk-synchronous", FLAG, 0, 1, "form.strategy")
    WARP = ("1 if workers are warps", FLAG, 0, 1, "form.worker")
    FETCH = ("tasks that a worker takes at once, of 256", SHARE, 0, 1, "form.fetch")
    THRESHOLD = ("1 if there is a second queue", FLAG, 0, 1, "form.threshold")
    BFS = ("1 if it is a search", FLAG, 0, 1, "application")
    PAGERANK = ("1 if it is a ranking", FLAG, 0, 1, "application")
    COLOURING = ("1 if it is a colouring", FLAG, 0, 1, "application")
    VERTICES = ("of the graph", LOG, 0, 1, "vertices")
    EDGES = ("of the graph, in both directions", LOG, 0, 1, "edges")
    HUB = ("its largest degree", LOG, 0, 1, "most_degree")


def _log(value: float) -> float:
    return min(1.0, math.log1p(value) / math.log1p(LOG_TOP))


def encode(view: TaskView, knowledge: TaskKnowledge) -> NDArray[np.float32]:
    """The columns, float32 of shape ``(len(TaskFeature),)``."""
    form = view.form
    values = (
        *map(_log, (view.queued, view.unwritten)),
        view.idle / view.workers,
        _log(view.tasks),
        min(1.0, view.overwork / MOST_OVERWORK),
        *map(_log, (view.mean_degree, view.most_degree, view.depth, view.now_us)),
        *(float(form.strategy == name) for name in STRATEGIES),
        float(form.worker == "warp"),
        form.fetch / MOST_FETCH,
        float(form.threshold > 0),
        *(float(knowledge.application == name) for name in KINDS),
        *map(_log, (knowledge.vertices, knowledge.edges, knowledge.most_degree)),
    )
    return np.array(values, np.float32)

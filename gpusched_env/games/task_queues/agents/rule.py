"""The rule of forms: a bilinear function of a graph and of a form says how its tasks are run.

The value of a form is ``graph . value[application] . form``, with the terms of the graph and those of the form, and 1
more for the one that is quickest for this application in the mean. The greatest value is taken, for the whole run: a
change on the way gains less (``docs/task-queue-agent.md``). Where nothing is left the host looks for the end. With
all weights 0 the rule is the scheduler ``by-application``.

Terms are near -2 to 2. They are made of the columns of an observation, by name.
"""

from __future__ import annotations

import enum
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.task_queues.environment.env import FORMS
from gpusched_env.games.task_queues.environment.features import LOG_TOP, TaskFeature
from gpusched_env.games.task_queues.form import LAST, QUICK, Form
from gpusched_env.games.task_queues.problem import KINDS

DECADES: Final = math.log10(LOG_TOP)
"""From a column's logarithm to powers of ten."""


class GraphTerm(enum.IntEnum):
    """Of a graph."""

    ONE = 0
    VERTICES = enum.auto()
    """As a power of ten, less 4."""
    DEGREE = enum.auto()
    """Edges a vertex, as a power of ten, less 1."""
    HUB = enum.auto()
    """The largest degree over the mean one, as a power of ten, less 1."""


class FormTerm(enum.IntEnum):
    """Of a form."""

    PERSISTENT = 0
    SYNCHRONOUS = enum.auto()
    WARP = enum.auto()
    FETCH = enum.auto()
    """Tasks that a worker takes at once, as a power of two, less 5, over 3."""
    FETCH_SQUARED = enum.auto()
    PERSISTENT_FETCH = enum.auto()
    """``FETCH`` of a persistent form, else 0."""
    THRESHOLD = enum.auto()
    """1 if there is a second queue."""
    NEAR = enum.auto()
    """From which depth tasks wait in it, as a power of two, less 3; 0 without."""


READS: Final = (
    "QUEUED", "UNWRITTEN", "IDLE", "PERSISTENT", "BFS", "PAGERANK", "COLOURING", "VERTICES", "EDGES", "HUB",
)  # fmt: skip
"""Columns of an observation that the rule reads."""
SHAPES: Final[dict[str, tuple[int, ...]]] = {"value": (len(KINDS), len(GraphTerm), len(FormTerm))}
"""Weights by name."""


def _terms_of(form: Form) -> list[float]:
    persistent = form.strategy == "persistent"
    fetch = (math.log2(form.fetch) - 5.0) / 3.0
    return [
        float(persistent),
        float(form.strategy == "bulk-synchronous"),
        float(form.worker == "warp"),
        fetch,
        fetch * fetch,
        fetch if persistent else 0.0,
        float(form.threshold > 0),
        math.log2(form.threshold) - 3.0 if form.threshold else 0.0,
    ]


OF_FORMS: Final = np.array([_terms_of(form) for form in FORMS], np.float32)
"""Terms of all forms on offer, shape ``(actions, FormTerm)``."""
PLAIN: Final = np.array([form.threshold == 0 for form in FORMS])
"""Which of them are for all applications; the others are for searches."""
USUAL: Final = tuple(FORMS.index(QUICK[application]) for application in KINDS)
"""By application."""
FINISH: Final = FORMS.index(LAST)
KIND: Final = slice(TaskFeature.BFS, TaskFeature.COLOURING + 1)
"""Columns that show the application."""


def graph_terms(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Terms of an observation of ``gpusched/TaskQueue-v0``, shape ``(GraphTerm,)``."""
    vertices, edges, hub = (
        DECADES * float(columns[column]) for column in (TaskFeature.VERTICES, TaskFeature.EDGES, TaskFeature.HUB)
    )
    degree = edges - vertices
    return np.array([1.0, vertices - 4.0, degree - 1.0, hub - degree - 1.0], np.float32)


def finished(columns: NDArray[np.float32]) -> bool:
    """What :attr:`gpusched_env.games.task_queues.view.TaskView.finished` says, from an observation."""
    waiting = columns[TaskFeature.QUEUED] > 0.0 or columns[TaskFeature.UNWRITTEN] > 0.0
    busy = columns[TaskFeature.PERSISTENT] == 1.0 and columns[TaskFeature.IDLE] < 1.0
    return not waiting and not busy


def choose(value: NDArray[np.float32], columns: NDArray[np.float32]) -> int:
    """The action that the rule takes.

    Args:
        value: weights, of the shape in :data:`SHAPES`.
        columns: of an observation, shape ``(TaskFeature,)``.
    """
    if finished(columns):
        return FINISH
    kind = int(columns[KIND].argmax())
    values = OF_FORMS @ (graph_terms(columns) @ value[kind])
    values[USUAL[kind]] += 1.0
    if kind != KINDS["bfs"]:
        values = np.where(PLAIN, values, -np.inf)
    return int(values.argmax())

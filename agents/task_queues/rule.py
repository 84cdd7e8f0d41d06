"""The rule of forms: a bilinear function of what is seen of a run and of a form says how its tasks go on.

The value of a form is ``view . value[application] . form``, with the terms of the view and those of the form, and 1
more if the scheduler ``by-application`` would choose it: at the start the form that is quickest for this application in
the mean, then the present one, and the end of a run in which nothing is left. The greatest value is taken. With all
weights 0 the rule is that scheduler.

Terms are near -2 to 2. They are made of the columns of an observation, by name.
"""

from __future__ import annotations

import enum
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.task_queues.env import FORMS
from gpusched_env.envs.task_queues.features import LOG_TOP, TaskFeature, columns_of
from gpusched_env.task_queues.form import LAST, QUICK, Form
from gpusched_env.task_queues.problem import KINDS

DECADES: Final = math.log10(LOG_TOP)
"""From a column's logarithm to powers of ten."""


class ViewTerm(enum.IntEnum):
    """Of a run, and of its graph."""

    ONE = 0
    START = enum.auto()
    """1 before anything has run."""
    FINISHED = enum.auto()
    """1 if nothing is queued or on its way into the queue, and persistent workers only poll."""
    QUEUED = enum.auto()
    """Tasks, as a power of ten, less 2."""
    IDLE = enum.auto()
    """Share of the workers."""
    VERTICES = enum.auto()
    """Of the graph, as a power of ten, less 4."""
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
    PRESENT = enum.auto()
    """1 of the present form: what a change costs."""


READS: Final = (
    "QUEUED", "UNWRITTEN", "IDLE", "TIME", "PERSISTENT", "DISCRETE", "SYNCHRONOUS", "WARP", "FETCH", "THRESHOLD",
    "BFS", "PAGERANK", "COLOURING", "VERTICES", "EDGES", "HUB",
)  # fmt: skip
"""Columns of an observation that the rule reads."""
SHAPES: Final[dict[str, tuple[int, ...]]] = {"value": (len(KINDS), len(ViewTerm), len(FormTerm))}
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
"""Terms of all forms on offer but the last, shape ``(actions, FormTerm - 1)``."""
PLAIN: Final = np.array([form.threshold == 0 for form in FORMS])
"""Which of them are for all applications; the others are for searches."""
USUAL: Final = tuple(FORMS.index(QUICK[application]) for application in KINDS)
"""By application."""
FINISH: Final = FORMS.index(LAST)
PRESENT: Final = slice(TaskFeature.PERSISTENT, TaskFeature.THRESHOLD + 1)
"""Columns that show the present form."""
SHOWN: Final = np.array([columns_of(form) for form in FORMS], np.float32)
"""What they are for each form on offer."""
KIND: Final = slice(TaskFeature.BFS, TaskFeature.COLOURING + 1)
"""Columns that show the application."""


def view_terms(columns: NDArray[np.float32]) -> NDArray[np.float32]:
    """Terms of an observation of ``gpusched/TaskQueue-v0``, shape ``(ViewTerm,)``."""
    queued, vertices, edges, hub = (
        DECADES * float(columns[column])
        for column in (TaskFeature.QUEUED, TaskFeature.VERTICES, TaskFeature.EDGES, TaskFeature.HUB)
    )
    idle = float(columns[TaskFeature.IDLE])
    waiting = columns[TaskFeature.QUEUED] > 0.0 or columns[TaskFeature.UNWRITTEN] > 0.0
    start = columns[TaskFeature.TIME] == 0.0
    degree = edges - vertices
    busy = columns[TaskFeature.PERSISTENT] == 1.0 and idle < 1.0
    terms = (
        1.0,
        float(start),
        float(not waiting and not busy),
        queued - 2.0,
        idle,
        vertices - 4.0,
        degree - 1.0,
        hub - degree - 1.0,
    )
    return np.array(terms, np.float32)


def choose(value: NDArray[np.float32], columns: NDArray[np.float32]) -> int:
    """The action that the rule takes.

    Args:
        value: weights, of the shape in :data:`SHAPES`.
        columns: of an observation, shape ``(TaskFeature,)``.
    """
    kind = int(columns[KIND].argmax())
    terms = view_terms(columns)
    of_terms = terms @ value[kind]
    present = (columns[PRESENT] == SHOWN).all(axis=1)
    values = OF_FORMS @ of_terms[: FormTerm.PRESENT] + of_terms[FormTerm.PRESENT] * present
    if terms[ViewTerm.FINISHED]:
        values[FINISH] += 1.0
    elif terms[ViewTerm.START]:
        values[USUAL[kind]] += 1.0
    else:
        values += present
    if kind != KINDS["bfs"]:
        values = np.where(PLAIN, values, -np.inf)
    return int(values.argmax())

"""The rule of forms: a bilinear function of a graph and of a form says how its tasks are run.

The value of a form is ``graph . value[application] . form``, with the terms of the graph and those of the form, and 1
more for the one that is quickest for this application in the mean. The greatest value is taken, for the whole run: a
change on the way gains less (``docs/task-queue-agent.md``). Where nothing is left the host looks for the end. With
all weights 0 the rule is the scheduler ``by-application``.

Terms are near -2 to 2. They are made of the columns of an observation, by name.

Below the rule are the file of its weights, and the rule as a scheduler.
"""

from __future__ import annotations

import enum
import math
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import GamePolicyInfo
from gpusched_env.agents.shipped import FOLDER
from gpusched_env.agents.training.folder import policy_file
from gpusched_env.games.task_queues.device import TaskKnowledge, TaskView, view_before
from gpusched_env.games.task_queues.environment.env import FIRST, FORMS, LOG_TOP, TaskFeature, encode
from gpusched_env.games.task_queues.problem import BEST_FORM_OF_APPLICATION, ENDING_FORM, KINDS, Form

DECADES: Final = math.log10(LOG_TOP)
"""Factor from a column's logarithm to powers of ten."""


class GraphTerm(enum.IntEnum):
    """What the rule sees of a graph."""

    ONE = 0
    VERTICES = enum.auto()
    """Number of vertices as a power of ten, less 4."""
    DEGREE = enum.auto()
    """Edges a vertex, as a power of ten, less 1."""
    HUB = enum.auto()
    """The largest degree over the mean one, as a power of ten, less 1."""


class TaskFormTerm(enum.IntEnum):
    """What the rule sees of a form."""

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
    """Depth from which tasks wait in the second queue, as a power of two, less 3; 0 without."""


READS: Final = (
    "QUEUED", "UNWRITTEN", "IDLE", "PERSISTENT", "BFS", "PAGERANK", "COLOURING", "VERTICES", "EDGES", "HUB",
)  # fmt: skip
"""Columns of an observation that the rule reads."""
SHAPES: Final[dict[str, tuple[int, ...]]] = {"value": (len(KINDS), len(GraphTerm), len(TaskFormTerm))}
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
"""Whether each form is for all applications; the others are for searches."""
USUAL: Final = tuple(FORMS.index(BEST_FORM_OF_APPLICATION[application]) for application in KINDS)
"""The usual form of each application, by application."""
FINISH: Final = FORMS.index(ENDING_FORM)
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
    """What :attr:`gpusched_env.games.task_queues.device.TaskView.finished` says, from an observation."""
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


class FormPolicyInfo(GamePolicyInfo, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a rule of forms is, and where it comes from."""

    RULE = "rule of forms"
    TERMS = (*(term.name for term in GraphTerm), *(f"FORM_{term.name}" for term in TaskFormTerm))
    SHAPES = SHAPES
    COLUMNS = TaskFeature.__members__

    format: Literal["gpusched-form-rule"] = "gpusched-form-rule"
    terms: tuple[str, ...] = TERMS
    reads: tuple[str, ...] = READS


NAME: Final = "TaskQueue"


class FormsByRule:
    """Chooses the form by weights of the rule, as an agent of ``gpusched/TaskQueue-v0`` does.

    The form in which a run begins is chosen before anything is launched.
    """

    def __init__(self, value: NDArray[np.float32]) -> None:
        """``value``: weights, as :func:`gpusched_env.games.task_queues.agents.rule.choose` takes them."""
        self._value = value
        self.decisions = 0
        """Decisions so far."""

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        """The first form, by what is known of the graph."""
        self._knowledge = knowledge
        return self.decide(view_before(knowledge, FIRST))

    def decide(self, view: TaskView) -> Form:
        """The form of the greatest value."""
        self.decisions += 1
        return FORMS[choose(self._value, encode(view, self._knowledge))]


class LearnedForms(FormsByRule):
    """A rule of forms whose weights were searched on random graphs."""

    def __init__(self, path: str | Path | None = None) -> None:
        """
        Args:
            path: of a file or of the folder of a training; ``None``: the agent that is shipped.

        Raises:
            InputError: there is none, or it does not fit.
        """
        self.file = FOLDER / f"{NAME}.npz" if path is None else policy_file(Path(path))
        self.info, weights = FormPolicyInfo.read(self.file)
        super().__init__(weights["value"])

    def describe(self) -> str:
        """A line about the scheduler."""
        return self.info.summary()

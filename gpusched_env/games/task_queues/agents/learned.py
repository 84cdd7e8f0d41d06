"""The rule of forms as a scheduler of task queues."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.shipped import FOLDER
from gpusched_env.agents.training.folder import policy_file
from gpusched_env.games.task_queues.agents.policy_file import read_form_policy
from gpusched_env.games.task_queues.agents.rule import choose
from gpusched_env.games.task_queues.environment.env import FIRST, FORMS
from gpusched_env.games.task_queues.environment.features import encode
from gpusched_env.games.task_queues.form import Form
from gpusched_env.games.task_queues.view import TaskKnowledge, TaskView, view_before

NAME: Final = "TaskQueue"


class FormsByRule:
    """Chooses the form by weights of the rule, as an agent of ``gpusched/TaskQueue-v0`` does.

    The form in which a run begins is chosen before anything is launched.
    """

    def __init__(self, value: NDArray[np.float32]) -> None:
        """``value``: weights, as :func:`gpusched_env.games.task_queues.agents.rule.choose` takes them."""
        self._value = value
        self.decisions = 0
        """So far."""

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        """By what is known of the graph."""
        self._knowledge = knowledge
        return self.decide(view_before(knowledge, FIRST))

    def decide(self, view: TaskView) -> Form:
        """By the greatest value."""
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
        self.info, weights = read_form_policy(self.file)
        super().__init__(weights["value"])

    def describe(self) -> str:
        """One line about it."""
        return self.info.summary()

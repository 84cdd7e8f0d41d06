"""Rules that choose a form from what they see."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.games.task_queues.baselines.fixed import FETCH, FixedForm
from gpusched_env.games.task_queues.form import Form
from gpusched_env.games.task_queues.view import TaskKnowledge, TaskView


class Guideline(FixedForm):
    """Atos's guideline: persistent where few neighbours mean a long way and little at once, discrete otherwise."""

    ranges: ClassVar[Ranges] = {"mean_degree": Range(1.0, 32.0, log=True), "fetch": FETCH}

    def __init__(self, mean_degree: float = 4.0, fetch: int = 32) -> None:
        """
        Args:
            mean_degree: graphs with fewer neighbours a vertex are run in a persistent form.
            fetch: tasks that a worker takes at once.
        """
        self.mean_degree, self.fetch = mean_degree, fetch

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        """By the graph as a whole."""
        few = knowledge.edges < self.mean_degree * knowledge.vertices
        self.form = Form("persistent" if few else "discrete", "block", self.fetch)
        return self.form


class FrontierSwitch:
    """Discrete while the queue is long, persistent while it is short: what Atos fixes for a run changes with it."""

    ranges: ClassVar[Ranges] = {
        "long": Range(100, 100_000, log=True),
        "ratio": Choice((1.5, 2.0, 4.0, 8.0)),
        "fetch": FETCH,
    }

    def __init__(self, long: int = 20_000, ratio: float = 4.0, fetch: int = 32) -> None:
        """
        Args:
            long: queued tasks above which the form becomes discrete.
            ratio: it becomes persistent again below so many times fewer, so that it does not go to and fro.
            fetch: tasks that a worker takes at once.
        """
        self.long, self.ratio = long, ratio
        self._persistent = Form("persistent", "block", fetch)
        self._discrete = Form("discrete", "block", fetch)

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        """A search begins with one task, the others with all."""
        return self._persistent if knowledge.application == "bfs" else self._discrete

    def decide(self, view: TaskView) -> Form:
        """By the length of the queue."""
        if view.queued > self.long:
            return self._discrete
        return self._persistent if view.queued * self.ratio < self.long else view.form

"""One form for each application, and an early end."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.task_queues.baselines.offline_best import FORMS_BY_NAME
from gpusched_env.games.task_queues.form import LAST, QUICK, Form
from gpusched_env.games.task_queues.view import TaskKnowledge, TaskView

ONE: Final = Choice(tuple(FORMS_BY_NAME))


class ByApplication:
    """A fixed form for each application; where nothing is left to do, the host ends what still polls.

    The strongest rule that looks at no graph. Its defaults are :data:`gpusched_env.games.task_queues.form.QUICK`.
    """

    changes = True
    ranges: ClassVar[Ranges] = {"bfs": ONE, "pagerank": ONE, "colouring": ONE, "ends": Choice((False, True))}

    def __init__(
        self,
        bfs: str = QUICK["bfs"].name,
        pagerank: str = QUICK["pagerank"].name,
        colouring: str = QUICK["colouring"].name,
        *,
        ends: bool = True,
    ) -> None:
        """
        Args:
            bfs: name of the form of searches.
            pagerank: of rankings.
            colouring: of colourings.
            ends: whether the host ends a run in which nothing is left to do; otherwise it waits for the votes.

        Raises:
            InputError: no such form.
        """
        self._names = {"bfs": bfs, "pagerank": pagerank, "colouring": colouring}
        self.ends = ends
        for name in self._names.values():
            if name not in FORMS_BY_NAME:
                raise InputError(f"form {name!r}; {did_you_mean(name, FORMS_BY_NAME)}")

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        """The application's."""
        self._form = FORMS_BY_NAME[self._names[knowledge.application]]
        return self._form

    def decide(self, view: TaskView) -> Form:
        """Level by level for what is left, which is nothing, once there is nothing to see."""
        return LAST if self.ends and view.finished else self._form

"""Schedulers that choose forms.

Those of Atos (Chen et al., ICPP 2022) fix strategy and worker for a whole run, its guideline by the graph. Ours
change them with the queue, take the best form of each application, or try all beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar, Final

import numpy as np

from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import DeadlockError, InputError, did_you_mean
from gpusched_env.games.task_queues.device import TaskKnowledge, TaskView
from gpusched_env.games.task_queues.devices.compiled.device import CompiledTaskDevice
from gpusched_env.games.task_queues.problem import (
    BEST_FORM_OF_APPLICATION,
    ENDING_FORM,
    FETCHES,
    Form,
    Strategy,
    TaskProblem,
    Worker,
)

FETCH: Final = Choice(FETCHES)


class FixedForm:
    """One form for the whole run."""

    changes = False
    ranges: ClassVar[Ranges] = {"fetch": FETCH}
    form: Form

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        """The form that an application begins with."""
        return self.form

    def decide(self, view: TaskView) -> Form:
        """The form that an application goes on with: still the same."""
        return self.form


class PersistentBlocks(FixedForm):
    """Atos, persistent: a kernel whose blocks take tasks, push new ones and poll."""

    def __init__(self, fetch: int = 32) -> None:
        """``fetch``: tasks that a worker takes at once."""
        self.form = Form("persistent", "block", fetch)


class PersistentWarps(FixedForm):
    """Atos, persistent, with workers of a warp: vertex by vertex, without waiting for others."""

    def __init__(self, fetch: int = 32) -> None:
        """``fetch``: tasks that a worker takes at once."""
        self.form = Form("persistent", "warp", fetch)


class Discrete(FixedForm):
    """Atos, discrete: the host copies the queue's end and launches a kernel for what is new."""

    def __init__(self, fetch: int = 32) -> None:
        """``fetch``: tasks of a block."""
        self.form = Form("discrete", "block", fetch)


class DiscretePriority(FixedForm):
    """Atos, discrete with two queues: a search takes what is near first; other applications have one queue."""

    ranges: ClassVar[Ranges] = {"fetch": FETCH, "threshold": Choice((1, 2, 4, 8, 32)), "delta": Choice((1, 2, 4, 8))}

    def __init__(self, fetch: int = 32, threshold: int = 4, delta: int = 1) -> None:
        """
        Args:
            fetch: tasks of a block.
            threshold: depth from which tasks wait.
            delta: by how much it grows when the near queue is empty. Defaults are those for soc-LiveJournal1.
        """
        self._near = Form("discrete", "block", fetch, threshold=threshold, delta=delta)
        self._plain = Form("discrete", "block", fetch)

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        """The form that an application begins with."""
        self.form = self._near if knowledge.application == "bfs" else self._plain
        return self.form


class BulkSynchronous(FixedForm):
    """Level by level: the host waits for each kernel before it launches the next."""

    def __init__(self, fetch: int = 32) -> None:
        """``fetch``: tasks of a block."""
        self.form = Form("bulk-synchronous", "block", fetch)


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
        """The form by the graph as a whole."""
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
        """The form by the length of the queue."""
        if view.queued > self.long:
            return self._discrete
        return self._persistent if view.queued * self.ratio < self.long else view.form


TRIED: tuple[tuple[Strategy, Worker], ...] = (
    ("persistent", "block"),
    ("persistent", "warp"),
    ("discrete", "block"),
    ("bulk-synchronous", "block"),
)
THRESHOLDS = ((2, 1), (4, 1), (8, 4), (32, 8))
"""Depths of the second queue, and by how much they grow."""


FORMS_BY_NAME: Final = {
    form.name: form
    for form in (
        *(Form(strategy, worker, fetch) for strategy, worker in TRIED for fetch in FETCHES),
        *(Form("discrete", "block", 32, threshold=threshold, delta=delta) for threshold, delta in THRESHOLDS),
    )
}
"""All fixed forms by their names."""


def forms_of(problem: TaskProblem) -> Iterator[Form]:
    """Forms that go with the problem's application."""
    for form in FORMS_BY_NAME.values():
        if form.threshold == 0 or problem.application == "bfs":
            yield form


class OfflineBest(FixedForm):
    """The best of all fixed forms for this very graph, each of which it runs beforehand."""

    clairvoyant = True
    ranges = {}  # noqa: RUF012

    def see(self, problem: TaskProblem) -> None:
        """Run every form on the graph, and keep the best."""
        device, times = CompiledTaskDevice(), {}
        for form in forms_of(problem):
            device.begin(replace(problem, log=0), form)
            try:
                device.advance()
            except DeadlockError:  # The queue is too short for so much overwork.
                continue
            times[form] = device.time_ps
        self.form = min(times, key=times.__getitem__) if times else Form("bulk-synchronous")


ONE: Final = Choice(tuple(FORMS_BY_NAME))


class ByApplication:
    """A fixed form for each application; where nothing is left to do, the host ends what still polls.

    The strongest rule that looks at no graph. Its defaults are
    :data:`gpusched_env.games.task_queues.problem.BEST_FORM_OF_APPLICATION`.
    """

    changes = True
    ranges: ClassVar[Ranges] = {"bfs": ONE, "pagerank": ONE, "colouring": ONE, "ends": Choice((False, True))}

    def __init__(
        self,
        bfs: str = BEST_FORM_OF_APPLICATION["bfs"].name,
        pagerank: str = BEST_FORM_OF_APPLICATION["pagerank"].name,
        colouring: str = BEST_FORM_OF_APPLICATION["colouring"].name,
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
        """The form of the application."""
        self._form = FORMS_BY_NAME[self._names[knowledge.application]]
        return self._form

    def decide(self, view: TaskView) -> Form:
        """Level by level for what is left, which is nothing, once there is nothing to see."""
        return ENDING_FORM if self.ends and view.finished else self._form

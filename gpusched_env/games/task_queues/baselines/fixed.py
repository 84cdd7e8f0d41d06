"""Fixed forms of Atos (Chen et al., ICPP 2022): strategy and worker are chosen for a whole run."""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.games.task_queues.form import FETCHES, Form
from gpusched_env.games.task_queues.view import TaskKnowledge, TaskView

FETCH: Final = Choice(FETCHES)


class FixedForm:
    """One form for the whole run."""

    changes = False
    ranges: ClassVar[Ranges] = {"fetch": FETCH}
    form: Form

    def reset(self, knowledge: TaskKnowledge, rng: np.random.Generator) -> Form:
        """The form."""
        return self.form

    def decide(self, view: TaskView) -> Form:
        """Still the same."""
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
        """The form."""
        self.form = self._near if knowledge.application == "bfs" else self._plain
        return self.form


class BulkSynchronous(FixedForm):
    """Level by level: the host waits for each kernel before it launches the next."""

    def __init__(self, fetch: int = 32) -> None:
        """``fetch``: tasks of a block."""
        self.form = Form("bulk-synchronous", "block", fetch)

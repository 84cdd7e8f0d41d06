"""Uniformly random launches and short waits: the floor that every other scheduler must beat."""

from __future__ import annotations

import numpy as np

from gpusched_env.baselines.pending import ID, launchable_rows
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View

MEAN_WAIT_US = 20.0
"""Mean of the exponential waits, microseconds: about the duration of a short kernel."""


class RandomChoice:
    """A random launchable kernel at a random stream priority, or a random short wait, all equally likely."""

    reads: Reads = ()

    def __init__(self) -> None:
        self._rng = np.random.default_rng(0)
        self._priorities: tuple[int, ...] = (0,)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Take the episode's random numbers, and the priorities that the scenario offers."""
        self._rng = rng
        self._priorities = knowledge.stream_priorities

    def decide(self, view: View) -> Command:
        """Wait for an event only if nothing can be launched; otherwise never for ever."""
        rows = launchable_rows(view)
        if not rows:
            return WAIT
        choice = int(self._rng.integers(1 + len(rows) * len(self._priorities)))
        if choice == 0:
            return Wait(view.time_us + self._rng.exponential(MEAN_WAIT_US))
        kernel, priority = divmod(choice - 1, len(self._priorities))
        return Launch(int(view.pending.array[rows[kernel], ID]), self._priorities[priority])

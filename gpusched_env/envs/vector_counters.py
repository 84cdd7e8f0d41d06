"""What a vector environment keeps of each environment beside its device: counters of the episode, and a generator."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

SAVED: Final = ("seeds", "costs", "decisions", "illegal", "over", "times_us")
"""What of :class:`Counters` belongs to a state that can be gone back to."""


class Counters:
    """Of the episode that each environment is in; arrays of shape ``(n,)``, live."""

    def __init__(self, count: int, times_us: NDArray[np.float64]) -> None:
        """``times_us``: of the batch, shape ``(n, 2)``."""
        self.seeds = np.zeros(count, np.int64)
        self.costs = np.zeros(count)
        """That rewards have told so far."""
        self.decisions = np.zeros(count, np.int64)
        self.illegal = np.zeros(count, np.int64)
        """Illegal actions."""
        self.over = np.zeros(count, np.bool_)
        """Whether it has ended, and the next step or reset begins another."""
        self.began = np.zeros(count)
        """When, in seconds of ``time.perf_counter``."""
        self.times_us = times_us

    def begin(self, e: int, seed: int) -> None:
        """An environment's next episode."""
        self.seeds[e] = seed
        self.costs[e] = 0.0
        self.decisions[e] = 0
        self.illegal[e] = 0
        self.over[e] = False
        self.began[e] = time.perf_counter()

    def save(self) -> dict[str, NDArray[Any]]:
        """Copies, to go back to with :meth:`load`."""
        return {name: getattr(self, name).copy() for name in SAVED}

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Go back; the episodes take their time from now."""
        for name in SAVED:
            getattr(self, name)[:] = saved[name]
        self.began[:] = time.perf_counter()


class Generators:
    """The environments' random number generators. One that was never seeded is made when it is first asked for."""

    def __init__(self, count: int) -> None:
        self._generators: list[np.random.Generator | None] = [None] * count
        self.seeds: list[int | None] = [None] * count
        """What they were seeded with."""

    def __getitem__(self, e: int) -> np.random.Generator:
        generator = self._generators[e]
        if generator is None:
            generator, seed = seeding.np_random()
            self.set(e, generator, seed)
        return generator

    def set(self, e: int, generator: np.random.Generator, seed: int) -> None:
        """Replace one by another, which was made of ``seed``."""
        self._generators[e], self.seeds[e] = generator, seed

    def save(self) -> tuple[Mapping[str, Any] | None, ...]:
        """The states of all, ``None`` where there is none yet; :meth:`load` goes back to them."""
        return tuple(None if generator is None else generator.bit_generator.state for generator in self._generators)

    def load(self, states: Sequence[Mapping[str, Any] | None], seeds: Sequence[int | None]) -> None:
        """Go back to states; ``seeds``: as they were then."""
        for e, state in enumerate(states):
            self._generators[e] = None
            if state is not None:
                generator, _ = seeding.np_random(0)
                generator.bit_generator.state = state
                self._generators[e] = generator
        self.seeds = [*seeds]

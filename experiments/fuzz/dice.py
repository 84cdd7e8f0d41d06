"""Random choices in plain Python values from one seeded stream."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

T = TypeVar("T")


class Dice:
    """Draws; equal seeds give equal draws."""

    def __init__(self, *seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.tidy = False
        """Whether :meth:`number` gives numbers of one digit only."""

    def chance(self, probability: float) -> bool:
        return bool(self._rng.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """Uniform in ``low`` to ``high``, both included."""
        return int(self._rng.integers(low, high + 1))

    def uniform(self, low: float, high: float) -> float:
        return float(self._rng.uniform(low, high))

    def exponential(self, mean: float) -> float:
        return float(self._rng.exponential(mean))

    def log_uniform(self, low: float, high: float) -> float:
        return math.exp(self.uniform(math.log(low), math.log(high)))

    def log_integer(self, low: int, high: int) -> int:
        """Small numbers as often as large ones, by order of magnitude."""
        return min(high, int(self.log_uniform(low, high + 1)))

    def number(self, low: float, high: float) -> float:
        """Log-uniform; every other one (all, where :attr:`tidy`) has one digit, so that sums of them coincide."""
        value = self.log_uniform(low, high)
        if not self.chance(1.0 if self.tidy else 0.5):
            return value
        return min(high, max(low, float(f"{value:.0e}")))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]

    def pick_by_name(self, names: Sequence[str]) -> str:
        """One of ``names`` for its own sake: where names come or go, only draws of those change.

        (The highest random weight wins; Thaler and Ravishankar 1998.)
        """
        seed = self.seed().to_bytes(8)
        return max(names, key=lambda name: hashlib.blake2b(name.encode(), key=seed, digest_size=8).digest())

    def weighted(self, weights: Mapping[T, float]) -> T:
        """One of the keys, with probabilities in proportion to the (not all zero) weights."""
        at = self.uniform(0.0, sum(weights.values()))
        chosen = next(key for key, weight in weights.items() if weight > 0)
        for key, weight in weights.items():
            if weight > 0:
                chosen = key
                at -= weight
                if at < 0:
                    break
        return chosen

    def some(self, options: Sequence[T]) -> tuple[T, ...]:
        """A random subset in the given order, at least one."""
        chosen = tuple(option for option in options if self.chance(0.5))
        return chosen or (self.pick(options),)

    def shuffled(self, options: Sequence[T]) -> list[T]:
        return [options[i] for i in self._rng.permutation(len(options))]

    def seed(self) -> int:
        return self.integer(0, 2**31 - 1)

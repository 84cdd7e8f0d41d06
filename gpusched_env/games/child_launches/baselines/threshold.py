"""Static thresholds: how programs with dynamic parallelism are written.

*Flat* and *Baseline-DP* of Tang et al., *Controlled Kernel Launch for Dynamic Parallelism in GPUs* (HPCA 2017): a
thread launches a child if its work is above a constant of the program.
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np

from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.transformations import FLAT, Transformations
from gpusched_env.games.child_launches.view import SERIALISE, SPAWN, Decision, LaunchKnowledge, RequestView

THRESHOLDS: Final = Choice((None, 8, 16, 32, 64, 128, 256, 512, 1024, 2048))
"""One for all programs; ``None``: each its own."""


class Flat:
    """No dynamic parallelism: every thread does its work itself."""

    program = Transformations(threshold=FLAT)

    def reset(self, knowledge: LaunchKnowledge, rng: np.random.Generator) -> None:
        """Nothing to forget."""

    def decide(self, view: RequestView) -> Decision:
        """No."""
        return SERIALISE


class Threshold:
    """Baseline-DP: whatever is above the program's threshold is launched."""

    ranges: ClassVar[Ranges] = {"threshold": THRESHOLDS}

    def __init__(self, threshold: int | None = None) -> None:
        """
        Args:
            threshold: in place of the program's own, serial iterations.

        Raises:
            InputError: it is below 0.
        """
        if threshold is not None and threshold < 0:
            raise InputError(f"threshold: is {threshold}, must be at least 0")
        self.program = Transformations(threshold=threshold)

    def reset(self, knowledge: LaunchKnowledge, rng: np.random.Generator) -> None:
        """Nothing to forget."""

    def decide(self, view: RequestView) -> Decision:
        """Yes."""
        return SPAWN

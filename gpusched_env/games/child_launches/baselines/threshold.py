"""Static thresholds: how programs with dynamic parallelism are written.

*Flat*, *Baseline-DP* and *Offline-Search* of Tang et al., *Controlled Kernel Launch for Dynamic Parallelism in GPUs*
(HPCA 2017): a thread launches a child if its work is above a constant of the program; the best constant of an
application and input is found by trying.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

import numpy as np

from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.device import SERIALISE, SPAWN, Decision, LaunchKnowledge, RequestView
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.problem import FLAT, LaunchProblem, Transformations
from gpusched_env.games.child_launches.scheduler import run_application

THRESHOLDS: Final = Choice((None, 8, 16, 32, 64, 128, 256, 512, 1024, 2048))
"""Thresholds to choose from, one for all programs; ``None``: each its own."""


class Flat:
    """No dynamic parallelism: every thread does its work itself."""

    program = Transformations(threshold=FLAT)

    def reset(self, knowledge: LaunchKnowledge, rng: np.random.Generator) -> None:
        """Begin an application; there is nothing to forget."""

    def decide(self, view: RequestView) -> Decision:
        """The decision not to launch."""
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
        """Begin an application; there is nothing to forget."""

    def decide(self, view: RequestView) -> Decision:
        """The decision to launch."""
        return SPAWN


SHARES: Final = (
    *(0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.13, 0.18, 0.20, 0.25, 0.28, 0.31, 0.35, 0.40, 0.46, 0.49),
    *(0.53, 0.58, 0.62, 0.70, 0.74, 0.80, 0.85, 0.90, 0.95, 1.0),
)
"""Shares of what can be offloaded: those of the paper's Figure 5 and some between."""


def thresholds(problem: LaunchProblem, shares: Sequence[float] = SHARES) -> list[int]:
    """Thresholds that offload the shares nearest to ``shares``, and the program's own; ascending, each once."""
    made = problem.benchmark
    return sorted({made.threshold, *(made.threshold_of(share * made.offloadable) for share in shares)})


class OfflineSearch(Threshold):
    """Offline-Search: the best static threshold for this very input, which it runs with each one that it tries."""

    clairvoyant = True
    ranges: ClassVar[Ranges] = {}

    def __init__(self, points: int | None = None) -> None:
        """
        Args:
            points: thresholds to try, evenly chosen from those of the paper's sweep; ``None``: all.
        """
        super().__init__()
        self.points = points

    def see(self, problem: LaunchProblem) -> None:
        """Try every threshold, and none."""
        shares = SHARES if self.points is None else SHARES[:: max(1, len(SHARES) // self.points)]
        runs = [
            run_application(Threshold(threshold), problem, CompiledWarpDevice())
            for threshold in thresholds(problem, shares)
        ]
        runs.append(run_application(Flat(), problem, CompiledWarpDevice()))
        best = min(runs, key=lambda run: run.time_ps)
        self.program = Transformations(threshold=best.problem.threshold)

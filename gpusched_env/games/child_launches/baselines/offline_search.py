"""Offline-Search of Tang et al. (HPCA 2017): the best static threshold of an application and input, found by trying."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from gpusched_env.baselines.ranges import Ranges
from gpusched_env.games.child_launches.baselines.threshold import Flat, Threshold
from gpusched_env.games.child_launches.devices.compiled.device import CompiledWarpDevice
from gpusched_env.games.child_launches.problem import LaunchProblem
from gpusched_env.games.child_launches.scheduler import run_application
from gpusched_env.games.child_launches.transformations import Transformations

SHARES: Final = (
    *(0.0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.10, 0.13, 0.18, 0.20, 0.25, 0.28, 0.31, 0.35, 0.40, 0.46, 0.49),
    *(0.53, 0.58, 0.62, 0.70, 0.74, 0.80, 0.85, 0.90, 0.95, 1.0),
)
"""Of what can be offloaded: those of the paper's Figure 5 and some between."""


def thresholds(problem: LaunchProblem, shares: Sequence[float] = SHARES) -> list[int]:
    """Those that offload the shares nearest to ``shares``, and the program's own; ascending, each once."""
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

"""What compilers do about dynamic parallelism: thresholding, coarsening and aggregation.

Olabi, Gómez Luna, Mutlu, Hwu, El Hajj, *A Compiler Framework for Optimizing Dynamic Parallelism on GPUs* (CGO 2022),
at the granularity of a warp, which needs no synchronisation between warps (El Hajj et al., *KLAP*, MICRO 2016; Wu, Li,
Becchi, IPDPS 2016, call it consolidation). What the code that finds a thread's part of an aggregated grid costs is left
out, which favours it.
"""

from __future__ import annotations

from typing import ClassVar

from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.baselines.threshold import THRESHOLDS, Threshold
from gpusched_env.games.child_launches.problem import Transformations


class Aggregation(Threshold):
    """Thresholding, coarsening and aggregation: what a warp launches is one launch, of fewer, heavier blocks."""

    ranges: ClassVar[Ranges] = {"threshold": THRESHOLDS, "coarsening": Choice((1, 2, 4, 8, 16))}

    def __init__(self, threshold: int | None = None, coarsening: int = 1) -> None:
        """
        Args:
            threshold: in place of the program's own, serial iterations.
            coarsening: blocks of a child whose work one block does, where the child's threads launch nothing.

        Raises:
            InputError: one is out of range.
        """
        super().__init__(threshold)
        if coarsening < 1:
            raise InputError(f"aggregation: coarsening is {coarsening}, must be at least 1")
        self.program = Transformations(threshold=threshold, coarsening=coarsening, aggregated=True)

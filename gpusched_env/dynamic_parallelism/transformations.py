"""How a program with dynamic parallelism is compiled: thresholding, coarsening and aggregation.

Source: Olabi et al., CGO 2022, as :mod:`gpusched_env.baselines.dynamic_parallelism.aggregation` says; a scheduler or an
agent that decides on each launch may have its programs compiled so, too.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from gpusched_env.dynamic_parallelism.problem import LaunchProblem


class Transformations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a compiler makes of a program before it runs; by default nothing."""

    threshold: Annotated[int, Meta(ge=0)] | None = None
    """In place of the program's own, serial iterations."""
    coarsening: Annotated[int, Meta(ge=1)] = 1
    """Blocks of a child whose work one block does, where the child's threads launch nothing."""
    aggregated: bool = False
    """Whether what a warp launches together is one launch."""

    def applied(self, problem: LaunchProblem) -> LaunchProblem:
        """The program, compiled so."""
        if self.threshold is not None:
            problem = problem.with_threshold(self.threshold)
        problem = problem.with_coarsening(self.coarsening)
        return problem.with_aggregation() if self.aggregated else problem

"""How a program with dynamic parallelism is compiled: thresholding, coarsening and aggregation.

Source: Olabi et al., CGO 2022, as :mod:`gpusched_env.games.child_launches.baselines.aggregation` says; a scheduler or
an agent that decides on each launch may have its programs compiled so, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.child_launches.problem import LaunchProblem

FLAT: Final = 1 << 40
"""A threshold that no work is above: the program launches nothing, and does not ask."""


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


def check_program(given: Transformations | Mapping[str, Any]) -> Transformations:
    """``given``, or what its fields say.

    Raises:
        InputError: names the field that there is none of, or whose value is none; it has no fields.
    """
    if isinstance(given, Transformations):
        return given
    if not isinstance(given, Mapping):
        raise InputError(f'program is {given!r}, must be a mapping such as {{"coarsening": 16, "aggregated": True}}')
    known = Transformations.__struct_fields__
    for name in given:
        if name not in known:
            raise InputError(f"program: {name!r} is no transformation; {did_you_mean(str(name), known)}")
    try:
        return msgspec.convert(dict(given), Transformations)
    except msgspec.ValidationError as error:
        raise InputError(f"program: {error}") from error

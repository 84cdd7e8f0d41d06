"""Rules that keep a few kernels on the GPU at a time: one, as the theory of one machine has it, or some more."""

from __future__ import annotations

from typing import ClassVar

from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import View


class FewInFlight:
    """Base class of rules with an option ``in_flight``.

    What is launched keeps its order within a tenant's stream. Kernels of different tenants share the GPU; where they
    compete for room, the one that came to the head of its stream first goes first, whatever the rule says by then.
    """

    reads: Reads = ("completions",)
    ranges: ClassVar[Ranges] = {"in_flight": Range(1, 64, log=True)}

    def __init__(self, in_flight: int = 1) -> None:
        """``in_flight``: kernels of all tenants that are launched and have not finished at most (>= 1).

        Raises:
            InputError: ``in_flight`` is out of range.
        """
        if in_flight < 1:
            raise InputError(f"{type(self).__name__}: in_flight is {in_flight}, must be at least 1")
        self._in_flight = in_flight

    def is_full(self, view: View) -> bool:
        """Whether as many kernels are launched as may be."""
        return len(view.running) >= self._in_flight

"""Dispatchers that place each job for good by a packing rule: what they have in common, and those without co-location.

GPUColo (Chen, Subramaniyan, Wang, ICDCS 2024, Section 6) compares its fleet with both: each job has a GPU of its own;
GPUs for inference and for training come in a fixed ratio (5 to 1).
"""

from __future__ import annotations

from typing import ClassVar

from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.device import WAIT, Command, FleetView, Place
from gpusched_env.games.fleet.problem import GpuKind
from gpusched_env.games.fleet.windows import PackingRule


class Packing:
    """Jobs go in order of arrival to where the rule says; where it has no GPU they wait, and later ones behind them."""

    control: str = "shared"
    rule: PackingRule = PackingRule()

    def reset(self, kinds: tuple[GpuKind, ...]) -> None:
        """Begin a fleet; there is nothing to remember."""

    def decide(self, view: FleetView) -> Command:
        """Place the job that has waited longest."""
        if len(view.waiting) == 0:
            return WAIT
        job = int(view.waiting[0])
        gpu = view.choose(job, self.rule)
        return WAIT if gpu < 0 else Place(job, gpu)


class NoColocation(Packing):
    """No co-location: each job has a GPU of its own."""

    control = "shared"
    rule = PackingRule(most_jobs=1)


class Separate(Packing):
    """Separate: GPUs come in units, of which all but one are for inference; a job has a GPU of its own.

    A unit of which one GPU has a job is in use as a whole: the ratio is fixed. That a GPU has one job follows from the
    paper's count, which is above that without co-location.
    """

    control = "shared"
    ranges: ClassVar[Ranges] = {"inference": Choice((1, 2, 3, 5, 8))}

    def __init__(self, inference: int = 5) -> None:
        """
        Args:
            inference: GPUs of inference for one of training.

        Raises:
            InputError: it is below 1.
        """
        if inference < 1:
            raise InputError(f"separate: inference is {inference}, must be at least 1 (GPUs for one of training)")
        self.rule = PackingRule(most_jobs=1, unit=inference + 1)

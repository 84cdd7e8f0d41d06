"""Separate: GPUs for inference and GPUs for training, in a fixed ratio (GPUColo, ICDCS 2024, Section 6: 5 to 1)."""

from __future__ import annotations

from typing import ClassVar

from gpusched_env.baselines.ranges import Choice, Ranges
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.baselines.packing import Packing
from gpusched_env.games.fleet.windows import PackingRule


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

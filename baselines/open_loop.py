"""Open loop: shares and the pause of training are set once, and nothing is measured.

The knobs of Chen, Subramaniyan and Wang (GPUColo, ICDCS 2024), Fig. 4, one by one: MPS percentages of both, a sleep of
the training process after each iteration, or both.

========================================= ================================ =============================================
As published                              Where                            Here
========================================= ================================ =============================================
Training sleeps after each iteration      Fig. 4, middle and right         ``pause_s``
MPS percentages of inference and training Fig. 4, left and right           ``inference_share``, ``training_share``: SMs
                                                                           from both ends; above 100 together they
                                                                           overlap
*Conservative*: training has so little    the motivating example; how      ``conservative``, another class: the most
that inference is safe                    little is not said               that GPUColo's controllers may do
========================================= ================================ =============================================
"""

from __future__ import annotations

from typing import ClassVar

from gpusched_env.baselines.colocated import Colocated, S
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.errors import InputError


class OpenLoop(Colocated):
    """Shares of the SMs and the pause of training hosts as they are set once."""

    ranges: ClassVar[Ranges] = {
        "pause_s": Range(0.0, 1.0),
        "training_share": Range(1.0, 100.0),
        "inference_share": Range(1.0, 100.0),
    }

    def __init__(self, pause_s: float = 0.0, training_share: float = 100.0, inference_share: float = 100.0) -> None:
        """
        Args:
            pause_s: of training hosts after an iteration, in seconds (0 to 3600).
            training_share: percent of the SMs, above 0 to 100.
            inference_share: likewise.

        Raises:
            InputError: a value is out of range.
        """
        if not 0.0 <= pause_s <= 3600.0:
            raise InputError(f"open-loop: pause_s is {pause_s}, must be 0 to 3600")
        for name, share in (("training_share", training_share), ("inference_share", inference_share)):
            if not 0.0 < share <= 100.0:
                raise InputError(f"open-loop: {name} is {share}, must be above 0 and at most 100 (percent of the SMs)")
        self._knobs = pause_s * S, training_share, inference_share

    def begin(self) -> None:
        """Set the knobs that were given."""
        self.pause_us, self.training_share, self.inference_share = self._knobs

    def control(self, batch_us: float) -> None:
        """Nothing is measured."""

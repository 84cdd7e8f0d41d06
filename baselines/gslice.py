"""GSLICE as GPUColo's authors extend it to training: both have a share, adjusted by the latency of inference.

A. Dhakal, S. G. Kulkarni, K. K. Ramakrishnan, *GSLICE: Controlled Spatial Sharing of GPUs for a Scalable Inference
Platform* (SoCC 2020), and its extension in Chen, Subramaniyan and Wang (GPUColo, ICDCS 2024).

====================================== =================================== =============================================
As published                           Where                               Here
====================================== =================================== =============================================
MPS percentages of both sum to 100     GPUColo, Fig. 8                     As published; disjoint, half each at first
Adjusted every 25 s                    GPUColo, Fig. 8                     ``period_s``
A change restarts either               GPUColo, Fig. 8                     The scenario's ``restart_us``, for each
The share of inference grows by the    not in the paper; the public        As there: times ``1 - (SLO - L) / L`` above
relative error                         simulation code                     1 % of error, of 1 to 99 percent
====================================== =================================== =============================================
"""

from __future__ import annotations

import math
from typing import ClassVar

from gpusched_env.baselines.colocated import Colocated, S
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.errors import InputError

TOLERATED = 0.01
"""Relative error that changes nothing."""


class Gslice(Colocated):
    """Inference and training split the SMs; inference gets more the later it is, at a restart of both."""

    ranges: ClassVar[Ranges] = {"period_s": Range(1.0, 100.0, log=True), "first_share": Range(1.0, 99.0)}

    def __init__(self, period_s: float = 25.0, first_share: float = 50.0) -> None:
        """
        Args:
            period_s: after so long shares are set anew, in seconds (above 0).
            first_share: of inference in the beginning, 1 to 99 percent.

        Raises:
            InputError: a value is out of range.
        """
        if not 0.0 < period_s < math.inf or not 1.0 <= first_share <= 99.0:
            raise InputError(f"gslice: period_s {period_s}, first_share {first_share}; must be above 0, 1 to 99")
        self.period_us, self._first = period_s * S, first_share

    def begin(self) -> None:
        """Split the SMs between inference and training."""
        self._split(self._first)

    def control(self, batch_us: float) -> None:
        """Give inference more or less of them."""
        error = (self.goal_us - batch_us) / batch_us
        if abs(error) > TOLERATED:
            self._split(min(99.0, max(1.0, self.inference_share * (1.0 - error))))

    def _split(self, inference_share: float) -> None:
        self.inference_share, self.training_share = inference_share, 100.0 - inference_share

"""GPUColo: training sleeps between iterations such that inference just meets its objective.

G. Chen, S. Subramaniyan, X. Wang, *Latency-Guaranteed Co-Location of Inference and Training for Reducing Data Center
Expenses* (ICDCS 2024).

========================================= ================================ =============================================
As published                              Where                            Here
========================================= ================================ =============================================
Inference has 100 % of the SMs            section on MPS                   As published
Inner tier, every 4 s: training sleeps s  inner controller                 ``period_s``; a pause before each job of
seconds after each iteration, 0 to 1 s                                     tenants without an objective
l = m s + n of the mean batch latency;    system identification; m and n   ``slope_ms``: of m by percent of training's
m is negative, and steeper with a larger  are not printed (Fig. 6: -4,     share, milliseconds a second; identified by
share                                     -11, -18 ms/s at 20, 50, 90 %)   runs at fixed knobs, as in the reproduction
s += (goal - l) / m                       inner controller                 As published
Outer tier, every 100 s, where the error  outer controller; its law is     ``outer`` periods of the inner tier; the
exceeds 2 %: training's share, 1 to 100   omitted ("similar"), the public  share grows by 4.6 or falls by 4.8 times the
percent                                   code has gains of 4.6 and 4.8    relative error of the last inner period
A new share restarts training, 5 to 15 s  outer controller                 The scenario's ``restart_us``
========================================= ================================ =============================================
"""

from __future__ import annotations

import math
from typing import ClassVar

from gpusched_env.baselines.colocated import Colocated, S
from gpusched_env.baselines.ranges import Range, Ranges
from gpusched_env.errors import InputError

TOLERATED = 0.02
"""Relative error that leaves the share as it is."""
UP, DOWN = 4.6, 4.8
"""Factors on a relative error, above and below 0, that give the change of the share."""
MOST_PAUSE_US = 1.0 * S
LEAST_SHARE, MOST_SHARE = 1.0, 100.0


class GpuColo(Colocated):
    """Training sleeps between iterations, and has a share of the SMs, such that inference just meets its objective."""

    ranges: ClassVar[Ranges] = {
        "slope_ms": Range(-2.0, -0.02),
        "period_s": Range(0.5, 20.0, log=True),
        "outer": Range(0, 100),
        "first_share": Range(LEAST_SHARE, MOST_SHARE),
    }

    def __init__(
        self,
        slope_ms: float = -0.2,
        period_s: float = 4.0,
        outer: int = 25,
        first_share: float = 80.0,
        goal_of_served: bool = False,
    ) -> None:
        """
        Args:
            slope_ms: by how much a second of sleep changes the latency of a batch, in milliseconds for each percent of
                training's share (below 0).
            period_s: of the inner tier, in seconds (above 0).
            outer: periods of that until the outer tier acts; 0: there is none.
            first_share: of training in the beginning, percent of the SMs, 1 to 100.
            goal_of_served: whether inference without a batch in a period has no say in what is aimed at.

        Raises:
            InputError: a value is out of range.
        """
        if not -math.inf < slope_ms < 0.0 or not 0.0 < period_s < math.inf or outer < 0:
            raise InputError(
                f"gpucolo: slope_ms {slope_ms}, period_s {period_s}, outer {outer}; must be below 0, above 0, from 0 on"
            )
        if not LEAST_SHARE <= first_share <= MOST_SHARE:
            raise InputError(f"gpucolo: first_share is {first_share}, must be 1 to 100 (percent of the SMs)")
        if not isinstance(goal_of_served, bool):
            raise InputError(f"gpucolo: goal_of_served is {goal_of_served!r}, must be true or false")
        self.goal_of_served = goal_of_served
        self._slope_ms, self.period_us, self._outer, self._first = slope_ms, period_s * S, outer, first_share

    def begin(self) -> None:
        """Begin without a pause."""
        self.training_share = self._first
        self._periods = 0

    def control(self, batch_us: float) -> None:
        """Sleep as the model says; at times another share."""
        self._periods += 1
        if math.isnan(batch_us):
            return
        error = self.goal_us - batch_us
        # Milliseconds of latency a second of sleep: the same as thousandths, of whatever unit.
        slope = self._slope_ms * self.training_share / 1e3
        self.pause_us = min(MOST_PAUSE_US, max(0.0, self.pause_us + error / slope))
        relative = error / self.goal_us
        if self._outer and self._periods % self._outer == 0 and abs(relative) > TOLERATED:
            change = 100.0 * relative * (UP if relative > 0.0 else DOWN)
            self.training_share = min(MOST_SHARE, max(LEAST_SHARE, self.training_share + change))

"""The rate limit of TGS (:mod:`.tgs`): it grows as long as the production's rate of launches stays as it was."""

from __future__ import annotations

import math
from typing import Final

WINDOW: Final = 5
LEAST_RATE: Final = 0.0002
"""Production below it (blocks a microsecond) does not run: 1,000 blocks in 5 s."""
FIRST: Final = 0.4
"""Blocks a microsecond: 20,000 in 50 ms."""
LEAST_STEP: Final = 0.02
"""1,000 in 50 ms."""
LOSS: Final = 0.03
"""Share of production's rate."""


class RateControl:
    """Blocks a microsecond that opportunistic tenants may launch, by what production launched in each period."""

    def __init__(self) -> None:
        self.limit = 0.0
        """Blocks a microsecond; ``inf``: as many as they want."""
        self._alone = 0.0
        """Production's rate without others, as far as is known."""
        self._window = [0.0] * WINDOW
        """Production's rates in the last periods, newest first."""
        self._profiled = 0
        """Periods of the profile that is taken; -1: none is."""
        self._periods = 0
        """Periods under control."""
        self._starts_slowly, self._grew = True, False
        self._losses = 0

    def period(self, rate: float) -> None:
        """Set the limit after a period in which production launched ``rate`` blocks a microsecond."""
        largest = max((a + b) / 2.0 for a, b in zip(self._window, self._window[1:], strict=False))
        self._window = [rate, *self._window[:-1]]
        if self._profiled >= 0:
            self._profile(largest)
            return
        change = self._change(largest)
        if abs(change) > 0.2:
            self._approach(largest)
            self._profiled = 0
            return
        if abs(change) <= 0.1:
            self._alone = max(self._alone, largest)
        self._periods += 1
        if self._periods == 1:
            self._start(FIRST)
            return
        idle = sum(rate < LEAST_RATE for rate in self._window)
        if idle > 2 and self._periods >= 15:
            self._start(math.inf)
        elif self.limit == math.inf or (idle == 2 and self._periods > 15):
            self._start(FIRST)
        else:
            self._adapt(rate)

    def _profile(self, largest: float) -> None:
        """Measure production's rate until it stands still, for a window of periods at least; before it starts nobody
        is limited."""
        if largest == self._alone == 0.0:
            self.limit = math.inf
            return
        if self.limit == math.inf:
            self.limit = 0.0
        self._profiled += 1
        still = abs(self._change(largest)) <= 0.05
        if still:
            moved = largest >= self._alone
            self._alone = max(self._alone, largest)
        else:
            moved = True
            self._approach(largest)
        if self._profiled >= WINDOW and not moved:
            self._profiled = -1

    def _change(self, largest: float) -> float:
        return (largest - self._alone) / self._alone if self._alone > 0.0 else math.inf if largest > 0.0 else 0.0

    def _approach(self, largest: float) -> None:
        """Take a rate for the one without others, less what it may be by chance."""
        above = largest > self._alone
        self._alone = max(self._alone, largest * 0.975) if above else min(self._alone, largest * 1.025)

    def _start(self, limit: float) -> None:
        self.limit, self._starts_slowly = limit, True

    def _adapt(self, rate: float) -> None:
        """Slow start and congestion avoidance."""
        loss = abs(rate - self._alone) / self._alone if self._alone > 0.0 else 0.0
        if self._starts_slowly:
            self._starts_slowly = loss <= LOSS
            self.limit = self.limit * 1.5 if loss <= LOSS else self.limit / 1.5
            self._grew = self._starts_slowly
        else:
            self._grew = loss < LOSS or (loss == LOSS and not self._grew)
            step = max(self._alone / 40.0, LEAST_STEP) if self._grew else -max(self.limit * 0.08, LEAST_STEP)
            self.limit += step
            if loss >= 3.0 * LOSS:
                self.limit, self._starts_slowly = self.limit / 10.0, True
        self._losses = self._losses + 1 if loss >= 0.12 else 0
        if self._losses >= 20:
            self._alone, self._losses = self._alone * 0.8, 0
            self._start(self.limit / 2.0)
        self.limit = max(0.0, self.limit)

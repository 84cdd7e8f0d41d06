"""TGS: best-effort containers launch at a rate that is searched, such that the production container keeps its own.

B. Wu, Z. Zhang, Z. Bai, X. Liu, X. Jin, *Transparent GPU Sharing in Container Clouds for Deep Learning Workloads* (NSDI
2023), and its artefact (github.com/pkusys/TGS), ``low_priority_hijack_call.c`` and ``high_priority_hijack_call.c`` in
``hijack/src``.

============================================== ============================= ===========================================
As published                                   Where                         Here
============================================== ============================= ===========================================
A production container, whose kernels go at    the paper                     The tenants of the highest priority, and
once, and opportunistic ones                                                 all others
Containers are processes that take turns       the paper                     ``contexts``, ``per-tenant``; ``shared``:
                                                                             kernels of all may run at one time
Its rate, in blocks launched, is measured      ``rate_monitor``, 5 s         ``period_us``, 5 ms: requests take
every period                                                                 milliseconds, trainings' steps seconds
The rate that it has alone is the largest of a ``limit_manager``,            As published. At first others launch
window of five, mean of two neighbours; where  ``shift_window``              nothing until it stands still
it changes by a fifth, it is measured again
Opportunistic blocks are limited to a rate,    ``rate_limiter``, 50 ms a     A hundredth of the period. Blocks beyond
for units of time                              unit                          the limit are owed: a kernel is large for
                                                                             so short a unit
The limit grows by half while production is    ``update_rate_limit``: 3 %,   As published
within 3 % of its rate; from the first loss on 1.5, 0.00025, 0.08, 10
by a fortieth of that rate, or falls by 8 %;
at a loss of 9 % it starts anew from a tenth
After 20 losses of 12 % production's rate is   ``max_diff_counter``          As published
taken to be a fifth less
Without production there is no limit           ``num_zero``                  As published: none in three of five periods
Least step, first limit, and production that   ``RATE_MIN``,                 The same in blocks a microsecond: 0.02, 0.4
counts as none                                 ``LIMIT_INITIALIZER``         and 0.0002
Device memory is moved to the host             the paper                     Left out: all fits
============================================== ============================= ===========================================
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

import numpy as np

from gpusched_env.baselines.evict import SETTLED_US, TwoClasses
from gpusched_env.baselines.pending import ID
from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.scenario import Contexts
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Wait
from gpusched_env.scheduling.reads import Reads
from gpusched_env.scheduling.view import PendingColumn, View

WINDOW: Final = 5
LEAST_RATE: Final = 0.0002
"""Rate below which production does not run, blocks a microsecond: 1,000 blocks in 5 s."""
FIRST: Final = 0.4
"""First limit for others, blocks a microsecond: 20,000 in 50 ms."""
LEAST_STEP: Final = 0.02
"""Smallest step of the limit, blocks a microsecond: 1,000 in 50 ms."""
LOSS: Final = 0.03
"""Loss that is tolerated, as a share of production's rate."""


class RateControl:
    """Blocks a microsecond that opportunistic tenants may launch, by what production launched in each period."""

    def __init__(self) -> None:
        self.limit = 0.0
        """Blocks a microsecond that others may launch; ``inf``: as many as they want."""
        self._alone = 0.0
        """Production's rate without others, as far as is known."""
        self._window = [0.0] * WINDOW
        """Production's rates in the last periods, newest first."""
        self._profiled = 0
        """Periods of the profile that is taken; -1: none is."""
        self._periods = 0
        """Periods that passed under control."""
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


UNITS = 100
"""Units of time that a period has."""


class Tgs:
    """Adaptive rate control: best-effort tenants launch as many blocks as leave the urgent ones' rate as it was."""

    reads: Reads = ("priorities", "shapes")
    ranges: ClassVar[Ranges] = {
        "period_us": Range(500.0, 50_000.0, log=True),
        "contexts": Choice(("per-tenant", "shared")),
        "classes": Range(1, 4),
    }

    def __init__(self, period_us: float = 5000.0, contexts: Contexts = "per-tenant", classes: int = 1) -> None:
        """
        Args:
            period_us: after so long the limit is set anew (above 0).
            contexts: ``per-tenant``, tenants are processes that the GPU switches between; ``shared``, they run side by
                side.
            classes: priorities, from the highest on, whose tenants are production (at least 1).

        Raises:
            InputError: a value is out of range.
        """
        if not 0.0 < period_us < math.inf or classes < 1:
            raise InputError(f"tgs: period_us {period_us}, classes {classes}; must be above 0 and finite, at least 1")
        if contexts not in ("shared", "per-tenant"):
            raise InputError(f"tgs: contexts is {contexts!r}; must be shared or per-tenant")
        self._period_us, self._count = period_us, classes
        self.set_up = SetUp(contexts=contexts)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """Nothing was launched."""
        self._classes = TwoClasses(knowledge, self._count)
        self._control = RateControl()
        self._ends_us = self._period_us
        """When the present period is over (simulated time, us)."""
        self._blocks = 0.0
        """Blocks that production launched in the period."""
        self._credit, self._since_us = 0.0, 0.0
        """Blocks that others may launch, and the time at which that was so."""

    def decide(self, view: View) -> Command:
        """Launch what production has; then others as far as their limit allows."""
        while view.time_us >= self._ends_us:
            self._earn(self._ends_us)
            self._control.period(self._blocks / self._period_us)
            self._blocks = 0.0
            self._ends_us += self._period_us
        self._earn(view.time_us)
        urgent, best_effort = self._classes.launchable(view)
        if urgent:
            self._blocks += urgent[0][PendingColumn.BLOCKS]
            return Launch(int(urgent[0][ID]))
        if not best_effort:
            return WAIT
        limit = self._control.limit
        if limit > 0.0 and self._credit >= 0.0:
            kernel = min(best_effort, key=lambda kernel: kernel[ID])
            self._credit -= kernel[PendingColumn.BLOCKS]
            return Launch(int(kernel[ID]))
        earned_us = view.time_us - self._credit / limit if limit > 0.0 else math.inf
        return Wait(min(earned_us, self._ends_us) + SETTLED_US)

    def _earn(self, time_us: float) -> None:
        """Let blocks be launched for the time up to ``time_us``: no more than a unit's are kept."""
        limit = self._control.limit
        if limit == math.inf:
            self._credit = 0.0
        else:
            earned = self._credit + limit * (time_us - self._since_us)
            self._credit = min(earned, limit * self._period_us / UNITS)
        self._since_us = time_us

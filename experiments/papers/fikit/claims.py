"""What the paper claims, judged over all pairs, each beside a control in which the mechanism is switched off.

A claim that comes out with its mechanism and without it says nothing of the mechanism: it is not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpusched_env.experiments.lib.controls import verdict_of
from gpusched_env.experiments.papers.fikit.modes import (
    COST_US,
    MPS,
    NO_SCHEDULER,
    SETTINGS,
    SHARED_NOW_AND_THEN,
)
from gpusched_env.experiments.papers.fikit.pairs import MOST_ABOVE, SPEEDUP, distribution
from gpusched_env.experiments.papers.fikit.runs import ENDS

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame
    from gpusched_env.experiments.papers.fikit.figures import Figures

LOW_RATIO = (0.86, 1.0)
"""Published range of low-priority completion times under preemptive sharing. Which is divided by which is not said."""
OVERHEAD = 0.05
"""Published bound."""
SPANNED = 0.5
"""Own criterion: so much of the published range, on a logarithmic scale, lies within the middle nine tenths."""
FILLED, DELAYED = 0.05, 1.05
"""Own criteria of gap filling: at least this share of the time is others' work, while the high-priority service takes
at most this much of its time alone (median pair)."""
DEAR_US = 10.0
"""Cost of an interception in the control of the overhead."""


class Judged(NamedTuple):
    """A claim in one run of a setting."""

    comes_out: bool
    figure: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim in a setting, with and without its mechanism."""

    claim: str
    published: str
    """What the paper says; empty where a criterion is our own."""
    criterion: str
    """When it comes out."""
    setting: str
    services: int
    """Low-priority ones."""
    ours: Judged
    control: str
    """What is switched off."""
    without: Judged

    @property
    def holds(self) -> bool:
        """It comes out, and fails in the control."""
        return self.ours.comes_out and not self.without.comes_out

    @property
    def verdict(self) -> str:
        """``shown``, ``not shown`` (it also comes out in the control) or ``off``."""
        return verdict_of(self.ours.comes_out, self.without.comes_out)


def claims(figures: Figures) -> list[Claimed]:
    """Of everything that was run, in the order of the page."""
    return [*_accelerated(figures), *_filled(figures), *_low_priority(figures), *_overhead(figures)]


def _accelerated(figures: Figures) -> Iterator[Claimed]:
    """High-priority services, by setting and number of the others; the mechanism is the order of priorities."""
    kinds: dict[str, tuple[str, str, Callable[[DataFrame], Judged]]] = {
        f"more than half of the cases above {MOST_ABOVE}": (
            f"more than half above {MOST_ABOVE}",
            "of all pairs",
            _above,
        ),
        "speed-ups": (
            f"{SPEEDUP[0]} to {SPEEDUP[1]}",
            f"5 % and 95 % quantile of all pairs inside, and {SPANNED:.0%} of the range between them",
            _in_range,
        ),
    }
    for what, (published, criterion, judge) in kinds.items():
        for setting, lows in figures.by_co_runners:
            ours = judge(figures.speedups(setting, lows))
            without = judge(figures.speedups(setting, lows, setting.one_queue))
            yield Claimed(what, published, criterion, setting.text, lows, ours, "priorities: one queue", without)
            if setting == MPS and lows in ENDS:
                bare = judge(figures.speedups(setting, lows, NO_SCHEDULER))
                yield Claimed(what, published, criterion, setting.text, lows, ours, "FIKIT: MPS alone", bare)


def _above(pairs: DataFrame) -> Judged:
    share = distribution(pairs)["above"]
    return Judged(share > 0.5, f"{share:.0%}")


def _in_range(pairs: DataFrame) -> Judged:
    found = distribution(pairs)
    inside = found["p5"] >= SPEEDUP[0] and found["p95"] <= SPEEDUP[1]
    text = f"{found['p5']:.2f} to {found['p95']:.2f}, {found['spanned']:.0%} of the range"
    return Judged(inside and found["spanned"] >= SPANNED, text)


def _filled(figures: Figures) -> Iterator[Claimed]:
    for setting in SETTINGS:
        pairs = figures.speedups(setting, 1)
        alone_us = figures.networks.alone_us[setting.gpu][pairs.high].to_numpy()
        with_it, without = (
            _gaps(pairs[f"low_share: {mode}"], pairs[mode] / alone_us)
            for mode in (setting.fikit, setting.nothing_filled)
        )
        criterion = f"at least {FILLED:.0%} of the time, high priority at most {DELAYED:g} times its time alone"
        control = "filling: threshold above every gap"
        yield Claimed("gaps are filled", "", criterion, setting.text, 1, with_it, control, without)


def _gaps(shares: Any, slowdowns: Any) -> Judged:
    share, slowdown = float(shares.mean()), float(slowdowns.median())
    return Judged(share >= FILLED and slowdown <= DELAYED, f"{share:.1%} of the time, {slowdown:.3f} times")


def _low_priority(figures: Figures) -> Iterator[Claimed]:
    """Completion times of low-priority services beside intermittent requests; the mechanism is gap filling."""
    published = f"{LOW_RATIO[0]:g} to {LOW_RATIO[1]:g}"
    criterion = "5 % and 95 % quantile of all pairs inside, in either direction"
    for setting, loads in SHARED_NOW_AND_THEN.items():
        for load in loads:
            ours, without = (
                _ratio(figures.low_ratios(setting, load, mode)) for mode in (setting.fikit, setting.nothing_filled)
            )
            what, control = f"low-priority ratio, requests {load:.0%} of the time", "filling: threshold above every gap"
            yield Claimed(what, published, criterion, setting.text, 1, ours, control, without)


def _ratio(ratios: Any) -> Judged:
    """Of default sharing over FIKIT, or the inverse: the direction that comes out, or the first."""
    found = [
        (direction, *np.percentile(of.dropna(), (5, 95)))
        for direction, of in (("default over FIKIT", ratios), ("FIKIT over default", 1.0 / ratios))
    ]
    direction, least, most = next((each for each in found if _within(*each[1:])), found[0])
    return Judged(_within(least, most), f"{direction}: {least:.2f} to {most:.2f}")


def _within(least: float, most: float) -> bool:
    # Published with two decimals.
    return bool(round(least, 2) >= LOW_RATIO[0] and round(most, 2) <= LOW_RATIO[1])


def _overhead(figures: Figures) -> Iterator[Claimed]:
    """Largest of a service alone; that it can fail is all that its control says, as the cost is an assumption."""
    overheads = figures.overheads()
    for gpu in overheads.columns:
        ours, dear = (
            Judged(bool(overheads[gpu][us] < OVERHEAD), f"{overheads[gpu][us]:.1%}") for us in (COST_US, DEAR_US)
        )
        control = f"cheap interception: {DEAR_US:g} us a launch instead of {COST_US:g}"
        below = f"below {OVERHEAD:.0%}"
        yield Claimed("overhead", below, "largest of all services alone", gpu, 0, ours, control, dear)

"""What the speed-up depends on, and why some pairs lie outside the paper's range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.reproduce.fikit.headline import SPEEDUP
from gpusched_env.experiments.reproduce.fikit.pairs import ANSWER_WAITS, Network, Pair

FEATURES: dict[str, Callable[[Network], float]] = {
    "waits a job": lambda network: network.waits,
    "waits per ms": lambda network: network.waits_per_ms,
    "gap share": lambda network: network.gap_share,
    "launches per ms": lambda network: network.kernels_per_ms,
    "time alone": lambda network: network.alone_us,
}


@dataclass(frozen=True, slots=True)
class Driver:
    """How the speed-up goes with a property of one of the services (Spearman's rank correlation, -1 to 1)."""

    side: str
    """``high`` or ``low``: whose property."""
    feature: str
    overall: float
    """Over all pairs."""
    partner_fixed: float
    """Over the pairs of one and the same other service, averaged over those."""


@dataclass(frozen=True, slots=True)
class Outsider:
    """A pair outside the paper's range."""

    high: str
    low: str
    speedup: float
    reason: str


def drivers(pairs: Sequence[Pair]) -> list[Driver]:
    """Every property of either service against the speed-up."""
    speedups = np.array([pair.speedup for pair in pairs])
    found = []
    for side, other in (("high", "low"), ("low", "high")):
        partners = np.array([getattr(pair, other).name for pair in pairs])
        for name, feature in FEATURES.items():
            values = np.array([feature(getattr(pair, side)) for pair in pairs])
            fixed = [rank_correlation(values[partners == p], speedups[partners == p]) for p in sorted(set(partners))]
            known = [value for value in fixed if not math.isnan(value)]
            mean = sum(known) / len(known) if known else math.nan
            found.append(Driver(side, name, rank_correlation(values, speedups), mean))
    return found


def rank_correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Spearman's rank correlation; equal values share their mean rank. NaN if one side does not vary."""
    ranks = np.array([_ranks(a), _ranks(b)])
    if len(a) < 2 or not ranks.std(axis=1).all():
        return math.nan
    return float(np.corrcoef(ranks)[0, 1])


def outsiders(pairs: Sequence[Pair]) -> list[Outsider]:
    """The pairs outside the published range, fastest first."""
    outside = [pair for pair in pairs if not SPEEDUP[0] <= pair.speedup <= SPEEDUP[1]]
    outside.sort(key=lambda pair: -pair.speedup)
    return [Outsider(pair.high.name, pair.low.name, pair.speedup, _reason(pair)) for pair in outside]


def _reason(pair: Pair) -> str:
    high, low = pair.high, pair.low
    if pair.speedup > SPEEDUP[1]:
        lost_us = (pair.default.high_us - high.alone_us) / high.waits
        return (
            f"{high.waits} waits a job, each of which gives away the GPU for {lost_us:.0f} us; "
            f"{low.name} leaves it idle only {low.gap_share:.0%} of the time"
        )
    if high.waits > ANSWER_WAITS:
        return f"{low.name} has gaps of {low.gap_share:.0%} itself: its turns are short"
    if high.gap_share >= low.gap_share:
        return (
            f"waits only for its answer, with gaps of {high.gap_share:.0%}: "
            f"its launches queue up during {low.name}'s turns"
        )
    return f"waits only for its answer, and {low.name} has gaps of {low.gap_share:.0%}: its turns are short"


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    means: NDArray[np.float64] = (last - (counts - 1) / 2.0)[places]
    return means

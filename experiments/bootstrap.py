"""Percentile bootstrap confidence intervals over seeds (Efron & Tibshirani 1993, chapter 13)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
"""Confidence level of every interval."""
RESAMPLES = 2000
"""Bootstrap resamples behind every interval."""
_RNG_SEED = 20080601
"""Own seed, so that intervals depend on nothing but the values."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds with its confidence interval."""

    mean: float
    """NaN without a value."""
    low: float | None
    high: float | None
    """``None`` with fewer than two values: one episode says nothing about the spread."""
    seeds: int
    """Values that the mean is over (seeds that define the figure)."""

    @property
    def half_width(self) -> float | None:
        """The longer arm of the interval."""
        if self.low is None or self.high is None:
            return None
        return max(self.mean - self.low, self.high - self.mean)


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean of ``values`` (one a seed; NaN entries are left out) and its 95 % interval."""
    finite = np.array([v for v in values if math.isfinite(v)])
    if len(finite) == 0:
        return Interval(math.nan, None, None, 0)
    mean = float(np.mean(finite))
    if len(finite) == 1:
        return Interval(mean, None, None, 1)
    low, high = _percentiles(np.mean(finite[_resamples(len(finite))], axis=1))
    return Interval(mean, low, high, len(finite))


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How a figure differs from a baseline's on the same seeds."""

    difference: Interval
    """Mean of figure minus baseline."""
    relative: Interval
    """Mean of the figure over the baseline's mean, minus one; NaN if the baseline's mean is 0."""


def paired_difference(values: Sequence[float], baseline: Sequence[float]) -> PairedDifference:
    """Compare ``values`` with ``baseline``, seed by seed (equal lengths; pairs with a NaN are left out)."""
    pairs = [(v, b) for v, b in zip(values, baseline, strict=True) if math.isfinite(v) and math.isfinite(b)]
    own, other = np.array([v for v, _ in pairs]), np.array([b for _, b in pairs])
    difference = mean_interval([float(d) for d in own - other]) if pairs else mean_interval([])
    if not pairs or float(np.mean(other)) == 0.0:
        return PairedDifference(difference, mean_interval([]))
    relative = float(np.mean(own) / np.mean(other)) - 1.0
    if len(pairs) == 1:
        return PairedDifference(difference, Interval(relative, None, None, 1))
    draws = _resamples(len(pairs))
    own_means, other_means = np.mean(own[draws], axis=1), np.mean(other[draws], axis=1)
    defined = other_means != 0.0
    low, high = _percentiles(own_means[defined] / other_means[defined] - 1.0)
    return PairedDifference(difference, Interval(relative, low, high, len(pairs)))


def _resamples(n: int) -> NDArray[np.int64]:
    return np.random.default_rng(_RNG_SEED).integers(0, n, size=(RESAMPLES, n))


def _percentiles(means: NDArray[np.float64]) -> tuple[float, float]:
    tail = 100.0 * (1.0 - LEVEL) / 2.0
    low, high = np.percentile(means, (tail, 100.0 - tail))
    return float(low), float(high)

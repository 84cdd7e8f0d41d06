"""Means over episodes, differences between schedulers and ranks, with bootstrap confidence intervals.

Intervals are percentiles of bootstrap draws (Efron & Tibshirani 1993, chapter 13), as :func:`scipy.stats.bootstrap`
finds them with the same seed. That takes a second to import, and milliseconds for each of thousands of figures.
Schedulers that ran on the same seeds are drawn together, since equal seeds mean equal arrivals. Rankings follow
Agarwal et al., *Deep Reinforcement Learning at the Edge of the Statistical Precipice* (NeurIPS 2021): interquartile
mean and probability of improvement. Where there are several problems, these are what is drawn, each with all of its
seeds: how a scheduler does on problems of this kind is the question, not how it does on these.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEVEL = 0.95
"""Confidence level of every interval."""
RESAMPLES = 2000
"""Bootstrap draws behind every interval."""
METHOD = "percentile bootstrap over seeds"
FEW_SEEDS = 5
"""Seeds below which an interval says little: percentiles of the draws are then too narrow by a third or more."""
_RNG_SEED = 20080601
"""Own seed, so that intervals depend on nothing but the values."""
_TAIL = (1.0 - LEVEL) / 2.0
"""Share of the draws on either side of an interval."""


@functools.lru_cache(maxsize=4)
def _picks(units: int) -> NDArray[np.int64]:
    """Which of so many units each draw holds, shape ``(RESAMPLES, units)``: the same for every figure."""
    return np.random.default_rng(_RNG_SEED).integers(0, units, (RESAMPLES, units))


@functools.lru_cache(maxsize=4)
def _distinct_picks(units: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """:func:`_picks` whatever their order: how often each unit is in a draw, and how many draws are so."""
    distinct, often = np.unique(np.sort(_picks(units), axis=1), axis=0, return_counts=True)
    return np.stack([np.bincount(row, minlength=units) for row in distinct]), often


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure with its confidence interval."""

    mean: float
    """The mean, or another figure; NaN without a value."""
    low: float | None
    high: float | None
    """``None`` with fewer than two values: one episode says nothing about the spread."""
    seeds: int
    """Values that the figure is over (seeds that define it)."""

    @property
    def half_width(self) -> float | None:
        """The longer arm of the interval."""
        if self.low is None or self.high is None:
            return None
        return max(self.mean - self.low, self.high - self.mean)

    def __str__(self) -> str:
        """The figure with its bounds, or alone where the seeds do not differ."""
        alone = Interval(self.mean, None, None, self.seeds)
        shown = [None if bound is None else f"{bound:.4g}" for bound in (self.mean, self.low, self.high)]
        return (alone if len(set(shown)) == 1 else self).text("{:.4g}")

    def text(self, form: str) -> str:
        """The figure and its bounds in brackets, each as ``form`` says."""
        # What is 0 but for rounding has no sign.
        bounds = (self.mean, self.low, self.high)
        value, low, high = (None if b is None else form.format(0.0 if abs(b) < 1e-12 else b) for b in bounds)
        return str(value) if low is None or high is None else f"{value} [{low}, {high}]"

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        mean = self.mean if math.isfinite(self.mean) else None
        return {"mean": mean, "low": self.low, "high": self.high, "seeds": self.seeds}


def pooled_percentile(values: Sequence[Floats], percent: float) -> Interval:
    """A percentile of all values together, with its interval over seeds, which are drawn as wholes.

    Args:
        values: of each seed, shape ``(jobs,)``; a seed without any counts as one.
        percent: 0 to 100; the smallest value that this share of all does not exceed.
    """
    pooled = np.sort(np.concatenate([np.empty(0), *values]))
    if len(pooled) == 0:
        return Interval(math.nan, None, None, 0)
    value = float(np.percentile(pooled, percent, method="inverted_cdf"))
    if len(values) < 2:
        return Interval(value, None, None, len(values))
    # How many values of each seed are among the lowest k + 1 of all, shape (seeds, jobs).
    below = np.stack([np.searchsorted(np.sort(own), pooled, side="right") for own in values])
    # Draws that hold the same seeds have the same percentile: it is found once.
    times, often = _distinct_picks(len(values))
    jobs = times @ below[:, -1]
    needed = np.ceil(jobs * (percent / 100.0) * (1.0 - 1e-12))
    low, high = np.zeros(len(times), np.int64), np.full(len(times), len(pooled) - 1)
    while np.any(low < high):
        middle = (low + high) // 2
        enough = np.einsum("ds,sd->d", times, below[:, middle]) >= needed
        low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
    drawn = np.repeat(pooled[low][jobs > 0], often[jobs > 0])
    bounds = np.percentile(drawn, (100.0 * _TAIL, 100.0 - 100.0 * _TAIL), method="inverted_cdf")
    return Interval(value, float(bounds[0]), float(bounds[1]), len(values))


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """How a figure differs from a baseline's on the same seeds."""

    difference: Interval
    """Mean of figure minus baseline."""
    relative: Interval
    """Mean of the figure over the baseline's mean, minus one; NaN if the baseline's mean is 0."""

    def __str__(self) -> str:
        return f"{self.difference}, relative {self.relative.text('{:+z.1%}')}"


def known(relative: Interval) -> bool:
    """Whether a relative difference is there beyond chance; of one value, whether it is more than half a percent."""
    if relative.low is None or relative.high is None:
        return abs(relative.mean) > 0.005
    return not relative.low <= 0.0 <= relative.high


@dataclass(frozen=True, slots=True)
class RankStanding:
    """One scheduler among others on the same episodes; lower costs are better."""

    scheduler: str
    mean: Interval
    """The mean of the cost."""
    iqm: Interval
    """Interquartile mean of the cost: without the best and the worst quarter of the episodes."""
    rank: Interval
    """The rank by mean cost, 1 is best; ``mean`` is the rank itself."""
    against: Interval
    """Relative difference of the mean cost from the reference scheduler's, on the same episodes."""
    improvement: Interval
    """Probability of a lower cost than the reference's on an episode; equal costs count half."""


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean of ``values`` (one a seed; NaN entries are left out) and its 95 % interval."""
    finite = np.array([v for v in values if math.isfinite(v)])
    if len(finite) == 0:
        return Interval(math.nan, None, None, 0)
    return _intervals(lambda own: own.mean(-1), finite[None, None])[0]


def paired_difference(values: Sequence[float], baseline: Sequence[float]) -> PairedDifference:
    """Compare ``values`` with ``baseline``, seed by seed (equal lengths; pairs with a NaN are left out)."""
    pairs = [(v, b) for v, b in zip(values, baseline, strict=True) if math.isfinite(v) and math.isfinite(b)]
    difference = mean_interval([v - b for v, b in pairs])
    if not pairs or math.fsum(b for _, b in pairs) == 0.0:
        return PairedDifference(difference, mean_interval([]))
    relative = _intervals(lambda both: both.mean(-1) / both[1].mean(-1) - 1.0, np.array(pairs).T[:, None])[0]
    return PairedDifference(difference, relative)


def standings(costs: Mapping[str, Floats], reference: str) -> list[RankStanding]:
    """Every scheduler, best mean first.

    Args:
        costs: by scheduler, shape ``(problems, seeds)``, the same for all. Intervals are over problems where there are
            several, else over seeds.
        reference: the scheduler that others are compared with.
    """
    names = list(costs)
    every = np.stack([costs[name] for name in names])
    r = names.index(reference)
    figures: tuple[Callable[[Floats], Floats], ...] = (
        lambda own: own.mean(-1),
        interquartile_mean,
        lambda own: _ranks(own.mean(-1)),
        lambda own: own.mean(-1) / own[r].mean(-1) - 1.0,
        lambda own: ((own < own[r]) + 0.5 * (own == own[r])).mean(-1),
    )
    each = (_intervals(figure, every) for figure in figures)
    found = [RankStanding(name, *intervals) for name, *intervals in zip(names, *each, strict=True)]
    return sorted(found, key=lambda standing: standing.mean.mean)


def interquartile_mean(values: Floats) -> Floats:
    """Mean of the middle half along the last axis."""
    ordered = np.sort(values, axis=-1)
    cut = ordered.shape[-1] // 4
    mean: Floats = ordered[..., cut : ordered.shape[-1] - cut].mean(-1)
    return mean


def _ranks(means: Floats) -> Floats:
    """Rank along the first axis, 1 for the lowest; equal ones share the better rank."""
    lower: Floats = (means[None] < means[:, None]).sum(1) + 1.0
    return lower


def _intervals(figure: Callable[[Floats], Floats], values: Floats) -> list[Interval]:
    """A figure of every scheduler with its interval.

    Args:
        figure: takes shape ``(schedulers, ..., episodes)``, gives shape ``(schedulers, ...)``.
        values: shape ``(schedulers, problems, seeds)``. Problems are drawn, the same for all schedulers, or the seeds
            of a single one.
    """
    _, problems, seeds = values.shape
    drawn, each = (problems, seeds) if problems > 1 else (seeds, 1)
    units = values.reshape(len(values), drawn, each)
    found = figure(values.reshape(len(values), -1))
    if drawn < 2:
        return [Interval(float(value), None, None, problems * seeds) for value in found]
    with np.errstate(divide="ignore", invalid="ignore"):
        draws = figure(units[:, _picks(drawn)].reshape(len(units), RESAMPLES, drawn * each))
    draws = np.sort(draws, axis=-1)
    bounds = (_quantile(draws, share) for share in (_TAIL, 1.0 - _TAIL))
    rows = zip(found, *bounds, strict=True)
    return [Interval(float(value), _defined(low), _defined(high), problems * seeds) for value, low, high in rows]


def _quantile(ordered: Floats, share: float) -> Floats:
    """A quantile along the last axis of what is in order there, linear between neighbours; NaN where one is."""
    place = share * RESAMPLES + (1.0 - share)
    first, part = int(place) - 1, place % 1.0
    found: Floats = (1.0 - part) * ordered[..., first] + part * ordered[..., first + 1]
    found[np.isnan(ordered[..., -1])] = math.nan
    return found


def _defined(bound: float) -> float | None:
    return float(bound) if math.isfinite(bound) else None

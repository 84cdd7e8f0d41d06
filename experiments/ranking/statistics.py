"""Statistics over paired episodes: interquartile means, ranks and probabilities of improvement, with intervals.

As Agarwal et al. recommend (*Deep Reinforcement Learning at the Edge of the Statistical Precipice*, NeurIPS
2021): interquartile mean, stratified percentile bootstrap, probability of improvement. A stratum is a variant of the
scenario; within it, seeds are drawn with replacement, the same ones for all schedulers, since equal seeds mean
equal arrivals.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.bootstrap import LEVEL, RESAMPLES, Interval

Floats = NDArray[np.float64]
_RNG_SEED = 20210831
"""Own seed, so that intervals depend on nothing but the values."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One scheduler among others on the same episodes; lower costs are better."""

    scheduler: str
    mean: Interval
    """Of the cost."""
    iqm: Interval
    """Interquartile mean of the cost: without the best and the worst quarter of the episodes."""
    rank: Interval
    """By mean cost, 1 is best; ``mean`` is the rank itself."""
    against: Interval
    """Relative difference of the mean cost from the reference scheduler's, on the same episodes."""
    improvement: Interval
    """Probability of a lower cost than the reference's on an episode; equal costs count half."""


def standings(costs: Mapping[str, Floats], reference: str) -> list[Standing]:
    """Every scheduler, best mean first.

    Args:
        costs: by scheduler, shape ``(variants, seeds)``, the same for all.
        reference: the scheduler that others are compared with.
    """
    names = list(costs)
    values = np.stack([costs[name] for name in names])
    draws = _resampled(values)
    ranks, rank_draws = _ranks(values.mean((1, 2))), _ranks(draws.mean((2, 3)))
    r = names.index(reference)

    def interval(figure: Callable[[Floats, Floats], Floats], s: int) -> Interval:
        """Of a figure of scheduler ``s`` and the reference, given the last two axes."""
        return _interval(float(figure(values[s], values[r])), figure(draws[:, s], draws[:, r]), values[s].size)

    found = [
        Standing(
            scheduler=name,
            mean=interval(lambda own, _: own.mean((-2, -1)), s),
            iqm=interval(lambda own, _: interquartile_mean(own), s),
            rank=_interval(float(ranks[s]), rank_draws[:, s], values[s].size),
            against=interval(lambda own, other: own.mean((-2, -1)) / other.mean((-2, -1)) - 1.0, s),
            improvement=interval(lambda own, other: _improvement(own, other), s),
        )
        for s, name in enumerate(names)
    ]
    return sorted(found, key=lambda standing: standing.mean.mean)


def interquartile_mean(values: Floats) -> Floats:
    """Mean of the middle half of all values of the last two axes."""
    flat = np.sort(values.reshape(*values.shape[:-2], -1), axis=-1)
    cut = flat.shape[-1] // 4
    mean: Floats = flat[..., cut : flat.shape[-1] - cut].mean(-1)
    return mean


def _improvement(own: Floats, other: Floats) -> Floats:
    won: Floats = ((own < other) + 0.5 * (own == other)).mean((-2, -1))
    return won


def _ranks(means: Floats) -> Floats:
    """Rank along the last axis, 1 for the lowest; equal ones share the better rank."""
    lower: Floats = (means[..., None, :] < means[..., :, None]).sum(-1) + 1.0
    return lower


def _resampled(values: Floats) -> Floats:
    """Bootstrap draws, shape ``(RESAMPLES, schedulers, variants, seeds)``."""
    _, variants, seeds = values.shape
    picks = _picks(variants, seeds)
    drawn: Floats = np.stack([values[:, v, picks[:, v]] for v in range(variants)], axis=2).transpose(1, 0, 2, 3)
    return drawn


@functools.cache
def _picks(variants: int, seeds: int) -> NDArray[np.int64]:
    return np.random.default_rng(_RNG_SEED).integers(0, seeds, (RESAMPLES, variants, seeds))


def _interval(value: float, draws: Floats, episodes: int) -> Interval:
    if episodes < 2:
        return Interval(value, None, None, episodes)
    tail = 100.0 * (1.0 - LEVEL) / 2.0
    low, high = np.percentile(draws, (tail, 100.0 - tail))
    return Interval(value, float(low), float(high), episodes)

"""Bootstrap intervals: known cases, invariants, and that they cover what they claim to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.experiments.lib.statistics import RESAMPLES, mean_interval, paired_difference, pooled_percentile
from tests.refusals import refused

finite = st.floats(-1e6, 1e6)


def test_one_seed_has_no_interval() -> None:
    interval = mean_interval([4.0])
    assert (interval.mean, interval.low, interval.high, interval.seeds) == (4.0, None, None, 1)
    assert interval.half_width is None


def test_no_value_has_no_mean() -> None:
    interval = mean_interval([math.nan, math.nan])
    assert math.isnan(interval.mean)
    assert (interval.low, interval.high, interval.seeds) == (None, None, 0)


def test_equal_values_have_a_point_interval() -> None:
    interval = mean_interval([2.5] * 6)
    assert (interval.mean, interval.low, interval.high, interval.half_width) == (2.5, 2.5, 2.5, 0.0)


def test_undefined_values_are_left_out() -> None:
    assert mean_interval([1.0, math.nan, 3.0]) == mean_interval([1.0, 3.0])
    assert mean_interval([1.0, math.nan, 3.0]).seeds == 2


def test_two_values_give_the_extremes() -> None:
    # A resample is (a, a) or (b, b) with probability 1/4 each: both tails pass 2.5 %.
    interval = mean_interval([0.0, 10.0])
    assert (interval.low, interval.high) == (0.0, 10.0)


@given(st.lists(finite, min_size=2, max_size=12))
def test_the_interval_holds_the_mean_and_lies_within_the_values(values: list[float]) -> None:
    interval = mean_interval(values)
    slack = 1e-6 * max(1.0, *map(abs, values))
    assert interval.low is not None
    assert interval.high is not None
    assert min(values) - slack <= interval.low <= interval.high + slack <= max(values) + 2.0 * slack


def test_intervals_cover_the_true_mean_about_as_often_as_claimed() -> None:
    rng = np.random.default_rng(5)
    hits = 0
    for _ in range(300):
        interval = mean_interval([float(v) for v in rng.normal(3.0, 1.0, 30)])
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= 3.0 <= interval.high
    # The percentile bootstrap falls a little short of 95 % with 30 values.
    assert 0.90 <= hits / 300 <= 0.98


def test_pairing_removes_what_the_seeds_have_in_common() -> None:
    baseline = [10.0, 50.0, 200.0, 90.0]
    paired = paired_difference([b + 2.0 for b in baseline], baseline)
    assert paired.difference.mean == pytest.approx(2.0)
    assert paired.difference.low == pytest.approx(2.0)
    assert paired.difference.high == pytest.approx(2.0)
    assert paired.relative.mean == pytest.approx(8.0 / 350.0)


def test_a_constant_factor_is_a_point_relative_difference() -> None:
    baseline = [1.0, 2.0, 8.0]
    relative = paired_difference([0.75 * b for b in baseline], baseline).relative
    assert (relative.mean, relative.low, relative.high) == pytest.approx((-0.25, -0.25, -0.25))


def test_pairs_with_an_undefined_side_are_left_out() -> None:
    paired = paired_difference([1.0, math.nan, 5.0], [1.0, 2.0, math.nan])
    assert paired.difference.seeds == 1
    assert paired.difference.mean == 0.0
    assert paired.difference.low is None


def test_a_zero_baseline_has_no_relative_difference() -> None:
    paired = paired_difference([1.0, 2.0], [0.0, 0.0])
    assert paired.difference.mean == 1.5
    assert math.isnan(paired.relative.mean)


def test_unequal_lengths_are_an_error() -> None:
    with refused(ValueError, "zip"):
        paired_difference([1.0], [1.0, 2.0])


@pytest.mark.parametrize("percent", [50.0, 95.0, 99.0])
def test_a_pooled_percentile_draws_whole_seeds(percent: float) -> None:
    """As drawing the seeds one by one and pooling their jobs does."""
    rng = np.random.default_rng(3)
    values = [rng.lognormal(2.0 + 0.3 * seed, 0.5, 5 + 4 * seed) for seed in range(6)] + [np.empty(0)]
    found = pooled_percentile(values, percent)
    assert found.mean == np.percentile(np.concatenate(values), percent, method="inverted_cdf")
    picks = np.random.default_rng(20080601).integers(0, len(values), (RESAMPLES, len(values)))
    pools = [np.concatenate([values[i] for i in row]) for row in picks]
    drawn = [np.percentile(pool, percent, method="inverted_cdf") for pool in pools if len(pool)]
    low, high = np.percentile(drawn, (2.5, 97.5), method="inverted_cdf")
    assert (found.low, found.high) == pytest.approx((low, high))

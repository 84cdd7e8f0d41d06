"""Lengths of prompts and answers."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.workload.serving import QUANTILES, Geometric, ListedLengths, Lognormal, lengths


def test_values_are_drawn_as_they_are() -> None:
    assert lengths(ListedLengths(values=(7, 3, 7))) == (7, 3, 7)
    assert lengths(ListedLengths(values=(7, 3, 7), most=5)) == (5, 3, 5)


def test_quantiles_of_a_lognormal() -> None:
    found = lengths(Lognormal(median=100.0, sigma=1.0, most=10_000))
    assert len(found) == QUANTILES
    assert sorted(found) == list(found)
    assert statistics.median(found) == pytest.approx(100.0, abs=1.0)
    # A sixth lies more than a standard deviation above: 271.8.
    assert sum(length > 271 for length in found) == round(0.15866 * QUANTILES)
    assert lengths(Lognormal(median=100.0, sigma=0.0, most=200)) == (100,) * QUANTILES
    clipped = lengths(Lognormal(median=100.0, sigma=1.0, least=50, most=150))
    assert (clipped[0], clipped[-1]) == (50, 150)


def test_quantiles_of_a_geometric_distribution() -> None:
    found = lengths(Geometric(mean=4.0, most=1000))
    # A quarter ends at once, and of the others a quarter each time.
    assert found.count(1) == QUANTILES // 4
    assert found.count(2) == 3 * QUANTILES // 16
    assert statistics.fmean(found) == pytest.approx(4.0, rel=0.02)
    assert max(lengths(Geometric(mean=4.0, most=6))) == 6
    assert set(lengths(Geometric(mean=1.0, most=6))) == {1}


@given(
    median=st.floats(1.0, 2**20), sigma=st.floats(0.0, 10.0), least=st.integers(1, 2**20), most=st.integers(1, 2**20)
)
def test_lengths_are_within_their_bounds(median: float, sigma: float, least: int, most: int) -> None:
    for found in (
        lengths(Lognormal(median=median, sigma=sigma, least=min(least, most), most=max(least, most))),
        lengths(Geometric(mean=median, most=most)),
    ):
        assert min(found) >= 1
        assert max(found) <= max(least, most)

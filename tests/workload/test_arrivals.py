"""Arrival processes: their draws, and the distributions that come of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.workload.arrivals import Arrivals, Backlog, Bursts, ClosedLoop, Periodic, Poisson


class Draws:
    """A generator that gives out the uniform draws it was made with, and nothing else."""

    def __init__(self, *draws: float) -> None:
        self._draws = list(draws)

    def random(self) -> float:
        return self._draws.pop(0)

    def spent(self) -> bool:
        return not self._draws


def arrivals(process: Arrivals, rng: np.random.Generator, count: int) -> list[float]:
    """Arrivals of jobs that complete 5 us after they arrived."""
    times = [process.first_us(rng)]
    while len(times) < count:
        times.append(process.next_us(rng, times[-1], times[-1] + 5.0))
    return times


@pytest.mark.parametrize(
    ("process", "draws", "expected"),
    [
        # The quantile of an exponential of mean 1000 at 1/2 is 1000 ln 2, at 0 it is 0.
        (Poisson(rate_per_s=1000.0, start_us=7.0), (0.5, 0.0, 0.75), [7 + 693.147, 7 + 693.147, 7 + 3 * 693.147]),
        # Mean size 4: the burst goes on where a draw is below 3/4.
        (Bursts(rate_per_s=1000.0, mean_size=4.0), (0.5, 0.7499, 0.75, 0.5), [693.147, 693.147, 2 * 693.147]),
        (ClosedLoop(think_us=2.0, start_us=1.0), (), [1.0, 8.0, 15.0]),
        (Periodic(period_us=10.0), (), [0.0, 10.0, 20.0]),
        (Backlog(start_us=3.0), (), [3.0, 3.0, 3.0]),
    ],
)
def test_arrivals_by_hand_use_uniform_draws_only(
    process: Arrivals, draws: tuple[float, ...], expected: list[float]
) -> None:
    rng = Draws(*draws)
    assert arrivals(process, rng, 3) == pytest.approx(expected, rel=1e-6)  # type: ignore[arg-type]
    assert rng.spent()


def test_poisson_gaps_are_exponential() -> None:
    times = arrivals(Poisson(rate_per_s=250.0), np.random.default_rng(0), 20_000)
    gaps = np.diff(times)
    for share in (0.1, 0.5, 0.9, 0.99):
        assert np.mean(gaps < -4000.0 * math.log(1 - share)) == pytest.approx(share, abs=0.01)


def test_bursts_come_at_their_rate_and_mean_size() -> None:
    times = np.array(arrivals(Bursts(rate_per_s=100.0, mean_size=3.0), np.random.default_rng(0), 30_000))
    starts = np.unique(times)
    assert len(times) / len(starts) == pytest.approx(3.0, rel=0.03)
    assert np.diff(starts).mean() == pytest.approx(10_000.0, rel=0.03)

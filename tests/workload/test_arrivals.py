"""Arrival processes: their draws, and the distributions that come of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpusched_env.hardware.clock import NEVER, to_us
from gpusched_env.workload import host
from gpusched_env.workload.tenant import ArrivalProcess, Backlog, Bursts, ClosedLoop, Periodic, Poisson, Regimes, Trace
from gpusched_env.workload.trace_replay import replay_of


class Draws:
    """A generator that gives out the uniform draws it was made with, and nothing else."""

    def __init__(self, *draws: float) -> None:
        self._draws = list(draws)

    def random(self) -> float:
        return self._draws.pop(0)

    def spent(self) -> bool:
        return not self._draws


class Waiting:
    """What hosts read of a world of one tenant whose jobs come; the horizon is at 300 us."""

    def __init__(self, process: ArrivalProcess, rng: Any) -> None:
        replay = replay_of(process) if isinstance(process, Trace) else None
        self.programs = [SimpleNamespace(**host.arrival_numbers(process, replay))]
        self.recorded = [() if replay is None else replay.times_ps]
        self.generators = [(rng, None)]
        self.clients = [SimpleNamespace(regime=0, arrived=0)]
        self.rules = SimpleNamespace(arrivals_until_ps=NEVER, horizon_us=300.0)
        self.now_ps = self.first_ps = 0

    def set_timer(self, kind: int, number: int, at_ps: int) -> None:
        assert (kind, number) == (host.ARRIVAL, 0)
        self.first_ps = at_ps


def arrivals(process: ArrivalProcess, rng: Any, count: int) -> list[float]:
    """Arrivals of jobs that complete 5 us after they arrived."""
    world = Waiting(process, rng)
    host.begin_arrivals(world, 0)
    times = [to_us(world.first_ps)]
    while len(times) < count:
        world.now_ps = world.first_ps + (5_000_000 if process.closed else 0)
        world.clients[0].arrived += 1
        host.send_next(world, 0)
        times.append(to_us(world.first_ps))
    return times


@pytest.mark.parametrize(
    ("process", "draws", "expected"),
    [
        # The quantile of an exponential of mean 1000 at 1/2 is 1000 ln 2, at 0 it is 0.
        (Poisson(rate_per_s=1000.0, start_us=7.0), (0.5, 0.0, 0.75), [7 + 693.147, 7 + 693.147, 7 + 3 * 693.147]),
        # Mean size 4: the burst goes on where a draw is below 3/4.
        (Bursts(rate_per_s=1000.0, mean_size=4.0), (0.5, 0.7499, 0.75, 0.5), [693.147, 693.147, 2 * 693.147]),
        # Calm at first: 0.5 is not below the share of busy times. There, nothing but a switch, 1000 ln 2 later at 1/2.
        # In busy times 3 jobs and 1 switch a millisecond: 250 ln 2 to whatever comes, a job where a draw is below 3/4.
        (
            Regimes(rate_per_s=0.0, busy_rate_per_s=3000.0, calm_us=1000.0, busy_us=1000.0),
            (0.5, 0.5, 0.0, 0.5, 0.7499, 0.5, 0.75, 0.5, 0.0, 0.0, 0.0, 0.5, 0.1),
            [866.434, 2 * 866.434, 2 * 866.434 + 173.287],
        ),
        (ClosedLoop(think_us=2.0, start_us=1.0), (), [1.0, 8.0, 15.0]),
        (Periodic(period_us=10.0), (), [0.0, 10.0, 20.0]),
        (Backlog(start_us=3.0), (), [3.0, 3.0, 3.0]),
        (Trace(times_us=(1.0, 5.0, 5.0), start_us=2.0), (), [3.0, 7.0, 7.0]),
        (Trace(times_us=(1.0, 5.0), at_end="repeats", speed=2.0), (), [0.5, 2.5, 5.0]),
        # Behind the end of a trace comes nothing: after the horizon the episode is over.
        (Trace(times_us=(1.0, 5.0)), (), [1.0, 5.0, 300.000001]),
        # It is 400 us long and repeats. At 0.6 it begins at 240 us, so that the job at 300 us comes 60 us later.
        (
            Trace(times_us=(100.0, 300.0), to_us=400.0, at_end="repeats", window="drawn", start_us=1.0),
            (0.6,),
            [61.0, 261.0, 461.0],
        ),
        # At 0.8 it begins behind its last job.
        (Trace(times_us=(100.0, 300.0), to_us=400.0, at_end="repeats", window="drawn"), (0.8,), [180.0, 380.0, 580.0]),
        # It ends, and the episode takes 300 us of its 400: it begins at up to 100 us, here at 60.
        (Trace(times_us=(50.0, 60.0, 100.0), to_us=400.0, window="drawn"), (0.6,), [0.0, 40.0, 300.000001]),
        # It is too short for another beginning than its own.
        (Trace(times_us=(50.0, 60.0), window="drawn"), (0.9,), [50.0, 60.0, 300.000001]),
    ],
)
def test_arrivals_by_hand_use_uniform_draws_only(
    process: ArrivalProcess, draws: tuple[float, ...], expected: list[float]
) -> None:
    rng = Draws(*draws)
    assert arrivals(process, rng, 3) == pytest.approx(expected, rel=1e-6)
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


def test_regimes_come_at_their_rates_and_last_as_long() -> None:
    """Mean rate, and the variance of counts over their mean in the long run (Heffes and Lucantoni 1986, section II)."""
    process = Regimes(rate_per_s=100.0, busy_rate_per_s=900.0, calm_us=30_000.0, busy_us=10_000.0)
    times = np.array(arrivals(process, np.random.default_rng(0), 120_000))
    assert len(times) / times[-1] * 1e6 == pytest.approx(300.0, rel=0.03)
    window_us = 500_000.0
    counts = np.bincount((times // window_us).astype(int))[:-1]
    calm, busy, leaves_calm, leaves_busy = 100.0, 900.0, 1e6 / 30_000.0, 1e6 / 10_000.0
    both = leaves_calm + leaves_busy
    spread = 2 * (busy - calm) ** 2 * leaves_calm * leaves_busy / (both**2 * (calm * leaves_busy + busy * leaves_calm))
    assert counts.var() / counts.mean() == pytest.approx(1.0 + spread, rel=0.15)

"""Futures in a fluid model of the GPU: instances worked out by hand, and what must hold of all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.planning.fluid_tables import LOG_ROWS, MOST, WORK, Model
from gpusched_env.planning.interference import UNKNOWN
from gpusched_env.planning.outlook import mean_losses

NEVER = [1e9]
"""Gaps of a future in which nobody comes."""
MODEL = Model(horizon_us=1000.0, price=0.0, scale=1.0, first=0.6, others=0.8, pairs=UNKNOWN, exponent=1.0)


def losses(
    jobs: list[tuple[int, float, float]],
    tenants: list[tuple[float, float, float, float]],
    model: Model = MODEL,
    alone: bool = False,
    gaps: list[float] = NEVER,
    draws: list[float] | None = None,
) -> list[float]:
    """Of one future; jobs are (tenant, due, left), tenants (alone, objective, weight, jobs a us)."""
    found = np.full((2, len(jobs)), np.nan)
    mean_losses(
        np.array(jobs, float),
        np.array([(*tenant, 0.0) for tenant in tenants]),
        model,
        np.array([gaps]),
        np.array([draws if draws is not None else [0.0] * len(gaps)]),
        np.full(WORK, np.nan),
        found,
    )
    return found[int(alone)].tolist()


def test_speeds_of_who_meets_by_hand() -> None:
    pairs = np.ones((2, 2, 2))
    pairs[0, 1, 0], pairs[1, 0, 1] = 0.8, 0.5
    pairs[1, 0, 0], pairs[0, 1, 1] = 0.9, 0.25
    model = MODEL._replace(pairs=pairs)
    # The first in front: the second is done at 50 / 0.5 = 100, the first then at 100 + 100 - 80 = 120.
    # The second in front: done at 50 / 0.9 = 55.6, when the first has done 13.9 and needs 86.1 more.
    assert losses([(1, 100.1, 50.0), (0, 120.1, 100.0)], TWO, model) == [2.0, 0.0]
    assert losses([(1, 100.1, 50.0), (0, 141.7, 100.0)], TWO, model) == [0.0, 0.0]
    assert losses([(1, 99.9, 50.0), (0, 120.1, 100.0)], TWO, model) == [2.0, 3.0]


TWO = [(100.0, math.inf, 2.0, 0.0), (50.0, math.inf, 3.0, 0.0)]


@pytest.mark.parametrize(
    ("due_us", "alone", "expected"),
    [
        # Side by side both have 0.6: the second is done at 50 / 0.6 = 83.3, the first then at 50 + 83.3 = 133.3.
        ((133.4, 83.4), False, [0.0, 0.0]),
        ((133.3, 83.4), False, [2.0, 2.0]),
        # Alone the first is done at 100, the second at 50; nobody has both by then.
        ((100.1, 60.0), True, [3.0, 2.0]),
        ((150.1, 50.1), True, [3.0, 0.0]),
        # Either is late alone.
        ((99.0, 49.0), False, [math.inf, math.inf]),
    ],
)
def test_two_jobs_by_hand(due_us: tuple[float, float], alone: bool, expected: list[float]) -> None:
    jobs = sorted([(0, due_us[0], 100.0), (1, due_us[1], 50.0)], key=lambda job: job[1])
    found = losses(jobs, TWO, alone=alone)
    assert dict(zip((job[0] for job in jobs), found, strict=True)) == dict(enumerate(expected))


def test_a_tenant_serves_one_job_at_a_time() -> None:
    """Its second job is not tried first, and has the GPU after the first one: at 200, not side by side at 167."""
    assert losses([(0, 180.0, 100.0), (0, 199.0, 100.0)], TWO) == [2.0, math.inf]
    assert losses([(0, 180.0, 100.0), (0, 201.0, 100.0)], TWO) == [0.0, math.inf]


def test_a_job_that_comes_changes_who_should_go_first() -> None:
    """60 us by 100, and 20 us by 200, one at a time: both are in time, whoever goes first, if nobody comes.

    At 10 a job of 40 us comes, by 80, worth 9. Behind the first job it begins at 60, too late; behind the other at 20,
    and then the first job is late.
    """
    tenants = [(60.0, math.inf, 1.0, 0.0), (20.0, math.inf, 1.0, 0.0), (40.0, 70.0, 9.0, 0.001)]
    one = MODEL._replace(first=1.0, others=0.0)
    jobs = [(0, 100.0, 60.0), (1, 200.0, 20.0)]
    assert losses(jobs, tenants, one) == [0.0, 0.0]
    # Of gaps of 1000 us on average.
    assert losses(jobs, tenants, one, gaps=[0.01, 1e9]) == [9.0, 1.0]
    assert losses(jobs, tenants, one, gaps=[0.1, 1e9]) == [0.0, 0.0], "when both are done"


def test_best_effort_earns_as_it_goes_on_and_begins_anew() -> None:
    """250 us of a job of 100 us, of weight 2."""
    tenants = [(100.0, math.inf, 2.0, 0.0)]
    assert losses([(0, math.inf, 100.0)], tenants, MODEL._replace(horizon_us=250.0)) == pytest.approx([-5.0])


def test_what_could_not_all_be_in_time_is_lost_where_the_future_ends() -> None:
    tenants = [(100.0, math.inf, 2.0, 0.0), (100.0, math.inf, 3.0, 0.0), (100.0, math.inf, 5.0, 0.0)]
    jobs = [(0, 250.0, 100.0), (1, 250.0, 100.0), (2, 250.0, 100.0)]
    found = losses(jobs, tenants, MODEL._replace(horizon_us=1.0, first=1.0, others=0.0))
    assert found == [2.0, 2.0, 2.0]


tables = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 400).map(float), st.integers(1, 100).map(float)), min_size=1, max_size=8
).map(lambda jobs: sorted(jobs, key=lambda job: job[1]))
tenants_of = st.lists(
    st.tuples(st.integers(10, 100).map(float), st.integers(50, 400).map(float), st.integers(1, 9).map(float)),
    min_size=4,
    max_size=4,
)
futures = st.lists(st.tuples(st.floats(0.01, 3.0), st.floats(0.0, 0.999)), min_size=1, max_size=30)


@given(tables, tenants_of, futures, st.booleans())
def test_losses_are_weights_of_jobs_that_were_there(
    jobs: list[tuple[int, float, float]],
    tenants: list[tuple[float, float, float]],
    future: list[tuple[float, float]],
    alone: bool,
) -> None:
    """A whole number, and no more than all that were there or came."""
    gaps, draws = map(list, zip(*future, strict=True))
    table = [(*tenant, 0.02) for tenant in tenants]
    found = losses(jobs, table, MODEL, alone, gaps, draws)
    seen: set[int] = set()
    most = sum(tenants[tenant][2] for tenant, *_ in jobs) + len(gaps) * max(tenant[2] for tenant in tenants)
    for (tenant, due_us, left_us), lost in zip(jobs, found, strict=True):
        assert (lost == math.inf) == (tenant in seen or left_us > due_us)
        assert lost == math.inf or (0.0 <= lost <= most and lost == int(lost))
        seen.add(tenant)


@given(tables, tenants_of, futures, st.booleans())
def test_what_another_job_lost_from_an_idle_gpu_on_is_what_this_one_would(
    jobs: list[tuple[int, float, float]],
    tenants: list[tuple[float, float, float]],
    future: list[tuple[float, float]],
    alone: bool,
) -> None:
    """With more arrivals than the log has room for, though none of them comes, each future is played to its end."""
    gaps, draws = map(list, zip(*future, strict=True))
    table = [(*tenant, 0.002) for tenant in tenants]
    never = LOG_ROWS * MOST
    played = losses(jobs, table, MODEL, alone, gaps + NEVER * never, draws + [0.0] * never)
    assert losses(jobs, table, MODEL, alone, gaps + NEVER, [*draws, 0.0]) == played


shares = st.floats(0.1, 1.0)


@given(tables, tenants_of, st.tuples(shares, shares), st.tuples(shares, shares), st.booleans())
def test_two_jobs_never_lose_more_on_a_faster_gpu(
    jobs: list[tuple[int, float, float]],
    tenants: list[tuple[float, float, float]],
    some: tuple[float, float],
    others: tuple[float, float],
    alone: bool,
) -> None:
    table = [(*tenant, 0.0) for tenant in tenants]
    slow, fast = (MODEL._replace(first=pick(some), others=pick(others)) for pick in (min, max))
    for lost, lost_faster in zip(
        losses(jobs[:2], table, slow, alone), losses(jobs[:2], table, fast, alone), strict=True
    ):
        assert lost_faster <= lost


def test_the_same_futures_are_the_same() -> None:
    gaps, draws = [0.5, 0.1, 0.3, 2.0], [0.1, 0.7, 0.6, 0.2]
    tenants = [(50.0, 90.0, 1.0, 0.01), (40.0, 80.0, 2.0, 0.01)]
    jobs = [(0, 70.0, 50.0), (1, 80.0, 30.0)]
    assert losses(jobs, tenants, gaps=gaps, draws=draws) == losses(jobs, tenants, gaps=gaps, draws=draws)

"""Lawler and Moore's dynamic programme: against all subsets, and instances worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.planning.plans import MOST_JOBS, ON_TIME_SCRATCH, worth_most


class Work(NamedTuple):
    takes_us: float
    deadline_us: float
    value: float = 1.0
    alone_us: float | None = None
    """Default: as long as it takes of the machine."""


def plan(*works: Work) -> set[int]:
    """Rows of the jobs in the best plan."""
    alone_us = [each.takes_us if each.alone_us is None else each.alone_us for each in works]
    found = worth_most(
        np.array([each.deadline_us for each in works], float),
        np.array([each.takes_us for each in works], float),
        np.array(alone_us, float),
        np.array([each.value for each in works], float),
        np.full(ON_TIME_SCRATCH, np.nan),
    )
    assert found >> len(works) == 0
    return {row for row in range(len(works)) if found >> row & 1}


def test_a_long_job_makes_room_for_three_unless_it_is_worth_more() -> None:
    """10 by 12, 6 by 14, 5 by 18, 4 by 19: by deadline, the first would leave time for none before the third."""
    jobs = [Work(10.0, 12.0), Work(6.0, 14.0), Work(5.0, 18.0), Work(4.0, 19.0)]
    assert plan(*jobs) == {1, 2, 3}
    assert plan(jobs[0]._replace(value=5.0), *jobs[1:]) == {0, 2, 3}
    assert plan(*jobs[::-1]) == {0, 1, 2}, "whatever their order"
    assert plan() == set()


def best_value(works: Sequence[Work]) -> float:
    """Of all subsets, each in order of deadlines."""
    best = 0.0
    for size in range(len(works) + 1):
        for subset in itertools.combinations(sorted(works, key=lambda each: each.deadline_us), size):
            ends = itertools.accumulate(each.takes_us for each in subset)
            if all(end <= each.deadline_us for end, each in zip(ends, subset, strict=True)):
                best = max(best, sum(each.value for each in subset))
    return best


whole = st.integers(1, 20).map(float)


@given(st.lists(st.builds(Work, whole, st.integers(1, 60).map(float), whole, st.none()), max_size=7))
def test_no_subset_is_worth_more(works: list[Work]) -> None:
    kept = [works[row] for row in plan(*works)]
    assert sum(each.value for each in kept) == best_value(works)
    assert best_value(kept) == sum(each.value for each in kept), "all in time together"


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_job_that_is_worth_nothing_is_in_no_plan(value: float) -> None:
    assert plan(Work(1.0, 100.0, value), Work(1.0, 100.0)) == {1}
    assert plan(Work(1.0, 100.0, value)) == set()


def test_a_job_that_is_late_alone_is_in_no_plan_even_if_the_machine_has_time() -> None:
    assert plan(Work(4.0, 7.0, alone_us=8.0)) == set()
    assert plan(Work(4.0, 7.0, alone_us=7.0)) == {0}, "just in time"
    assert plan(Work(1.0, -1.0), Work(1.0, 1.0)) == {1}


def test_of_plans_worth_the_same_the_one_that_is_done_first() -> None:
    assert plan(Work(5.0, 6.0), Work(4.0, 6.0)) == {1}
    assert plan(Work(4.0, 6.0), Work(5.0, 6.0)) == {0}
    # The second leaves more time than the first and third, which are worth as much together.
    assert plan(Work(3.0, 6.0, 1.0), Work(4.0, 6.0, 2.0), Work(3.0, 6.0, 1.0)) == {1}


def test_of_equal_jobs_the_first_is_kept() -> None:
    assert plan(Work(5.0, 6.0), Work(5.0, 6.0)) == {0}


def test_more_jobs_than_fit_into_a_number_are_not_looked_at() -> None:
    works = [Work(1.0, 1000.0)] * MOST_JOBS
    assert plan(*works) == set(range(MOST_JOBS))
    assert plan(*works, Work(1.0, 1000.0, 99.0)) == set(range(MOST_JOBS))
    assert plan(*works[1:], Work(0.5, 0.5, 99.0), Work(0.1, 0.1)) == set(range(MOST_JOBS))

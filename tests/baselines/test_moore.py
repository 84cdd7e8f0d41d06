"""Moore and Lawler's rule: the dynamic programme against all subsets, and instances worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpusched_env.baselines.moore import Moore, Work, worth_most
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.errors import InputError
from tests.baselines.instances import episode, spans
from tests.devices.problems import K, problem


def work(number: int, takes_us: float, deadline_us: float, value: float = 1.0) -> Work:
    return Work((number, 0), deadline_us, takes_us, takes_us, value)


def test_a_long_job_makes_room_for_three_unless_it_is_worth_more() -> None:
    """10 by 12, 6 by 14, 5 by 18, 4 by 19: by deadline, the first would leave time for none before the third."""
    jobs = [(10.0, 12.0), (6.0, 14.0), (5.0, 18.0), (4.0, 19.0)]
    assert worth_most([work(i, *job) for i, job in enumerate(jobs)]) == {(1, 0), (2, 0), (3, 0)}
    dear = [work(i, *job, value=5.0 if i == 0 else 1.0) for i, job in enumerate(jobs)]
    assert worth_most(dear) == {(0, 0), (2, 0), (3, 0)}
    assert worth_most([]) == set()


def best_value(works: Sequence[Work]) -> float:
    """Of all subsets, each in order of deadlines."""
    best = 0.0
    for size in range(len(works) + 1):
        for subset in itertools.combinations(sorted(works, key=lambda each: each.deadline_us), size):
            ends = itertools.accumulate(each.machine_us for each in subset)
            if all(end <= each.deadline_us for end, each in zip(ends, subset, strict=True)):
                best = max(best, sum(each.value for each in subset))
    return best


whole = st.integers(1, 20).map(float)


@given(st.lists(st.tuples(whole, st.integers(1, 60).map(float), whole), max_size=7))
def test_no_subset_is_worth_more(jobs: list[tuple[float, float, float]]) -> None:
    works = [work(i, *job) for i, job in enumerate(jobs)]
    kept = worth_most(works)
    assert sum(each.value for each in works if each.id in kept) == best_value(works)


TWO_SHORT: list[dict[str, Any]] = [
    {"ops": [K(4, 60.0)], "slo_us": 65.0},
    {"ops": [K(4, 30.0)], "slo_us": 75.0},
    {"ops": [K(4, 30.0)], "slo_us": 80.0},
]
"""By deadline only the first would be in time; without it both others are."""


@pytest.mark.parametrize(
    ("options", "weight", "expected"),
    [
        ("", 1.0, [1, 2, 0]),
        ("", 9.0, [0, 1, 2]),
        # As if the GPU did two jobs' work at a time: 30, 45 and 60 us.
        ("scale=0.5", 1.0, [0, 1, 2]),
    ],
)
def test_who_goes_first_is_planned(tmp_path: Path, options: str, weight: float, expected: list[int]) -> None:
    jobs = [{**TWO_SHORT[0], "weight": weight}, *TWO_SHORT[1:]]
    built = problem(tmp_path, *jobs, gpu={"priorities": 6})
    ran = sorted(spans(make_scheduler(f"moore({options})"), built), key=lambda row: row[1])
    assert [tenant for tenant, *_ in ran] == expected


def test_what_is_lost_is_rejected_where_that_is_on_offer(tmp_path: Path) -> None:
    """The job that is not kept could still be in time at 0, but not when the first other one has ended."""
    built = problem(tmp_path, *TWO_SHORT, commands=["launch", "reject"])
    played = episode(make_scheduler("moore(others=1)"), built)
    assert played.timeline.rejections.column("tenant").tolist() == [0.0]
    assert played.timeline.jobs.column("tenant").tolist() == [1.0, 2.0]
    kept = episode(make_scheduler("moore(others=1,reject=false)"), built)
    assert len(kept.timeline.rejections) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.0}, "scale 0.0, reject True; must be above 0 and finite"),
        ({"reject": 1}, "reject 1"),
        ({"others": 0}, "others 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Moore(**options)

"""Moore and Lawler's rule on streams: instances worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.moore import Moore
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.errors import InputError
from tests.baselines.instances import episode, spans
from tests.devices.problems import K, problem

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


@pytest.mark.parametrize(
    ("price", "expected"), [(0.0, [0, 1, 2]), (0.5, [0, 1, 2]), (0.7, [1, 2, 0]), (1.3, [0, 1, 2])]
)
def test_a_job_that_is_worth_less_than_its_time_goes_last(tmp_path: Path, price: float, expected: list[int]) -> None:
    """All three could be in time. They are worth 1/60, 1/30 and 1/30 a us, 1/36 on average.

    The first one's 60 us cost more than its 1 at a price above 0.6, the others' 30 us at one above 1.2:
    then none is kept, and they go by deadline.
    """
    jobs = [{"ops": [K(4, us)], "slo_us": slo_us} for us, slo_us in ((60.0, 200.0), (30.0, 300.0), (30.0, 400.0))]
    built = problem(tmp_path, *jobs, gpu={"priorities": 6})
    ran = sorted(spans(make_scheduler(f"moore(price={price})"), built), key=lambda row: row[1])
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
        ({"scale": 0.0}, "scale 0.0, price 0.0, reject True; must be above 0, at least 0"),
        ({"scale": float("inf")}, "scale inf"),
        ({"price": -1.0}, "price -1.0"),
        ({"price": float("nan")}, "price nan"),
        ({"reject": 1}, "reject 1"),
        ({"others": 0}, "others 0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Moore(**options)

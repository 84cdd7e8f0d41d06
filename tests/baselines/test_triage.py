"""Deadline triage on instances worked out by hand: four SMs of one block, kernels that take all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.baselines.triage import Triage
from gpusched_env.errors import InputError
from tests.baselines.instances import episode, spans
from tests.devices.problems import K, problem

JOBS: list[dict[str, Any]] = [
    {"ops": [K(4, 60.0)], "slo_us": 95.0, "weight": 9.0},
    {"ops": [K(4, 40.0)], "slo_us": 35.0},
    {"ops": [K(4, 50.0)]},
    {"ops": [K(4, 30.0)], "slo_us": 80.0},
]
"""Laxities at 0 are 35, -5, none and 50 us; deadlines 95, 35, none and 80."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("left=0", [0, 3, 2, 1]),
        ("left=1", [3, 0, 2, 1]),
        # Of 30 and 60 us: 50 + 4 * 30 and 35 + 4 * 60.
        ("left=4", [3, 0, 2, 1]),
        # The first earns 9 in 60 us, the last 1 in 30: a factor of 4.5, 150 us earlier.
        ("left=1,worth=100", [0, 3, 2, 1]),
        # Half as long again as alone, 95 - 90 and 80 - 45; three times as long, only the last would be late: none.
        ("left=0,margin=1.5", [0, 3, 2, 1]),
        # 95 - 180 and 80 - 90: both are lost, like the second job, -85, -10 and -85.
        ("left=0,margin=3", [2, 0, 1, 3]),
        ("left=0,hopeless=served", [1, 0, 3, 2]),
        ("left=0,hopeless=rejected", [0, 3, 2, 1]),
    ],
)
def test_who_can_be_in_time_goes_first(tmp_path: Path, options: str, expected: list[int]) -> None:
    built = problem(tmp_path, *JOBS, gpu={"priorities": 6})
    ran = sorted(spans(make_scheduler(f"triage({options})"), built), key=lambda row: row[1])
    assert [tenant for tenant, *_ in ran] == expected


def test_what_cannot_be_in_time_is_rejected_where_that_is_on_offer(tmp_path: Path) -> None:
    """The second request of 40 us has 20 to spare, which are over when the first one is answered."""
    two = {"ops": [K(4, 40.0)], "slo_us": 60.0, "jobs": 2}
    built = problem(tmp_path, JOBS[1], two, commands=["launch", "reject"])
    played = episode(make_scheduler("triage(hopeless=rejected)"), built)
    rejected = played.timeline.rejections.dict()
    assert list(zip(rejected["tenant"], rejected["job"], strict=True)) == [(0, 0), (1, 1)]
    assert rejected["rejected_us"][0] < 5.0
    assert rejected["rejected_us"][1] == pytest.approx(40.0, abs=0.5)
    assert played.timeline.jobs.column("tenant").tolist() == [1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hopeless": "lost"}, "hopeless 'lost'; must be served, last, rejected"),
        ({"margin": 0.0}, "margin 0.0; must be at least 0, 0, above 0"),
        ({"worth": -1.0}, "worth -1.0"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Triage(**options)

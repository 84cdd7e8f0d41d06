"""Rules that order streams, on instances worked out by hand: four SMs of one block, kernels that take all of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpusched_env.baselines.llf import LeastLaxity
from gpusched_env.baselines.ranked_streams import ranked_priorities
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.baselines.srpt import ShortestRemaining
from gpusched_env.baselines.wspt import WeightedShortest
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.contract import Scheduler
from tests.baselines.instances import launches, spans, started
from tests.devices.problems import K, problem


def order(spec: str, built: Problem) -> list[int]:
    """Tenants in the order in which their kernels ran."""
    return [tenant for tenant, *_ in sorted(spans(make_scheduler(spec), built), key=lambda row: row[1])]


def of(*lengths_us: float, **fields: Any) -> dict[str, Any]:
    return {"ops": [K(4, length_us) for length_us in lengths_us], "priority": 0, **fields}


@pytest.fixture
def three(tmp_path: Path) -> Problem:
    """All there at 0, while a kernel of 10 us runs. Ratios of time to weight are 60, 40 and 10."""
    return problem(
        tmp_path,
        of(10.0, priority=0, weight=9.0),
        of(60.0, priority=1, weight=1.0, slo_us=150.0),
        of(40.0, priority=1, weight=1.0, slo_us=140.0),
        of(50.0, priority=1, weight=5.0),
        gpu={"priorities": 6},
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("wspt", [0, 3, 2, 1]),
        ("srpt", [0, 2, 3, 1]),
        ("edf", [0, 2, 1, 3]),
        # 150 - 60 is less than 140 - 40.
        ("llf", [0, 1, 2, 3]),
        # Without an objective the deadline is at 1.2 * 50 us.
        ("edf(slack=1.2)", [0, 3, 2, 1]),
    ],
)
def test_each_rule_has_its_order(three: Problem, spec: str, expected: list[int]) -> None:
    assert order(spec, three) == expected


def test_classes_go_before_the_rule(tmp_path: Path) -> None:
    """Long jobs are the more urgent ones. Two classes: only the first tenant's is kept apart."""
    built = problem(tmp_path, of(50.0), of(40.0, priority=1), of(30.0, priority=2), gpu={"priorities": 6})
    assert order("srpt", built) == [0, 1, 2]
    assert order("srpt(classes=two)", built) == [0, 2, 1]
    assert order("srpt(classes=one)", built) == [2, 1, 0]


@pytest.mark.parametrize(("time", "expected"), [("job", [0, 0, 2, 1, 0, 0]), ("remaining", [0, 0, 2, 0, 1, 0])])
def test_what_has_run_counts_or_not(tmp_path: Path, time: str, expected: list[int]) -> None:
    """At 55 us, when 70 us of work come, the job of 120 has 65 left. An urgent kernel lets both be launched by 60."""
    built = problem(
        tmp_path,
        of(30.0, 30.0, 30.0, 30.0, priority=1),
        of(70.0, priority=1, arrivals=started(55.0)),
        of(20.0, arrivals=started(55.0)),
        gpu={"priorities": 6},
    )
    assert order(f"wspt(time={time},depth=1)", built) == expected


@pytest.mark.parametrize(("weight", "expected"), [("turnaround", [2, 0, 1]), ("slowdown", [2, 1, 0])])
def test_a_weight_of_slowdown_is_over_the_time_alone(tmp_path: Path, weight: str, expected: list[int]) -> None:
    """20 us after 80 of the host, weight 2, or 30 us: 10 or 30 per turnaround, 20 * 100 / 2 or 30 * 30 per slowdown."""
    built = problem(
        tmp_path,
        {"ops": [K(4, 20.0, host_us=80.0)], "priority": 1, "weight": 2.0},
        of(30.0, priority=1, weight=1.0, arrivals=started(78.0)),
        of(20.0, arrivals=started(75.0)),
        gpu={"priorities": 6},
    )
    assert order(f"wspt(weight={weight})", built) == expected


def test_jobs_that_do_not_rank_first_are_held_to_a_few_kernels(tmp_path: Path) -> None:
    """Kernels of one SM each, so that nobody waits for room; the first job is through at 30 us."""
    short = [K(1, 10.0)] * 3
    built = problem(tmp_path, {"ops": short, "slo_us": 100.0}, {"ops": short, "slo_us": 500.0}, gpu={"priorities": 6})
    at_once, second = launches(make_scheduler("edf"), built, 1), launches(make_scheduler("edf(others=1)"), built, 1)
    assert at_once[-1] < 5.0
    assert [round(later - earlier, 1) for earlier, later in itertools.pairwise(second)] == [10.0, 10.0]
    assert launches(make_scheduler("edf(others=1)"), built, 0)[-1] < 5.0


def test_levels_keep_classes_apart_before_they_order_within() -> None:
    ranks = [(0, 1.0), (0, 2.0), (1, 1.0), (1, 2.0), (2, 1.0), (2, 2.0)]
    assert [ranked_priorities(ranks, 6)[rank] for rank in ranks] == [-5, -4, -3, -2, -1, 0]
    assert [ranked_priorities(ranks, 4)[rank] for rank in ranks] == [-3, -2, -1, -1, 0, 0]
    assert [ranked_priorities(ranks, 3)[rank] for rank in ranks] == [-2, -2, -1, -1, 0, 0]
    assert [ranked_priorities(ranks, 2)[rank] for rank in ranks] == [-1, -1, 0, 0, 0, 0]
    assert ranked_priorities([(4, 7.0)] * 2, 3) == {(4, 7.0): 0}


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (ShortestRemaining, {"classes": "three"}, "classes 'three', depth 16, others 256; must be"),
        (WeightedShortest, {"depth": 0}, "depth 0"),
        (LeastLaxity, {"others": 0}, "others 0"),
        (WeightedShortest, {"time": "whole"}, "time 'whole', weight 'turnaround'; job or remaining"),
        (LeastLaxity, {"slack": 0.0}, "slack is 0.0, must be above 0"),
    ],
)
def test_wrong_options_are_refused(make: Callable[..., Scheduler], options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**options)

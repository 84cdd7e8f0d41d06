"""Weighted fair queueing on instances worked out by hand: four SMs of one block, kernels that take all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.baselines.wfq import WeightedFairQueueing
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import WAIT, Launch
from gpusched_env.scheduling.view import View
from tests.baselines.instances import spans, started
from tests.devices.problems import K, problem
from tests.envs.conftest import build_view


def order(scheduler: WeightedFairQueueing, built: Problem) -> list[int]:
    """Tenants in the order in which their kernels ran."""
    return [tenant for tenant, *_ in sorted(spans(scheduler, built), key=lambda row: row[1])]


def of(*lengths_us: float, **fields: Any) -> dict[str, Any]:
    return {"ops": [K(4, length_us) for length_us in lengths_us], **fields}


def test_tenants_get_time_in_proportion_to_their_weights(tmp_path: Path) -> None:
    """Start tags 0, 30, 60, 90 and, of twice the weight, 0, 15, 30, 45; of equal shares both have the first ones."""
    built = problem(tmp_path, of(30.0, 30.0, 30.0, 30.0), of(30.0, 30.0, 30.0, 30.0, weight=2.0))
    assert order(WeightedFairQueueing(), built) == [0, 1, 1, 0, 1, 1, 0, 0]
    assert order(WeightedFairQueueing(share="equal"), built) == [0, 1, 0, 1, 0, 1, 0, 1]


def test_it_is_time_that_is_shared_and_not_kernels(tmp_path: Path) -> None:
    """Start tags 0, 60 and 0, 20, 40, 60."""
    tenants = of(60.0, 60.0), of(20.0, 20.0, 20.0, 20.0)
    assert order(WeightedFairQueueing(), problem(tmp_path, *tenants)) == [0, 1, 1, 1, 0, 1]
    # All that were never measured count the same.
    unknown = problem(tmp_path, *tenants, profiles={"forget": 1.0})
    assert order(WeightedFairQueueing(), unknown) == [0, 1, 0, 1, 1, 1]


def test_who_comes_late_gets_a_share_from_then_on(tmp_path: Path) -> None:
    """At 95 us virtual time is 50: start tags 50, 100, 150 beside 100 and 150. From 0 on it would be 0, 50, 100."""
    built = problem(tmp_path, of(50.0, 50.0, 50.0, 50.0), of(50.0, 50.0, 50.0, arrivals=started(95.0)))
    assert order(WeightedFairQueueing(), built) == [0, 0, 1, 0, 1, 0, 1]


def test_who_has_no_weight_gets_what_others_leave(tmp_path: Path) -> None:
    built = problem(tmp_path, of(10.0, 10.0, weight=0.0), of(10.0, 10.0, arrivals=started(5.0)))
    assert order(WeightedFairQueueing(), built) == [0, 1, 1, 0]


def test_kernels_share_the_gpu_if_more_are_in_flight(tmp_path: Path) -> None:
    """Of 2 SMs each; the third goes when the first, or the second, has ended."""
    two = {"ops": [K(2, 40.0), K(2, 40.0)]}
    built = problem(tmp_path, two, {"ops": [K(2, 30.0)]})
    assert spans(WeightedFairQueueing(in_flight=2), built) == [
        (0, 0.0, 40.0, 0),
        (0, 40.0, 80.0, 0),
        (1, 0.0, 30.0, 0),
    ]


def now(*kernels: tuple[int, int], running: int = 0) -> View:
    """Launch id and tenant of what is pending, 100 us each."""
    rows = [{"id": launch, "tenant": tenant, "profiled_us": 100.0} for launch, tenant in kernels]
    return build_view(rows, [{}] * running)


@pytest.mark.parametrize(("waits", "then"), [(False, Launch(1)), (True, Launch(2))])
def test_a_busy_period_leaves_no_debts(tmp_path: Path, waits: bool, then: Launch) -> None:
    """The second tenant's kernel goes first if it came while the first one's ran; if all came later, the older one."""
    scheduler = WeightedFairQueueing()
    scheduler.reset(problem(tmp_path, of(100.0), of(100.0)).knowledge, np.random.default_rng(0))
    assert scheduler.decide(now((0, 0))) == Launch(0)
    if waits:
        assert scheduler.decide(now((2, 1), running=1)) == WAIT
    assert scheduler.decide(now((1, 0), (2, 1))) == then


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_flight": 0}, "WeightedFairQueueing: in_flight is 0, must be at least 1"),
        ({"share": "priority"}, "wfq: share is 'priority', must be weight or equal"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WeightedFairQueueing(**options)

"""TGS: the search for a rate by hand, and what it lets go on four SMs of one block, without latencies."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gpusched_env.baselines.tgs import FIRST, RateControl, Tgs
from gpusched_env.errors import InputError
from tests.baselines.instances import launches
from tests.devices.problems import K, problem
from tests.refusals import refused


def controlled(*rates: float) -> list[float]:
    """The limit after each of these rates, once a rate of 10 alone has been found and control has begun."""
    control = RateControl()
    steady = [10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 10.0, 9.9, 9.9, 9.9, 9.9, 9.9, 9.9, 9.9]
    for rate in steady:
        control.period(rate)
        assert control.limit in (0.0, math.inf, FIRST)
        if control.limit == FIRST:
            break
    assert control.limit == FIRST
    limits = []
    for rate in rates:
        control.period(rate)
        limits.append(round(control.limit, 6))
    return limits


def test_the_limit_grows_by_half_until_production_loses_and_then_in_small_steps() -> None:
    """0.4 by halves to 0.9; a loss of 5 % takes a third, and from then on a step is a fortieth of 10."""
    assert controlled(10.0, 10.0, 9.5, 10.0, 10.0) == [0.6, 0.9, 0.6, 0.85, 1.1]


def test_a_loss_takes_eight_percent_and_a_great_one_all_but_a_tenth() -> None:
    third = 0.4 / 1.5
    assert controlled(9.5, 10.0, 9.5) == pytest.approx([third, third + 0.25, (third + 0.25) * 0.92], abs=1e-5)
    assert controlled(9.5, 10.0, 9.0) == pytest.approx([third, third + 0.25, (third + 0.25) * 0.092], abs=1e-5)


def test_without_production_nobody_is_limited() -> None:
    control = RateControl()
    control.period(0.0)
    assert control.limit == 0.0 or control.limit == math.inf
    control.period(0.0)
    assert control.limit == math.inf


def test_while_production_is_measured_others_launch_nothing(tmp_path: Path) -> None:
    """Production launches in every period; without it the others are free from the end of the first on."""
    others = {"ops": [K(1, 10.0)] * 3, "priority": 1}
    busy = problem(tmp_path, {"ops": [K(1, 50.0)] * 4}, others, launch_depth=1)
    assert launches(Tgs(period_us=100.0, contexts="shared"), busy, 0)[0] == 0.0
    assert min(launches(Tgs(period_us=100.0, contexts="shared"), busy, 1)) >= 100.0


def test_wrong_options_are_refused() -> None:
    with refused(InputError, "period_us 0.0", "tgs"):
        Tgs(period_us=0.0)
    with refused(InputError, "'one'", "contexts"):
        Tgs(contexts="one")  # type: ignore[arg-type]

"""Tenants' oldest jobs tried in sampled futures: what is seen by hand, and what holds of any."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.scheduling.lookahead import FIRST, plan_ahead
from gpusched_env.scheduling.plans import Plan
from tests.envs.conftest import Row, build_view

AHEAD = [Plan.AHEAD, Plan.AHEAD_ALONE]
LONG: Row = {"tenant": 0, "job": 0, "deadline_us": 620}
SHORT: Row = {"tenant": 1, "job": 0, "deadline_us": 700}


def seen(weight: float, jobs: list[Row], jobs_a_us: float = 0.002) -> np.ndarray:
    """At 500 us: 60 us by 620 and 20 us by 700 us; jobs of the third tenant have to begin within 40 us."""
    tenants: list[Row] = [
        {"slo_us": 120, "alone_us": 60},
        {"slo_us": 200, "alone_us": 20},
        {"slo_us": 80, "alone_us": 40, "weight": weight, "jobs_a_us": jobs_a_us},
    ]
    return plan_ahead(build_view(tenants=tenants, jobs=jobs))[:, AHEAD]


def test_who_goes_first_depends_on_who_will_come() -> None:
    """By deadline it is the long job. One that comes soon could be late for either, but less often for the short one."""
    cheap, dear = seen(0.01, [LONG, SHORT]), seen(100.0, [LONG, SHORT])
    assert cheap[0, 0] == dear[0, 0] == 0.0, "who is first in the plan"
    assert dear[1, 0] < 0.0 <= cheap[1, 0] + 1e-9


def test_if_nothing_comes_only_what_is_there_counts() -> None:
    """Both are in time in any order, also one after the other: there is nothing to lose."""
    assert seen(1.0, [LONG, SHORT], jobs_a_us=0.0).tolist() == [[0, 0], [0, 0], [0, 0]]


def test_alone_a_job_has_the_full_speed() -> None:
    """The long job is in time with the GPU to itself, but not at the speed that it has beside another one."""
    tight = {**LONG, "deadline_us": 500 + 60 / FIRST - 5}
    found = seen(1.0, [tight, SHORT], jobs_a_us=0.0)
    assert found[0, 0] == 0.0
    assert found[0, 1] < 0.0


def test_a_job_that_cannot_be_in_time_is_no_choice() -> None:
    late = {**SHORT, "deadline_us": 510}
    assert seen(1.0, [LONG, late])[1].tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("jobs", [[], [LONG]], ids=["no job", "one job"])
def test_without_a_choice_there_is_nothing_to_see(jobs: list[Row]) -> None:
    assert not seen(1.0, jobs).any()


def test_the_same_state_looks_the_same_until_a_job_comes() -> None:
    first, again = (seen(100.0, [LONG, SHORT]) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = seen(100.0, [{**LONG, "job": 5}, SHORT])
    assert (first[1] != other[1]).all(), "other futures"


def test_of_several_jobs_of_a_tenant_the_oldest_is_tried() -> None:
    """The second job of tenant 1 is late; its first is not, which is what counts."""
    second = {"tenant": 1, "job": 1, "deadline_us": 501}
    assert np.isfinite(seen(1.0, [LONG, {**SHORT, "deadline_us": 500.5 + 40}, second])[1, 0])

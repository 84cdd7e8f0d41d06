"""Tenants' oldest jobs tried in sampled futures: what is seen by hand, and what holds of any."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.planning.fluid_tables import MOST
from gpusched_env.planning.interference import UNKNOWN, Floats
from gpusched_env.planning.lookahead import plan_ahead
from gpusched_env.planning.outlook import Outlook
from gpusched_env.planning.plans import PlanColumn
from tests.envs.conftest import Row, build_view, earned_a_us

AHEAD = [PlanColumn.AHEAD, PlanColumn.AHEAD_ALONE]
LONG: Row = {"tenant": 0, "job": 0, "deadline_us": 620}
SHORT: Row = {"tenant": 1, "job": 0, "deadline_us": 700}


def seen(jobs: list[Row], jobs_a_us: float, pairs: Floats = UNKNOWN) -> np.ndarray:
    """At 500 us: 60 us by 620 and 20 us by 700 us; a third tenant has none yet of its jobs of 40 us by 50 us."""
    tenants: list[Row] = [
        {"slo_us": 120, "alone_us": 60},
        {"slo_us": 200, "alone_us": 20},
        {"slo_us": 50, "alone_us": 40, "jobs_a_us": jobs_a_us},
        # So that a microsecond earns less than the two jobs on average, and the plan keeps them.
        *[{"slo_us": 1e6, "alone_us": 1e5}] * 2,
    ]
    view = build_view(tenants=tenants, jobs=jobs)
    return plan_ahead(view, Outlook(1.2 * earned_a_us(view), pairs))[:, AHEAD]


def test_who_goes_first_depends_on_who_will_come() -> None:
    """Put off, the long job is late when others come that have to be done before; the short one has the time."""
    found = seen([LONG, SHORT], 0.05)
    assert found[1, 0] == 0.0, "the plan has the short one first, which earns more"
    assert found[0, 0] < 0.0


def test_if_nothing_comes_only_what_is_there_counts() -> None:
    """Both are in time in any order, also one after the other: there is nothing to lose."""
    assert not seen([LONG, SHORT], 0.0).any()


def test_alone_a_job_has_the_full_speed() -> None:
    """60 us by 565 us are in time with the GPU to itself, but not beside the short job."""
    tight = {**LONG, "deadline_us": 565}
    found = seen([tight, SHORT], 0.0)
    assert found[0, 1] < found[0, 0]


def test_who_disturbs_whom_decides_whether_others_go_beside() -> None:
    """Nobody comes. Undisturbed both are in time; at a tenth of their speed the long one has to go alone."""
    assert not seen([LONG, SHORT], 0.0, np.ones((5, 5, 2))).any()
    disturbed = np.full((5, 5, 2), 0.1)
    assert seen([LONG, SHORT], 0.0, disturbed)[0].tolist() == [0.0, -1.0]


def test_a_job_that_cannot_be_in_time_is_no_choice() -> None:
    late = {**SHORT, "deadline_us": 510}
    assert seen([LONG, late], 0.002)[1].tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("jobs", [[], [LONG]], ids=["no job", "one job"])
def test_without_a_choice_there_is_nothing_to_see(jobs: list[Row]) -> None:
    assert not seen(jobs, 0.05).any()


def test_the_same_state_looks_the_same_until_a_job_comes() -> None:
    first, again = (seen([LONG, SHORT], 0.05) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    other = seen([{**LONG, "job": 5}, SHORT], 0.05)
    assert (first[0] != other[0]).any(), "other futures"


def test_of_several_jobs_of_a_tenant_the_oldest_is_tried() -> None:
    """The first job of tenant 1 is late; its second is not, but cannot go first."""
    second = {"tenant": 1, "job": 1, "deadline_us": 900}
    assert math.isinf(seen([LONG, {**SHORT, "deadline_us": 510}, second], 0.002)[1, 0])


@pytest.mark.parametrize(("tenants", "seen_any"), [(MOST, True), (MOST + 1, False)])
def test_of_too_many_tenants_nothing_is_seen(tenants: int, seen_any: bool) -> None:
    """Each has 50 us to do by 100 us from now on: most are lost, and going first saves one."""
    each: list[Row] = [{"slo_us": 1e6, "alone_us": 50, "weight": 1 + tenant % 2} for tenant in range(tenants)]
    jobs: list[Row] = [{"tenant": tenant, "job": 0, "deadline_us": 600} for tenant in range(tenants)]
    assert plan_ahead(build_view(tenants=each, jobs=jobs), Outlook(0.0, UNKNOWN))[:, AHEAD].any() == seen_any

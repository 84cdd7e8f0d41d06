"""Where nothing can be rejected, late jobs hold up those behind them: instances worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.experiments.lib.play import play
from gpusched_env.planning.fluid_tables import WORK, Model
from gpusched_env.planning.interference import UNKNOWN
from gpusched_env.planning.outlook import Outlook, lost_by_nobody_first, mean_losses
from gpusched_env.planning.plans import PlanColumn, plan_view
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from tests.envs.conftest import build_view

ONE_AT_A_TIME = Model(
    horizon_us=1000.0, price=0.0, scale=1.0, first=1.0, others=0.0, pairs=UNKNOWN, exponent=1.0, rejects=False
)
TENANTS = np.array([(100.0, math.inf, 2.0, 0.0, 0.0), (50.0, math.inf, 3.0, 0.0, 0.0)])
"""Time alone, objective, weight, jobs a us, no graphs."""
NOBODY_COMES = np.array([[1e9]]), np.array([[0.0]])


def lost(jobs: list[tuple[float, float, float]], model: Model) -> float:
    """If nobody is made to go first; jobs are tenant, due, left."""
    work = np.full(WORK, np.nan)
    return lost_by_nobody_first(np.array(jobs), TENANTS, model, 1.0, *NOBODY_COMES, work)


def lost_with_first(jobs: list[tuple[float, float, float]], model: Model) -> list[float]:
    found = np.full((2, len(jobs)), np.nan)
    mean_losses(np.array(jobs), TENANTS, model, *NOBODY_COMES, np.full(WORK, np.nan), found)
    return found[0].tolist()


def test_a_late_job_is_done_before_the_one_behind_it() -> None:
    """The late one is done at 100, the one behind it at 200, the other tenant's at 250."""
    jobs = [(0, 50.0, 100.0), (0, 201.0, 100.0), (1, 251.0, 50.0)]
    assert lost(jobs, ONE_AT_A_TIME) == 2.0
    # Rejected it is as lost, and takes no time.
    assert lost(jobs, ONE_AT_A_TIME._replace(rejects=True)) == 2.0
    # The one behind it is not in time with it, though alone it would be: the other tenant's job goes first.
    assert lost([(0, 50.0, 100.0), (0, 199.0, 100.0), (1, 201.0, 50.0)], ONE_AT_A_TIME) == 4.0
    assert lost([(0, 50.0, 100.0), (0, 199.0, 100.0), (1, 201.0, 50.0)], ONE_AT_A_TIME._replace(rejects=True)) == 2.0


def test_a_late_job_may_be_made_to_go_first() -> None:
    jobs = [(0, 50.0, 100.0), (1, 99.0, 50.0), (0, 251.0, 100.0)]
    # First the late one: the second tenant's job would be late. Or that first: all but the late one are in time.
    assert lost_with_first(jobs, ONE_AT_A_TIME) == [5.0, 2.0, math.inf]
    assert lost_with_first(jobs, ONE_AT_A_TIME._replace(rejects=True)) == [math.inf, 2.0, math.inf]


def test_leaving_a_job_out_that_stands_before_a_kept_one_frees_nothing() -> None:
    """Tenant 0's job, which earns 2 in 100 us, fits before the first of tenant 1 (3 in 200 us), not before both. That
    first one earns least, but has to be done before the second all the same: so tenant 0's is left out."""
    jobs = [(0, 100.0, 100.0), (1, 310.0, 200.0), (1, 325.0, 50.0)]
    assert lost(jobs, ONE_AT_A_TIME) == 2.0


@pytest.mark.parametrize("rejects", [True, False])
def test_a_view_is_planned_by_hand(rejects: bool) -> None:
    """At 500 us. Tenant 0 has a late job before one that can be in time, tenant 1 one that has time, tenant 2 two of
    which the second is late only with the first."""
    view = build_view(
        tenants=[{"slo_us": 1000, "alone_us": 100}, {"slo_us": 1000, "alone_us": 50}, {"slo_us": 1000, "alone_us": 60}],
        jobs=[
            {"tenant": 0, "job": 0, "deadline_us": 590},
            {"tenant": 0, "job": 1, "deadline_us": 700},
            {"tenant": 1, "job": 0, "deadline_us": 900},
            {"tenant": 2, "job": 0, "deadline_us": 550},
            {"tenant": 2, "job": 1, "deadline_us": 570},
        ],
    )
    plan = plan_view(view, Outlook(0.0, UNKNOWN, rejects=rejects))
    if rejects:
        # 60 us of tenant 2, then 100 of tenant 0, 50 of tenant 1.
        assert plan[:, PlanColumn.KEPT].tolist() == [0, 1, 0]
        assert plan[:, PlanColumn.DEADLINE_US].tolist() == [590, 900, 550]
        assert plan[:, PlanColumn.GIVEN_UP].tolist() == [0, -1, 0]
    else:
        assert plan[:, PlanColumn.KEPT].tolist() == [1, 1, 0]
        assert plan[:, PlanColumn.DEADLINE_US].tolist() == [700, 900, 550]


@pytest.mark.parametrize("scheduler", ["moore", "triage(hopeless=served)", "plan(interference=true)"])
def test_one_late_request_does_not_make_all_that_come_after_it_late(scheduler: str) -> None:
    """Requests come in a queue to a server that is busy for 40 % of the time; nothing can be rejected."""
    problem = build_problem(load_scenario("MultiTenantSaturated", horizon_us=120000.0))
    answers = episode_metrics(play(scheduler, problem, 0)).tenants[0]
    assert answers.name == "answers"
    assert answers.completed > 30
    assert answers.slo_attainment > 0.6

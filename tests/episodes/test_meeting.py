"""What a comparison says when all schedulers cost the same."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpusched_env.episodes.cautions import (
    CostRange,
    TenantDemand,
    demands,
    meeting_remark,
    meeting_share,
    some_alike_remark,
)
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario

IDLE = [TenantDemand("chat", 0.9, 0.1, 20), TenantDemand("batch", 0.2, 0.9, 5)]
BUSY = [TenantDemand("chat", 0.9, 0.8, 20), TenantDemand("batch", 1.0, 0.9, 5)]
SAME = {"fifo": CostRange(10.0, 9.0, 11.0), "sjf": CostRange(10.5, 9.6, 11.4)}
APART = {"fifo": CostRange(10.0, 9.9, 10.1), "sjf": CostRange(12.0, 11.9, 12.1)}


def test_two_tenants_meet_as_often_as_both_are_at_work() -> None:
    assert meeting_share(IDLE) == pytest.approx(0.09 * 0.18)
    assert meeting_share(BUSY[:1]) == 0.0
    third = TenantDemand("more", 1.0, 0.5, 1)
    # Of three, two or more: all pairs, less twice all three.
    assert meeting_share([*BUSY, third]) == pytest.approx(0.72 * 0.9 + 0.72 * 0.5 + 0.9 * 0.5 - 2 * 0.72 * 0.9 * 0.5)


def test_tenants_that_hardly_meet_are_named_with_what_to_change() -> None:
    text = meeting_remark(IDLE, 0.11, SAME)
    assert text.startswith("All schedulers cost the same within the noise, since tenants hardly meet: two have work")
    assert "in about 1.6% of the time (the SMs are busy for 11%)" in text
    assert "jobs of who seldom has one: batch (20% of the time), and give a faster host (iteration_us" in text
    assert text.endswith("keeps the GPU waiting: chat (10% of a job alone).")


def test_tenants_that_meet_need_more_seeds() -> None:
    text = meeting_remark(BUSY, 0.9, SAME)
    assert "though tenants meet on the GPU in about 65% of the time: more seeds or jobs" in text
    assert meeting_remark(BUSY, 0.9, {"fifo": SAME["fifo"], "other": SAME["fifo"]}) == "", "they decide alike"


def test_schedulers_that_differ_need_no_remark() -> None:
    assert meeting_remark(IDLE, 0.11, APART) == ""
    one_seed = {"fifo": CostRange(10.0, None, None), "sjf": CostRange(10.5, None, None)}
    assert meeting_remark(IDLE, 0.11, one_seed) == "", "5 % apart, and nothing says that it is noise"
    close = one_seed | {"sjf": CostRange(10.1, None, None)}
    assert meeting_remark(IDLE, 0.11, close) != ""
    assert meeting_remark(IDLE, 0.11, {"fifo": SAME["fifo"]}) == ""
    assert meeting_remark(IDLE[:1], 0.11, SAME) == ""
    assert meeting_remark(IDLE, 0.11, {"fifo": CostRange(math.nan, None, None), "sjf": SAME["sjf"]}) == ""


def test_half_of_the_schedulers_that_cost_the_same_are_counted() -> None:
    text = some_alike_remark(IDLE, "fifo", alike=2, others=4)
    assert text.startswith("2 of the 4 others cost the same as fifo within the noise: two tenants have work on the GPU")
    assert "in about 2% of the time" in text
    assert "though two tenants have work on the GPU in about 65% of the time" in some_alike_remark(BUSY, "fifo", 3, 4)
    assert some_alike_remark(IDLE, "fifo", alike=1, others=4) == ""
    assert some_alike_remark(IDLE, "fifo", alike=0, others=0) == ""
    assert some_alike_remark(IDLE[:1], "fifo", alike=4, others=4) == "", "one tenant meets nobody"


def test_demands_follow_from_jobs_and_programs() -> None:
    problem = build_problem(load_scenario("Toy"))
    # Tenant, job, arrived, started, completed: two jobs that overlap, and one that was never done.
    jobs = np.array([[0, 0, 0.0, 0.0, 200.0], [0, 1, 100.0, 200.0, 300.0]])
    batch, urgent = demands(problem, jobs, 1000.0, unfinished=[0, 1])
    assert (batch.tenant, batch.at_work, batch.device, batch.completed) == ("batch", 0.3, 1.0, 2)
    assert (urgent.tenant, urgent.at_work, urgent.completed) == ("urgent", 1.0, 0)
    assert demands(problem, jobs, 1000.0)[1].at_work == 0.0

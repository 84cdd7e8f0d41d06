"""The one arithmetic of costs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.reward import (
    COST_TERMS,
    Costs,
    Rate,
    Sum,
    charge,
    cost_terms,
    lost_jobs,
    rates,
    reward_weights,
    total_cost,
    unsent_jobs,
)


def test_terms_are_written_in_their_order_and_their_weighted_sum_is_returned() -> None:
    sums, tenant_rates = np.zeros((2, len(Sum))), np.zeros((2, len(Rate)))
    sums[:, Sum.JOBS_US], sums[:, Sum.SLO_MISSES], sums[:, Sum.ARRIVED] = (600.0, 400.0), (5.0, 2.0), 9.0
    tenant_rates[:, Rate.WEIGHT], tenant_rates[:, Rate.ALONE_US] = (1.0, 3.0), (300.0, 200.0)
    terms = np.full(7, np.nan)
    weights = np.array([2.0, 1.0, 10.0, 0.5, 4.0, 7.0, 3.0])
    total = charge(sums, 3.0, 1500.0, 2500.0, 1e4, False, tenant_rates, weights, terms)
    assert dict(zip(COST_TERMS, terms, strict=True)) == pytest.approx(
        {
            "turnaround": 1.8, "slowdown": 8.0, "slo_miss": 11.0, "energy": 3.0, "makespan": 1.5, "lost_progress": 0.0,
            "throttled": 2.5,
        }
    )  # fmt: skip
    assert total == pytest.approx(2 * 1.8 + 8.0 + 10 * 11.0 + 0.5 * 3.0 + 4 * 1.5 + 3 * 2.5)


@pytest.mark.parametrize("over", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_python_gets_the_same_bits_as_a_compiled_batch(seed: int, over: bool) -> None:
    rng = np.random.default_rng(seed)
    reward = dict(zip(COST_TERMS, rng.random(7).tolist(), strict=True))
    problem = build_problem(load_scenario("ThreeTenants", reward=reward))
    costs = Costs(3)
    costs.jobs_us[:] = rng.random(3) * 1e5
    costs.slo_misses[:] = rng.integers(0, 9, 3)
    costs.arrived[:] = 9
    costs.completed[:] = rng.integers(0, 5, 3)
    costs.rejected[:] = rng.integers(0, 5, 3)
    costs.energy_j, costs.makespan_us, costs.throttled_us = rng.random(3)
    costs.time_us, costs.over = 1e5, over
    sums = np.zeros((5, len(Sum)))
    sums[:3, Sum.JOBS_US], sums[:3, Sum.SLO_MISSES] = costs.jobs_us, costs.slo_misses
    sums[:3, Sum.ARRIVED], sums[:3, Sum.COMPLETED], sums[:3, Sum.REJECTED] = 9.0, costs.completed, costs.rejected
    # As a batch has it: rows for more tenants than there are.
    padded = np.zeros((5, len(Rate)))
    padded[:3] = rates(problem)
    terms = np.empty(7)
    integrals = costs.energy_j, costs.makespan_us, costs.throttled_us, costs.time_us
    total = charge(sums[:3], *integrals, over, padded, reward_weights(problem), terms)
    by_name = cost_terms(problem, costs)
    assert list(by_name.values()) == terms.tolist()
    assert total_cost(problem, by_name) == total


@pytest.mark.parametrize(
    ("arrived", "jobs", "end_us", "unsent"),
    [
        # 10 us of work and 5 of thinking from 100 us on: at 100, 115, 130, 145 alone.
        (0, -1, 99.0, 0.0),
        (1, -1, 100.0, 0.0),
        (1, -1, 114.0, 0.0),
        (1, -1, 115.0, 1.0),
        (1, -1, 150.0, 3.0),
        (1, 3, 150.0, 2.0),
        (3, 3, 150.0, 0.0),
        (5, -1, 150.0, 0.0),
    ],
)
def test_a_closed_loop_owes_what_it_would_have_sent_alone(
    arrived: float, jobs: int, end_us: float, unsent: float
) -> None:
    rate = np.zeros(len(Rate))
    rate[[Rate.ALONE_US, Rate.THINK_US, Rate.START_US, Rate.JOBS]] = 10.0, 5.0, 100.0, jobs
    assert unsent_jobs(rate, arrived, end_us) == 0.0, "an open process"
    rate[Rate.CLOSED_LOOP] = 1.0
    assert unsent_jobs(rate, arrived, end_us) == unsent


@pytest.mark.parametrize(
    ("completed", "jobs", "end_us", "lost"),
    [
        # 10 us of work and 5 of thinking from 100 us on.
        (0.0, -1, 99.0, 0.0),
        (0.0, -1, 115.0, 1.0),
        (1.0, -1, 115.0, 0.0),
        (1.0, -1, 137.5, 1.5),
        (1.0, 2, 1e6, 1.0),
    ],
)
def test_a_best_effort_tenant_loses_what_it_would_have_completed_alone(
    completed: float, jobs: int, end_us: float, lost: float
) -> None:
    rate = np.zeros(len(Rate))
    rate[[Rate.ALONE_US, Rate.THINK_US, Rate.START_US, Rate.JOBS]] = 10.0, 5.0, 100.0, jobs
    assert lost_jobs(rate, completed, end_us) == 0.0, "an open process"
    rate[Rate.CLOSED_LOOP] = 1.0
    assert lost_jobs(rate, completed, end_us) == lost
    rate[Rate.HAS_SLO] = 1.0
    assert lost_jobs(rate, completed, end_us) == 0.0, "its objective is what counts"


def test_what_is_left_is_charged_at_the_end_only() -> None:
    problem = build_problem(load_scenario("Toy"))
    costs = Costs(2)
    costs.arrived[:] = 1.0
    costs.jobs_us[:], costs.makespan_us, costs.time_us = 50.0, 50.0, 50.0
    assert cost_terms(problem, costs)["turnaround"] == pytest.approx(0.050 + 3 * 0.050)
    costs.over = True
    assert cost_terms(problem, costs)["turnaround"] == pytest.approx(0.350 + 3 * 0.260)
    assert costs.jobs_us.tolist() == [50.0, 50.0], "the integrals stay"


def test_a_rejected_job_is_not_charged_again_at_the_end() -> None:
    problem = build_problem(load_scenario("Toy"))
    batch, urgent = problem.programs
    problem = replace(problem, programs=(replace(batch, alone_us=300.0), replace(urgent, alone_us=200.0)))
    costs = Costs(2)
    # Of two jobs of each that are there from 0 on, one was rejected at 50 us of 2000: its time until then, that until
    # the horizon, and that alone.
    costs.arrived[:], costs.rejected[:] = 2.0, 1.0
    costs.jobs_us[:] = 50.0 + 50.0 + 1950.0 + np.array([300.0, 200.0])
    costs.slo_misses[1] = 1.0
    costs.time_us, costs.over = 50.0, True
    terms = cost_terms(problem, costs)
    assert terms["turnaround"] == pytest.approx((2.350 + 0.300) + 3 * (2.250 + 0.200))
    assert terms["slo_miss"] == 3.0

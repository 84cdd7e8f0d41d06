"""The compiled arithmetic of costs."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.reward import COST_TERMS, cost_terms, jobs_left, reward_weights, total_cost, weigh


def test_terms_are_written_in_their_order_and_their_weighted_sum_is_returned() -> None:
    terms = np.full(5, np.nan)
    total = weigh(
        np.array([600.0, 400.0]),
        np.array([5.0, 2.0]),
        3.0,
        1500.0,
        np.array([1.0, 3.0]),
        np.array([300.0, 200.0]),
        np.array([2.0, 1.0, 10.0, 0.5, 4.0]),
        terms,
    )
    assert dict(zip(COST_TERMS, terms, strict=True)) == pytest.approx(
        {"turnaround": 1.8, "slowdown": 8.0, "slo_miss": 11.0, "energy": 3.0, "makespan": 1.5}
    )
    assert total == pytest.approx(2 * 1.8 + 8.0 + 10 * 11.0 + 0.5 * 3.0 + 4 * 1.5)


@pytest.mark.parametrize("seed", range(5))
def test_python_gets_the_same_bits_as_a_compiled_batch(seed: int) -> None:
    rng = np.random.default_rng(seed)
    reward = dict(zip(COST_TERMS, rng.random(5).tolist(), strict=True))
    problem = build_problem(load_scenario("ThreeTenants", reward=reward))
    costs = Costs(3)
    costs.jobs_us[:] = rng.random(3) * 1e5
    costs.slo_misses[:] = rng.integers(0, 9, 3)
    costs.energy_j, costs.makespan_us = rng.random(2)
    weights = np.array([program.tenant.weight for program in problem.programs])
    alone_us = np.array([program.alone_us for program in problem.programs])
    terms = np.empty(5)
    total = weigh(
        costs.jobs_us,
        costs.slo_misses,
        costs.energy_j,
        costs.makespan_us,
        weights,
        alone_us,
        reward_weights(problem),
        terms,
    )
    by_name = cost_terms(problem, costs)
    assert list(by_name.values()) == terms.tolist()
    assert total_cost(problem, by_name) == total


@pytest.mark.parametrize(
    ("arrived", "completed", "jobs", "end_us", "left"),
    [
        # 10 us of work and 5 of thinking from 100 us on: at 100, 115, 130, 145 alone.
        (0, 0, -1, 99.0, (0.0, 0.0)),
        (1, 0, -1, 100.0, (1.0, 0.0)),
        (1, 0, -1, 114.0, (1.0, 0.0)),
        (1, 1, -1, 115.0, (0.0, 1.0)),
        (1, 0, -1, 150.0, (1.0, 3.0)),
        (1, 0, 3, 150.0, (1.0, 2.0)),
        (3, 3, 3, 150.0, (0.0, 0.0)),
        (5, 5, -1, 150.0, (0.0, 0.0)),
    ],
)
def test_a_closed_loop_owes_what_it_would_have_sent_alone(
    arrived: float, completed: float, jobs: int, end_us: float, left: tuple[float, float]
) -> None:
    assert jobs_left(arrived, completed, jobs, True, 100.0, 5.0, 10.0, end_us) == left


def test_open_arrivals_owe_what_is_in_the_system() -> None:
    assert jobs_left(7.0, 4.0, 20, False, 0.0, 0.0, 10.0, 1e6) == (3.0, 0.0)


def test_what_is_left_is_charged_at_the_end_only() -> None:
    problem = build_problem(load_scenario("Toy"))
    costs = Costs(2)
    costs.arrived[:] = 1.0
    costs.jobs_us[:], costs.makespan_us, costs.time_us = 50.0, 50.0, 50.0
    assert cost_terms(problem, costs)["turnaround"] == pytest.approx(0.050 + 3 * 0.050)
    costs.over = True
    assert cost_terms(problem, costs)["turnaround"] == pytest.approx(0.350 + 3 * 0.260)
    assert costs.jobs_us.tolist() == [50.0, 50.0], "the integrals stay"

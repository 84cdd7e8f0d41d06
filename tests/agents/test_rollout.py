"""Whole batches of episodes are the episodes of the scheduler, seed by seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.devices import make_device
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from tests.agents.made_up import made_up
from tests.refusals import refused


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("InferenceBesideTraining", {"horizon_us": 5000.0}),
        ("MultiTenantBurst", {"horizon_us": 4000.0}),
        ("Toy", {"decision_us": 3.0}),
        ("ThreeTenants", {"horizon_us": 3000.0, "commands": ("launch", "preempt", "partition"), "decision_us": 2.0}),
    ],
)
def test_seed_by_seed_the_same_as_the_scheduler(name: str, changes: dict[str, Any]) -> None:
    scenario = load_scenario(name, **changes)
    policy = made_up(scenario)
    problem = build_problem(scenario)
    seeds = (7, 0, 3, 12, 5)
    found = evaluate_costs(policy, scenario, seeds, copies=2)
    assert found.seeds == seeds
    for seed, cost, metrics in zip(seeds, found.costs, found.metrics, strict=True):
        expected = episode_metrics(run_episode(LearnedScheduler(policy), problem, make_device("compiled"), seed))
        np.testing.assert_equal(metrics.as_dict(), expected.as_dict())
        assert cost == expected.cost


def test_progress_threads_and_counts() -> None:
    scenario = load_scenario("Toy")
    told: list[int] = []
    found = evaluate_costs(made_up(scenario), scenario, 5, copies=64, threads=2, on_progress=told.append)
    assert found.seeds == (0, 1, 2, 3, 4)
    assert found.costs.shape == (5,)
    assert told[0] == 0
    assert told[-1] == 5


@pytest.mark.parametrize("seeds", [0, [], [3, -1]])
def test_seeds_are_checked(seeds: Any) -> None:
    with refused(InputError, "below 0", "none"):
        evaluate_costs(made_up("Toy"), load_scenario("Toy"), seeds)

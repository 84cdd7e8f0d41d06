"""The release rule: what its weights make it do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policies.release import SHAPES, ReleaseColumn, ReleaseTerm
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.agents.shipped import shipped_policy
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.envs.features import TABLES, PendingFeature
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import load_scenario
from tests.agents.made_up import made_up

GRAPH = load_scenario("KernelGraph", tenants={"program": {"workload": "bodies6_step_b2048", "jobs": 2}})


def release(**weights: float) -> ExportedPolicy:
    """The rule with some weights by place and term: ``BEHIND_ONE=-1``."""
    value = np.zeros(SHAPES["value"], np.float32)
    for name, weight in weights.items():
        place, _, term = name.partition("_")
        value[ReleaseColumn[place], ReleaseTerm[term]] = weight
    return ExportedPolicy(made_up(GRAPH, "release").info, {"value": value})


def cost_of(scheduler: str) -> float:
    return episode_metrics(
        run_episode(make_scheduler(scheduler), build_problem(GRAPH), make_device("compiled"), 0)
    ).cost


def test_without_weights_it_is_release_in_order() -> None:
    (cost,) = evaluate_costs(release(), GRAPH, 1).costs
    assert cost == pytest.approx(cost_of("in-order"), rel=1e-12)


def test_who_never_goes_behind_what_it_waits_for_waits_for_its_end() -> None:
    """Kernels that wait for nothing still share the streams, as in ACS they do not; there are more than enough."""
    (cost,) = evaluate_costs(release(BEHIND_ONE=-2.0), GRAPH, 1).costs
    assert cost == pytest.approx(cost_of("acs-sw"), rel=0.02)
    assert cost > 1.3 * cost_of("in-order")


def test_the_greatest_value_goes_first_and_what_has_none_is_held_back() -> None:
    policy = release(FREE_AGE=1.0, BEHIND_ONE=-1.0, BEHIND_DEPENDENTS=1.0)
    pending = np.zeros((1, 32, len(PendingFeature)), np.float32)
    pending[0, :4, PendingFeature.LAUNCHABLE] = [1.0, 1.0, 1.0, 0.0]
    pending[0, 2, PendingFeature.UPSTREAM] = 0.2
    mask = np.ones((1, 33), np.bool_)
    assert chosen(policy, pending, mask) == (2, [1.0, 1.125, 0.0, -1.0]), "0 is no more than to wait"
    pending[0, 2, PendingFeature.DEPENDENTS] = 0.75
    assert chosen(policy, pending, mask) == (3, [1.0, 1.125, 1.5, -1.0])


def test_age_is_among_launches_of_a_tenant() -> None:
    pending = np.zeros((1, 4, len(PendingFeature)), np.float32)
    pending[0, :, PendingFeature.LAUNCHABLE] = 1.0
    _, values = chosen(release(FREE_AGE=1.0), pending, np.ones((1, 5), np.bool_), tenants=2)
    assert values == [1.0, 1.125, 1.0, 1.125]


def chosen(policy: ExportedPolicy, pending: Any, mask: Any, tenants: int = 1) -> tuple[int, list[float]]:
    """The action, and what the rule makes of the first four launches."""
    rows = {"running": 8, "tenants": tenants}
    others = {name: np.zeros((1, rows.get(name, 1), len(columns)), np.float32) for name, columns in TABLES.items()}
    observation = {**others, "pending": pending, "device": others["device"][:, 0]}
    return int(policy.act(observation, mask)[0]), policy.numbers(observation)[0, 1:5].tolist()


@pytest.mark.parametrize("workload", ["amoebanet_infer_b1", "physics_step_b4096", "resnet50_infer_b1"])
def test_the_shipped_one_is_better_than_release_in_order_on_programs_that_it_never_saw(workload: str) -> None:
    scenario = load_scenario("KernelGraph", tenants={"program": {"workload": workload, "jobs": 1}})
    agent, in_order = (evaluate_costs(policy, scenario, 1).costs[0] for policy in (shipped_policy(scenario), release()))
    assert agent < 0.99 * in_order

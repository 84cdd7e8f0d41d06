"""The rule: what its weights make it do."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.policies.rule import SHAPES, LaunchTerm, LevelTerm, ShareTerm, Situation
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.baselines.registry import make_scheduler
from gpusched_env.devices import make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.episodes.metrics import episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario
from tests.agents.made_up import made_up
from tests.refusals import refused

URGENT, OTHER = 0, 1
"""Rows of the tenants of InferenceBesideTraining."""
BRIEF = {"horizon_us": 12_000.0, "tenants": {"inference": {"arrivals": {"kind": "closed-loop", "think_us": 1000}}}}


def rule(scenario: Scenario, **weights: Any) -> ExportedPolicy:
    """The rule with some weights, by name and index: ``launch={(situation, term): value}``."""
    policy = made_up(scenario, "rule")
    arrays = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    for name, values in weights.items():
        for index, value in values.items():
            arrays[name][index] = value
    return ExportedPolicy(policy.info, arrays)


def everywhere(term: int, value: float) -> dict[Any, float]:
    return {(situation, term): value for situation in Situation}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("InferenceBesideTraining", BRIEF),
        ("PriorityFill", {"horizon_us": 15_000.0}),
        ("MultiTenantBurst", {"horizon_us": 8000.0}),
    ],
)
def test_without_weights_it_is_priority_streams(name: str, changes: dict[str, Any]) -> None:
    scenario = load_scenario(name, **changes)
    for seed, cost in enumerate(evaluate_costs(rule(scenario), scenario, 2).costs):
        scheduler = make_scheduler("priority-streams")
        expected = run_episode(scheduler, build_problem(scenario), make_device("compiled"), seed)
        assert cost == pytest.approx(episode_metrics(expected).cost, rel=1e-12)


def actions(policy: ExportedPolicy, scenario: Scenario, steps: int = 3000) -> list[tuple[str, int, int, bool]]:
    """Kind, slot and choice of each action of an episode, and whether the urgent tenant had a job."""
    env = GpuSchedulingEnv(scenario, wait_us=policy.info.wait_us, commands=scenario.commands)
    observation, _ = env.reset(seed=0)
    found = []
    for _ in range(steps):
        batch = {name: table[None] for name, table in observation.items()}
        (action,) = policy.act(batch, env.action_masks()[None])
        busy = bool(env.view.tenants.jobs_waiting[URGENT] > 0)
        found.append((*env.layout.split(int(action)), busy))
        observation, _, terminated, truncated, _ = env.step(int(action))
        if terminated or truncated:
            break
    assert {busy for *_, busy in found} == {True, False}
    return found


def test_held_back_while_a_more_urgent_tenant_has_a_job() -> None:
    scenario = load_scenario("InferenceBesideTraining", **BRIEF)
    held = {(situation, LaunchTerm.ONE): -2.0 for situation in (Situation.RUNNING, Situation.ACTIVE)}
    launches = [
        (slot, busy) for kind, slot, _, busy in actions(rule(scenario, launch=held), scenario) if kind == "launch"
    ]
    assert (OTHER, True) not in launches
    assert (OTHER, False) in launches
    assert (URGENT, True) in launches


def test_kernels_in_flight_are_limited() -> None:
    """1 - 0.9 n / 2 is above 0 for two launched kernels, and not for three."""
    scenario = load_scenario("InferenceBesideTraining", **BRIEF)
    policy = rule(scenario, launch=everywhere(LaunchTerm.FELLOWS, -0.9))
    env = GpuSchedulingEnv(scenario, wait_us=policy.info.wait_us, commands=scenario.commands)
    observation, _ = env.reset(seed=0)
    most = 0
    for _ in range(2000):
        batch = {name: table[None] for name, table in observation.items()}
        observation, _, _, _, _ = env.step(int(policy.act(batch, env.action_masks()[None])[0]))
        most = max(most, int(env.view.tenants.kernels_launched[OTHER]))
    assert most == 3


def test_the_share_comes_before_the_launch() -> None:
    """4.4 - 2.5 quarters while a more urgent tenant is active, all of the GPU otherwise."""
    scenario = load_scenario("InferenceBesideTraining", **BRIEF)
    shares = {(situation, ShareTerm.ONE): -2.5 for situation in (Situation.RUNNING, Situation.ACTIVE)}
    found = actions(rule(scenario, share=shares), scenario)
    partitions = [(slot, quarter + 1, busy) for kind, slot, quarter, busy in found if kind == "partition"]
    assert {(OTHER, 2, True), (OTHER, 4, False)} == set(partitions)
    for now, then in itertools.pairwise(found):
        if now[0] == "partition":
            assert then[0] == "launch"


def test_without_partitions_on_offer_the_share_means_nothing() -> None:
    scenario = load_scenario("InferenceBesideTraining", **BRIEF, commands=("launch",))
    policy = rule(scenario, share=everywhere(ShareTerm.ONE, -2.5))
    assert evaluate_costs(policy, scenario, 1).costs == evaluate_costs(rule(scenario), scenario, 1).costs


def test_levels_shift_stream_priorities_within_what_is_on_offer() -> None:
    """SLACK is 1 for a tenant without an SLO: one level up for the training, which the inference cannot go."""
    scenario = load_scenario("InferenceBesideTraining", **BRIEF)
    policy = rule(scenario, level={LevelTerm.SLACK: 1.0})
    levels = {(slot, choice) for kind, slot, choice, _ in actions(policy, scenario) if kind == "launch"}
    assert scenario.stream_priorities == (0, -1)
    assert levels == {(URGENT, 1), (OTHER, 1)}


def test_a_tenant_keeps_its_level_while_a_kernel_is_launched() -> None:
    """Durations tell levels apart, but only the first kernel's after the tenant's last one has ended."""
    scenario = load_scenario("MultiTenantBurst", horizon_us=6000.0)
    policy = rule(scenario, level={LevelTerm.DURATION: 3.0})
    env = GpuSchedulingEnv(scenario, wait_us=policy.info.wait_us, commands=scenario.commands)
    observation, _ = env.reset(seed=0)
    last: dict[int, int] = {}
    kept, changed = 0, 0
    for _ in range(3000):
        launched = env.view.tenants.kernels_launched
        batch = {name: table[None] for name, table in observation.items()}
        (action,) = policy.act(batch, env.action_masks()[None])
        kind, slot, level = env.layout.split(int(action))
        if kind == "launch":
            if launched[slot] > 0:
                assert level == last[slot]
                kept += 1
            else:
                changed += level != last.get(slot, level)
            last[slot] = level
        observation, _, terminated, truncated, _ = env.step(int(action))
        if terminated or truncated:
            break
    assert kept > 100
    assert changed >= 3


def test_masks_of_another_shape_are_refused() -> None:
    scenario = load_scenario("InferenceBesideTraining")
    env = GpuSchedulingEnv(scenario, commands=scenario.commands)
    observation, _ = env.reset(seed=0)
    batch = {name: table[None] for name, table in observation.items()}
    with refused(InputError, "(1, 5)", "(1, 13)"):
        rule(scenario).act(batch, np.ones((1, 5), np.bool_))

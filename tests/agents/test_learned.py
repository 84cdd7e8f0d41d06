"""A policy as a scheduler does what it does in the environment."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.agents import shipped
from gpusched_env.agents.exported import ExportedPolicy, untrained_policy
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env.agents.rollout import evaluate_costs
from gpusched_env.devices import make_device
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.episodes.metrics import Metrics, episode_metrics
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario, override
from gpusched_env.scenarios.variants import scenario_variants
from gpusched_env.scheduling.contract import Scheduler
from tests.agents.made_up import made_up, written
from tests.refusals import refused

BRIEF = {"horizon_us": 6000.0}
SMALL: dict[str, Any] = {
    "tenants": {"batch": {"arrivals": {"kind": "closed-loop"}, "jobs": 6}, "urgent": {"jobs": 6}},
    "stream_priorities": (0, -1),
}
EVERYTHING: dict[str, Any] = {
    "commands": ("launch", "preempt", "partition"),
    "preemption": ("drain", "reset"),
    "horizon_us": 3000.0,
    # Without a cost, a policy could confine a tenant to and fro for ever at the same instant.
    "decision_us": 2.0,
}


def stepped(policy: ExportedPolicy, scenario: Scenario, seed: int, device: str, slots: int | None = None) -> float:
    """Minus the return of the environment with all commands under the policy."""
    env = GpuSchedulingEnv(
        scenario, device=device, slots=slots, wait_us=policy.info.wait_us, commands=scenario.commands
    )
    return played(policy, env, seed)


def played(policy: ExportedPolicy, env: GpuSchedulingEnv, seed: int) -> float:
    """Minus the return of an environment under the policy."""
    observation, info = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        batch = {name: table[None] for name, table in observation.items()}
        (action,) = policy.act(batch, env.action_masks()[None])
        observation, reward, terminated, truncated, info = env.step(action)
        total += reward
        over = terminated or truncated
    assert info["illegal_actions"] == 0
    return -total


def scheduled(scheduler: Scheduler, scenario: Scenario, seed: int, device: str = "compiled") -> Metrics:
    return episode_metrics(run_episode(scheduler, build_problem(scenario), make_device(device), seed))


@pytest.mark.parametrize("kind", ["slots", "mlp", "rule"])
@pytest.mark.parametrize(
    ("device", "name", "changes"),
    [
        ("compiled", "InferenceBesideTraining", BRIEF),
        ("compiled", "ThreeTenants", EVERYTHING),
        ("reference", "Toy", {**EVERYTHING, **SMALL}),
    ],
)
def test_it_costs_what_the_policy_costs_in_the_environment(
    device: str, kind: str, name: str, changes: dict[str, Any]
) -> None:
    scenario = load_scenario(name, **changes)
    policy = made_up(scenario, kind, wait_us=40.0)
    scheduler = LearnedScheduler(policy)
    for seed in (1, 2):
        expected = stepped(policy, scenario, seed, device)
        metrics = scheduled(scheduler, scenario, seed, device)
        assert metrics.cost == pytest.approx(expected, rel=1e-12)
        assert metrics.decisions > 20
        assert evaluate_costs(policy, scenario, [seed]).costs[0] == pytest.approx(expected, rel=1e-9)


def test_an_unmasked_policy_waits_where_it_may_not_launch() -> None:
    scenario = load_scenario("InferenceBesideTraining", **BRIEF)
    policy = made_up(scenario, masked=False, algorithm="ppo")
    env = GpuSchedulingEnv(scenario, commands=scenario.commands)
    masks = np.zeros((1, env.layout.n), np.bool_)
    masks[0, 0] = True
    observation, _ = env.reset(seed=0)
    batch = {name: table[None] for name, table in observation.items()}
    assert policy.numbers(batch).argmax() != 0
    assert policy.act(batch, masks).tolist() == [0]
    assert scheduled(LearnedScheduler(policy), scenario, 0).cost == pytest.approx(
        stepped(policy, scenario, 0, "compiled"), rel=1e-12
    )


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda scheduler: pickle.loads(pickle.dumps(scheduler))])
def test_a_copy_decides_by_itself(copied: Callable[[LearnedScheduler], LearnedScheduler]) -> None:
    scenario = load_scenario("InferenceBesideTraining", **BRIEF)
    scheduler = LearnedScheduler(made_up(scenario))
    scheduler.prepare(scenario)
    other = copied(scheduler)
    expected = scheduled(scheduler, scenario, 1).cost
    # What the original worked in is gone, and written over.
    del scheduler
    LearnedScheduler(made_up(scenario)).prepare(scenario)
    assert scheduled(other, scenario, 1).cost == expected


def test_slots_may_be_more_or_fewer_than_in_training() -> None:
    policy = made_up("ThreeTenants")
    priorities = load_scenario("ThreeTenants").stream_priorities
    burst = load_scenario("MultiTenantBurst", horizon_us=2000.0, commands=("launch",))
    assert burst.stream_priorities == priorities
    metrics = scheduled(LearnedScheduler(policy), burst, 0)
    assert metrics.cost == pytest.approx(stepped(policy, burst, 0, "compiled"), rel=1e-12)
    two = load_scenario(
        "InferenceBesideTraining", stream_priorities=priorities, horizon_us=2000.0, commands=("launch",)
    )
    cost = scheduled(LearnedScheduler(policy), two, 0).cost
    assert cost == pytest.approx(stepped(policy, two, 0, "compiled", slots=8), rel=1e-9), "empty slots change nothing"


def test_an_mlp_takes_fewer_tenants_but_not_more() -> None:
    policy = made_up("ThreeTenants", "mlp")
    two = load_scenario(
        "InferenceBesideTraining", stream_priorities=(0, -1, -2), horizon_us=2000.0, commands=("launch",)
    )
    cost = scheduled(LearnedScheduler(policy), two, 0).cost
    assert cost == pytest.approx(stepped(policy, two, 0, "compiled", slots=3), rel=1e-12)
    with refused(InputError, "3 tenant", "MultiTenantBurst", "8 tenants"):
        LearnedScheduler(policy).prepare(load_scenario("MultiTenantBurst", commands=("launch",)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"stream_priorities": (0,)},
            r"trained on ThreeTenants, has stream priorities \(0, -1, -2\); scenario ThreeTenants offers \(0,\)",
        ),
        (
            {"commands": ("launch", "partition")},
            r"preemption modes \('drain', 'save', 'reset'\); scenario ThreeTenants offers \(\)",
        ),
        (
            {"commands": ("launch", "preempt"), "preemption": ("drain",)},
            r"has preemption modes \('drain', 'save', 'reset'\); scenario ThreeTenants offers \('drain',\)",
        ),
    ],
)
def test_other_commands_are_refused(changes: dict[str, Any], message: str) -> None:
    scheduler = LearnedScheduler(made_up(load_scenario("ThreeTenants", commands=("launch", "preempt"))))
    problem = build_problem(load_scenario("ThreeTenants", **changes))
    with pytest.raises(InputError, match=message):
        scheduler.reset(problem.knowledge, np.random.default_rng(0))


@pytest.mark.parametrize("interval_us", [0.0, 250.0])
def test_a_policy_leaves_commands_alone_that_it_has_no_actions_for(interval_us: float) -> None:
    """In a scenario that offers them it decides as in the environment without them, and as often."""
    burst = load_scenario("ServingBurst", horizon_us=3000.0, commands=("launch", "partition", "reject"))
    policy = untrained_policy(load_scenario(burst, commands=("launch",)), interval_us=interval_us)
    env = GpuSchedulingEnv(burst, interval_us=interval_us, wait_us=policy.info.wait_us, futures=True)
    assert env.layout == policy.info.actions
    expected = played(policy, env, seed=0)
    metrics = scheduled(LearnedScheduler(policy), burst, 0)
    assert metrics.cost == pytest.approx(expected, rel=1e-12)
    assert evaluate_costs(policy, burst, [0]).costs[0] == pytest.approx(expected, rel=1e-9)


def test_its_decisions_can_stand_for_another_time_than_in_its_training() -> None:
    burst = load_scenario("ServingBurst", horizon_us=20_000.0, commands=("launch",))
    policy = untrained_policy(burst, "serve", interval_us=250.0)
    slower = GpuSchedulingEnv(burst, interval_us=1000.0, wait_us=policy.info.wait_us, futures=True)
    metrics = scheduled(LearnedScheduler(policy, interval_us=1000.0), burst, 0)
    assert metrics.cost == pytest.approx(played(policy, slower, seed=0), rel=1e-12)
    assert metrics.cost != scheduled(LearnedScheduler(policy), burst, 0).cost


def test_an_interval_is_for_those_that_decide_for_one() -> None:
    with refused(InputError, "interval_us is 0.5", "least 1"):
        LearnedScheduler(interval_us=0.5)
    with refused(InputError, "Toy", "every launch"):
        LearnedScheduler(made_up("Toy"), interval_us=250.0).prepare(load_scenario("Toy"))


def test_it_can_be_sent_to_another_process_and_described() -> None:
    scheduler = pickle.loads(pickle.dumps(LearnedScheduler(made_up("Toy"))))
    assert isinstance(scheduler, Scheduler)
    assert scheduler.describe() == "Trained agent: maskable-ppo with policy slots, 1,000 decisions of Toy."
    assert scheduled(scheduler, load_scenario("Toy"), 0).decisions == 4


def test_shipped_agents_are_found_by_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    policy = made_up("InferenceBesideTraining")
    scenario = load_scenario("InferenceBesideTraining", **BRIEF)
    with refused(InputError, "InferenceBesideTraining", "none"):
        LearnedScheduler().prepare(scenario)
    written(policy, tmp_path / "InferenceBesideTraining.npz")
    assert shipped.shipped_names() == ["InferenceBesideTraining"]
    given, found = scheduled(LearnedScheduler(policy), scenario, 0), scheduled(LearnedScheduler(), scenario, 0)
    assert found.as_dict() == given.as_dict()
    for which in ("train", "held_out"):
        variant = scenario_variants(load_scenario("InferenceBesideTraining"), which)[0]  # type: ignore[arg-type]
        LearnedScheduler().prepare(variant)
    with refused(InputError, "InferenceBesideTraining", "Toy"):
        LearnedScheduler().prepare(load_scenario("Toy"))
    assert shipped.is_shipped_for(scenario)
    assert shipped.shipped_scenarios() == {"InferenceBesideTraining": "InferenceBesideTraining"}
    (tmp_path / "InferenceBesideTraining.json").write_text('{"also": ["ThreeTenants"]}')
    assert shipped.shipped_file(load_scenario("ThreeTenants")) == tmp_path / "InferenceBesideTraining.npz"
    with refused(InputError, "InferenceBesideTraining, ThreeTenants"):
        shipped.shipped_file(load_scenario("Toy"))
    written(policy, tmp_path / "ThreeTenants.npz")
    assert shipped.shipped_file(load_scenario("ThreeTenants")) == tmp_path / "ThreeTenants.npz", "its own goes first"
    assert not shipped.is_shipped_for(override(scenario, stream_priorities=(0,)))
    assert not shipped.is_shipped_for(load_scenario("Toy"))


def test_no_torch_is_needed(tmp_path: Path) -> None:
    policy = made_up("Toy")
    written(policy, tmp_path / "toy.npz")
    code = f"""
import sys
sys.modules.update(dict.fromkeys(("torch", "stable_baselines3", "sb3_contrib")))
from gpusched_env.agents.learned import LearnedScheduler
from gpusched_env import run_episode
scheduler = LearnedScheduler({str(tmp_path / "toy.npz")!r})
print(run_episode("Toy", scheduler).decisions)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "4\n"

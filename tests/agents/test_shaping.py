"""Shaped rewards: the growth of the potential telescopes, and undisturbed jobs earn nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gpusched_env.agents.shaping import PlanShaping, ProgressShaping
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.scenarios.scenario import Reward

if TYPE_CHECKING:
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv


def vec_env(scenario: str, count: int, shaped: bool, **overrides: Any) -> Sb3VecEnv:
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

    env = GpuSchedulingVectorEnv(scenario, num_envs=count, autoreset_mode="SAME_STEP", threads=1, **overrides)
    wrapped = Sb3VecEnv(env, 1.0, ProgressShaping(env.scenario.reward) if shaped else None)
    wrapped.seed(5)
    return wrapped


def returns(env: Sb3VecEnv, greedy: bool = False) -> tuple[list[float], list[float]]:
    """Sums of the rewards that an algorithm sees, and true returns, of the first episode of each environment."""
    rng = np.random.default_rng(0)
    env.reset()
    seen = np.zeros(env.num_envs)
    ended: dict[int, tuple[float, float]] = {}
    while len(ended) < env.num_envs:
        masks = np.stack(env.env_method("action_masks"))
        draws = rng.random(masks.shape) * masks
        launches = np.where(masks[:, 1:].any(1), masks[:, 1:].argmax(1) + 1, 0)
        actions = launches if greedy else draws.argmax(1)
        _, rewards, dones, infos = env.step(actions)
        seen += np.where([e in ended for e in range(env.num_envs)], 0.0, rewards)
        for e in np.flatnonzero(dones):
            ended.setdefault(int(e), (float(seen[e]), infos[e]["episode"]["r"]))
    return [ended[e][0] for e in range(env.num_envs)], [ended[e][1] for e in range(env.num_envs)]


SHORT = {"tenants": {"inference": {"jobs": 2}, "training": {"jobs": 1}}}


def test_the_return_changes_by_what_was_to_come_at_the_start() -> None:
    shaped, true = returns(vec_env("InferenceBesideTraining", 3, shaped=True, **SHORT))
    plain, same = returns(vec_env("InferenceBesideTraining", 3, shaped=False, **SHORT))
    assert true == pytest.approx(same)
    assert plain == pytest.approx(true, rel=1e-5)
    # At the first decision one job of each tenant is there: what both cost alone, 1 and 4 slowdowns, is to come.
    assert np.array(shaped) - np.array(true) == pytest.approx([5.0, 5.0, 5.0], abs=1e-3)


def test_a_job_alone_earns_about_nothing_on_the_way() -> None:
    tenants = [
        {"name": "a", "workload": "resnet50_infer_b1", "arrivals": {"kind": "closed-loop"}, "jobs": 1, "weight": 2.0}
    ]
    env = vec_env("InferenceBesideTraining", 1, shaped=True, tenants=tenants, variation=False)
    (shaped,), (true,) = returns(env, greedy=True)
    assert true == pytest.approx(-2.0, rel=0.02), "twice a slowdown of 1"
    assert shaped == pytest.approx(0.0, abs=0.05)


def test_nothing_is_added_where_jobs_in_the_system_cost_nothing() -> None:
    env = GpuSchedulingVectorEnv("MultiTenantBurst", num_envs=2, autoreset_mode="SAME_STEP", threads=1)
    observations, _ = env.reset(seed=0)
    shaping = ProgressShaping(Reward(slo_miss=1.0))
    shaping.begin(observations)
    observations, *_ = env.step(np.zeros(2, np.int64))
    assert shaping.step(observations, np.zeros(2, np.bool_)).tolist() == [0.0, 0.0]


def test_its_state_can_be_restored() -> None:
    env = vec_env("InferenceBesideTraining", 2, shaped=True)
    env.reset()
    for _ in range(50):
        env.step(np.stack(env.env_method("action_masks")).argmax(1))
    state = env.save_state()
    first = [env.step(np.zeros(2, np.int64))[1].tolist() for _ in range(20)]
    env.restore_state(state)
    assert [env.step(np.zeros(2, np.int64))[1].tolist() for _ in range(20)] == first


@pytest.mark.parametrize("action", [0, 1], ids=["by plan", "the first tenant first"])
def test_what_the_plan_loses_counts_at_once_and_once(action: int) -> None:
    """Discounted, all that shaping adds comes to minus the potential at the beginning, whatever is done."""
    env = GpuSchedulingEnv("ServingPoisson", interval_us=100.0, horizon_us=20000.0, load=2.0)
    gamma = 0.99
    shaping = PlanShaping(env.scenario.reward, gamma)
    observation, _ = env.reset(seed=3)
    batch = {name: table[None] for name, table in observation.items()}
    shaping.begin(batch)
    (potential,) = shaping.save_state()
    extra, discount, over, at_once = 0.0, 1.0, False, 0
    while not over:
        observation, reward, terminated, truncated, _ = env.step(action if env.action_masks()[action] else 0)
        over = terminated or truncated
        grown = float(shaping.step({name: table[None] for name, table in observation.items()}, np.array([over]))[0])
        at_once += grown < -0.5 and reward == 0.0
        extra, discount = extra + discount * grown, discount * gamma
    assert extra == pytest.approx(-float(potential[0]), abs=1e-3)
    assert at_once >= 5, "jobs that are lost long before they are late"

"""Shaped rewards: no way of playing earns more of the shaping than another."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.agents.shaping import ProgressShaping
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.observations import Observation
from tests.gaming.policies import Policy, honest, idle, idle_from, starving


def batched(observation: Observation) -> Observation:
    return {name: table[None] for name, table in observation.items()}


def earned(env: GpuSchedulingEnv, policy: Policy) -> tuple[float, float]:
    """Sums of the rewards of an episode and of what shaping adds to them."""
    shaping = ProgressShaping(env.scenario.reward)
    observation, _ = env.reset(seed=2)
    shaping.begin(batched(observation))
    total = extra = 0.0
    over = False
    while not over:
        observation, reward, terminated, truncated, _ = env.step(policy(env))
        over = terminated or truncated
        total += reward
        extra += float(shaping.step(batched(observation), np.array([over]))[0])
    return total, extra


@pytest.mark.parametrize("horizon_us", [400_000.0, 20_000.0], ids=["long", "truncated"])
def test_all_earn_the_same(horizon_us: float) -> None:
    """Progress that is shown and then left lying, at a horizon or in a tenant that is starved, is taken back."""
    tenants = {"inference": {"jobs": 3}, "training": {"jobs": 2}}
    env = GpuSchedulingEnv("InferenceBesideTraining", tenants=tenants, horizon_us=horizon_us)
    fair, *others = (earned(env, policy) for policy in (honest, idle, starving(0), starving(1), idle_from(10_000.0)))
    for total, extra in others:
        assert extra == pytest.approx(fair[1], abs=1e-3)
        assert total < fair[0]

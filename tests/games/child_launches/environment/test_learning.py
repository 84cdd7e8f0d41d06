"""Learners of stable-baselines3 run on the environment."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

from gpusched_env.games.child_launches.environment.env import DynamicParallelismEnv

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

REFINEMENT = 77
"""Seed of an application with 228 requests, nested ones, most of which are worth a launch: all of them make it nine
times as fast as none."""


class SameInput(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Every episode is of one seed."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self.env.reset(seed=REFINEMENT, options=options)


def test_the_checker_of_stable_baselines3_finds_nothing() -> None:
    from stable_baselines3.common.env_checker import check_env

    check_env(DynamicParallelismEnv())


@pytest.mark.slow
def test_ppo_learns_to_launch() -> None:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    def speedup(decide: Any) -> float:
        env = SameInput(DynamicParallelismEnv())
        observation, over, info = env.reset()[0], False, {}
        while not over:
            observation, _, over, _, info = env.step(decide(observation))
        return float(info["speedup"])

    torch.set_num_threads(1)
    envs = make_vec_env(lambda: SameInput(DynamicParallelismEnv()), n_envs=8)
    model = PPO("MlpPolicy", envs, n_steps=128, batch_size=256, learning_rate=3e-3, gamma=1.0, seed=0)
    model.learn(30_000)
    rng = np.random.default_rng(0)
    learned = speedup(lambda observation: int(model.predict(observation, deterministic=True)[0]))
    assert learned > 2.0 * speedup(lambda observation: int(rng.integers(2))) > 2.0

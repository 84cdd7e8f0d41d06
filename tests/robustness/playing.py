"""Environments of ``Toy``, and episodes in them, for attacks."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from gpusched_env.envs.env import GpuSchedulingEnv


def started(**arguments: Any) -> GpuSchedulingEnv:
    env = GpuSchedulingEnv("Toy", **arguments)
    env.reset(seed=0)
    return env


def play(env: gymnasium.Env[Any, Any], most: int = 1000) -> tuple[list[float], bool]:
    """Rewards of an episode that launches whatever it can, and whether it came to an end."""
    _, info = env.reset(seed=0)
    rewards: list[float] = []
    while len(rewards) < most:
        legal = np.flatnonzero(info["action_mask"])
        observation, reward, terminated, truncated, info = env.step(legal[min(1, len(legal) - 1)])
        assert all(np.isfinite(table).all() and np.abs(table).max() <= 1.0 for table in observation.values())
        rewards.append(float(reward))
        if terminated or truncated:
            return rewards, True
    return rewards, False

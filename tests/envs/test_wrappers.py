"""Episodes that a wrapper cuts have their metrics."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

from gpusched_env.envs.registration import env_id
from gpusched_env.envs.single import EpisodeMetrics

GAMES = {
    "InferenceBesideTraining": {},
    "ServingPoisson": {},
    "Fleet": {"problem": "small"},
    "TaskQueue": {"problem": "bfs-citation"},
    "DynamicParallelism": {"benchmark": "random"},
}

CUT = 8
"""Steps, before any of them ends by itself."""


def play(env: gym.Env[Any, Any], seed: int) -> tuple[float, dict[str, Any], list[dict[str, Any]]]:
    """Random legal actions to the end: the return, the last info, and those before it."""
    rng = np.random.default_rng(seed)
    _, info = env.reset(seed=seed)
    infos, total, over = [], 0.0, False
    while not over:
        infos.append(info)
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        _, reward, terminated, truncated, info = env.step(action)
        total += float(reward)
        over = terminated or truncated
    return total, info, infos


@pytest.mark.parametrize("name", GAMES)
def test_a_cut_episode_has_the_metrics_so_far(name: str) -> None:
    env = EpisodeMetrics(gym.make(env_id(name), max_episode_steps=CUT, **GAMES[name]))
    total, info, before = play(env, 3)
    assert len(before) == CUT
    assert not any("episode_metrics" in each for each in before)
    assert info["episode_metrics"]["cost"] == pytest.approx(-total)
    assert info["episode_metrics"] == env.unwrapped.summary()["episode_metrics"]  # type: ignore[attr-defined]
    assert "speedup" not in info


def test_one_that_ends_is_as_it_is() -> None:
    bare, wrapped = (wrap(gym.make(env_id("Toy"))) for wrap in (lambda env: env, EpisodeMetrics))
    np.testing.assert_equal(play(bare, 0), play(wrapped, 0))


def test_the_monitor_of_stable_baselines_writes_them() -> None:
    monitors = pytest.importorskip("stable_baselines3.common.monitor")
    cut = EpisodeMetrics(TimeLimit(gym.make(env_id("InferenceBesideTraining")), 5))
    _, info, _ = play(monitors.Monitor(cut, info_keywords=("episode_metrics", "reward_terms")), 0)
    assert info["episode"]["l"] == 5
    assert info["episode"]["r"] == pytest.approx(sum(info["reward_terms"].values()), abs=1e-6)
    assert info["episode"]["episode_metrics"] == info["episode_metrics"]

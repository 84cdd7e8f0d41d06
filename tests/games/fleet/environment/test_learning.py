"""MaskablePPO learns on a fleet's environment as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpusched_env.games.fleet.environment.env import FleetEnv

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def test_maskable_ppo_takes_its_masks(tmp_path: Path) -> None:
    sb3 = pytest.importorskip("sb3_contrib")
    path = tmp_path / "short.yaml"
    path.write_text("{name: short, days: 0.1, scale: 0.005}")
    env = FleetEnv(str(path))
    model = sb3.MaskablePPO("MlpPolicy", env, n_steps=64, batch_size=32, seed=0, device="cpu")
    model.learn(256)
    observation, info = env.reset(seed=0)
    over = False
    while not over:
        action, _ = model.predict(observation, action_masks=env.action_masks(), deterministic=True)
        observation, _, over, _, info = env.step(int(action))
    assert info["illegal_actions"] == 0

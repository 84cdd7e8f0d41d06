"""The film of a fleet."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np

from gpusched_env.experiments.pictures import uncover
from gpusched_env.games.fleet.environment.features import FleetFeature


def shoot(path: Path) -> None:
    """Play a day of a fleet, where each job goes to the fullest GPU on which it disturbs nobody."""
    env = gym.make("gpusched_env:gpusched/Fleet-v0", problem="burst", render_mode="rgb_array")
    observation, info = env.reset(seed=1)
    over = False
    while not over:
        undisturbed = (observation[:, FleetFeature.PRESENT] == 1) & (observation[:, FleetFeature.DISTURBS] == 0)
        action = int(np.argmax(undisturbed)) if undisturbed.any() else len(observation)
        observation, _, over, _, info = env.step(action)
    title = "A day of a fleet: jobs (grey), GPUs that they share (blue)"
    uncover(env.render(), title, f"{info['time_us'] / 3.6e9:.0f} h", path)

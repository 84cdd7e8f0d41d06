"""The film of child launches."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym

from gpusched_env.display.words import time_text
from gpusched_env.experiments.pictures import uncover


def shoot(path: Path) -> None:
    """Play an application whose threads launch kernels, and uncover the picture of it from left to right."""
    env = gym.make("gpusched_env:gpusched/DynamicParallelism-v0", render_mode="rgb_array")
    _, info = env.reset(seed=1)
    over = False
    while not over:
        _, _, over, _, info = env.step(int(info["action_mask"][1]))
    title = "Kernels that threads launched: on SMs (blue), waiting (orange)"
    uncover(env.render(), title, time_text(info["time_us"]), path)

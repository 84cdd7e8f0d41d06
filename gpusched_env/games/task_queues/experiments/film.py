"""The film of task queues."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym

from gpusched_env.display.words import time_text
from gpusched_env.experiments.pictures import uncover


def shoot(path: Path) -> None:
    """Play a search that takes tasks from a queue, and uncover the picture of it from left to right."""
    env = gym.make(
        "gpusched_env:gpusched/TaskQueue-v0", problem="bfs-citation", interval_us=5.0, render_mode="rgb_array"
    )
    _, info = env.reset(seed=0)
    over = False
    while not over:
        _, _, over, _, info = env.step(0)
    title = "A search: queued tasks (orange), busy workers (blue)"
    uncover(env.render(), title, time_text(info["time_us"]), path)

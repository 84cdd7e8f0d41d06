"""A picture of an episode: streams and SMs over time, as the environment renders them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.deciding import Decide
from gpusched_env.envs.env import GpuSchedulingEnv
from gpusched_env.envs.picture import window_us


def gantt(decide: Decide, config: TrainingConfig, seed: int) -> NDArray[np.uint8]:
    """The schedule from where all tenants first have a job, uint8 of shape ``(height, width, 3)``.

    If they never do before the episode ends, it shows the end.
    """
    env = GpuSchedulingEnv(
        config.scenario,
        render_mode="rgb_array",
        slots=config.slots,
        running_slots=config.running_slots,
        wait_us=config.wait_us,
    )
    span_us = window_us(env.problem)
    observation, info = env.reset(seed=seed)
    state = None
    starts = np.ones(1, np.bool_)
    met_us: float | None = None
    over = False
    while not over and (met_us is None or info["time_us"] < met_us + 0.9 * span_us):
        batch = {name: table[None] for name, table in observation.items()}
        actions, state = decide(batch, state, starts, env.action_masks()[None])
        observation, _, terminated, truncated, info = env.step(int(actions[0]))
        starts[:] = False
        over = terminated or truncated
        if met_us is None and env.view.tenants.jobs_waiting.all():
            met_us = info["time_us"]
    picture: NDArray[np.uint8] = env.render()
    env.close()
    return picture

"""A learner runs on the environment and its logs can be read."""

from __future__ import annotations

from pathlib import Path

import gymnasium
import pytest

import gpusched_env  # noqa: F401  (registers the ids)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.long
def test_maskable_ppo_learns_on_toy_and_logs_to_tensorboard(tmp_path: Path) -> None:
    import torch
    from sb3_contrib import MaskablePPO
    from stable_baselines3.common.monitor import Monitor
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    torch.set_num_threads(1)
    env = Monitor(gymnasium.make("gpusched/Toy-v0"))
    model = MaskablePPO(
        "MultiInputPolicy", env, n_steps=256, batch_size=64, learning_rate=1e-3, seed=0, tensorboard_log=str(tmp_path)
    )
    model.learn(2048, tb_log_name="toy")
    (run,) = tmp_path.iterdir()
    events = EventAccumulator(str(run))
    events.Reload()
    returns = events.Scalars("rollout/ep_rew_mean")
    assert [point.step for point in returns] == list(range(256, 2049, 256))
    assert all(-8.0 <= point.value <= -1.04 + 1e-9 for point in returns), "no schedule beats the optimum of 1.04"
    assert returns[-1].value > returns[0].value, "launching beats idling, which is learnt first"

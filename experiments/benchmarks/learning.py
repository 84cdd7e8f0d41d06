"""What sb3-contrib's MaskablePPO takes: frames a second of a training, and a decision of its network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env.base_vec_env import (
    VecEnv,
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
)

from gpusched_env.agents.policies.registry import policy_of
from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.experiments.benchmarks.environments import everything
from gpusched_env.experiments.benchmarks.timing import Measurement, timed

ROLLOUT_STEPS = 64
SETTINGS: dict[str, dict[str, Any]] = {"ppo": {}, "ppo_large_batches": {"batch_size": 1024, "n_epochs": 4}}
"""Batch size and epochs as MaskablePPO has them; and such that training takes a tenth of the time, and the
environment a larger share."""


class NullVecEnv(VecEnvWrapper):
    """An environment whose steps cost nothing: always the first observation and masks of another, no end."""

    def __init__(self, like: VecEnv) -> None:
        super().__init__(like)
        observations = like.reset()
        self._step = (observations, np.zeros(like.num_envs, np.float32), np.zeros(like.num_envs, np.bool_))
        self._masks = like.env_method("action_masks")

    def reset(self) -> VecEnvObs:
        return self._step[0]

    def step_async(self, actions: np.ndarray) -> None:
        """Nothing to do."""

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones = self._step
        return observations, rewards.copy(), dones, [{} for _ in range(self.num_envs)]

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **options: Any) -> list[Any]:
        return list(self._masks)


def training_frames(copies: int, threads: int, settings: dict[str, Any], *, null: bool) -> Measurement:
    """One rollout and the training on it, on the environment or on one that does nothing."""
    env: VecEnv = Sb3VecEnv(
        GpuSchedulingVectorEnv(num_envs=copies, threads=threads, autoreset_mode="SAME_STEP", **everything())
    )
    torch.set_num_threads(1)
    played = NullVecEnv(env) if null else env
    model = MaskablePPO("MultiInputPolicy", played, n_steps=ROLLOUT_STEPS, seed=0, device="cpu", **settings)
    frames = ROLLOUT_STEPS * copies
    model.learn(frames)
    return timed(lambda: model.learn(frames, reset_num_timesteps=False), frames)


def torch_decisions(scenario: str, states: int) -> Measurement:
    """The slot network in torch, one observation at a time, as a scheduler has to decide."""
    torch.set_num_threads(1)
    vector = GpuSchedulingVectorEnv(num_envs=1, autoreset_mode="SAME_STEP", **everything(scenario))
    env = Sb3VecEnv(vector)
    policy, arguments = policy_of("maskable-ppo", "slots", vector.layout)
    kind: Any = policy
    model = MaskablePPO(kind, env, policy_kwargs=arguments, device="cpu")
    observation: Any = env.reset()
    masks = vector.action_masks()

    def decide() -> None:
        for _ in range(states):
            model.predict(observation, deterministic=True, action_masks=masks)

    return timed(decide, states)

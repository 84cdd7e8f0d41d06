"""Frames a second of sb3-contrib's MaskablePPO, on the environment and on one that does nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from sb3_contrib import MaskablePPO
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvIndices, VecEnvObs, VecEnvStepReturn

from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.experiments.benchmarks.timing import Measurement, Stopwatch, Timing

ROLLOUT_STEPS = 64
DEFAULTS: dict[str, Any] = {}
"""Batch size and epochs as MaskablePPO has them."""
LARGE_BATCHES: dict[str, Any] = {"batch_size": 1024, "n_epochs": 4}
"""Settings under which training takes a tenth of the time, and the environment a larger share."""


class NullVecEnv(VecEnv):
    """An environment with the spaces of another whose steps cost nothing: always its first observation, no end."""

    def __init__(self, like: VecEnv) -> None:
        self._observations = like.reset()
        self._rewards = np.zeros(like.num_envs, np.float32)
        self._dones = np.zeros(like.num_envs, np.bool_)
        self._masks = np.ones((like.num_envs, int(like.action_space.n)), np.bool_)  # type: ignore[attr-defined]
        super().__init__(like.num_envs, like.observation_space, like.action_space)

    def reset(self) -> VecEnvObs:
        return self._observations

    def step_async(self, actions: np.ndarray) -> None:
        """Nothing to do."""

    def step_wait(self) -> VecEnvStepReturn:
        return self._observations, self._rewards.copy(), self._dones, [{} for _ in range(self.num_envs)]

    def close(self) -> None:
        """Nothing to do."""

    def env_method(
        self, method_name: str, *method_args: Any, indices: VecEnvIndices = None, **method_kwargs: Any
    ) -> list[Any]:
        return list(self._masks)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        return [None] * self.num_envs

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        raise NotImplementedError

    def env_is_wrapped(self, wrapper_class: Any, indices: VecEnvIndices = None) -> list[bool]:
        return [True] * self.num_envs


def native_vec_env(copies: int, threads: int) -> VecEnv:
    """The vector environment for stable-baselines3."""
    return Sb3VecEnv(GpuSchedulingVectorEnv(num_envs=copies, threads=threads, autoreset_mode="SAME_STEP"))


def training_frames(env: VecEnv, settings: dict[str, Any]) -> Measurement:
    """One rollout and the training on it."""
    import torch

    torch.set_num_threads(1)
    model = MaskablePPO("MultiInputPolicy", env, n_steps=ROLLOUT_STEPS, seed=0, device="cpu", **settings)
    frames = ROLLOUT_STEPS * env.num_envs
    model.learn(frames)

    def measure() -> Timing:
        watch = Stopwatch()
        with watch:
            model.learn(frames, reset_num_timesteps=False)
        return watch.timing(frames)

    return measure

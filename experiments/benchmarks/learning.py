"""What stable-baselines3 takes: its own wrappers, frames a second of a training, and a decision of its network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env.base_vec_env import (
    VecEnv,
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
)

from gpusched_env.agents.policies.registry import policy_of
from gpusched_env.agents.sb3_vec_env import Sb3VecEnv
from gpusched_env.envs.registration import env_id
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv
from gpusched_env.experiments.benchmarks.environments import everything
from gpusched_env.experiments.benchmarks.timing import Elapsed, Measurement, Stopwatch, timed

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
        """Take the actions of a step; there is nothing to do."""

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones = self._step
        return observations, rewards.copy(), dones, [{} for _ in range(self.num_envs)]

    def env_method(self, method_name: str, *args: Any, indices: VecEnvIndices = None, **options: Any) -> list[Any]:
        return list(self._masks)


def wrapped_decisions(scenario: str, copies: int, steps: int) -> dict[str, Measurement]:
    """Steps of environments under stable-baselines3, the ends of episodes included: the native vector environment on
    one thread (``native``), its ``make_vec_env`` (``made``), and that without a ``render_mode`` (``plain``)."""
    native = GpuSchedulingVectorEnv(scenario, num_envs=copies, threads=1, autoreset_mode="SAME_STEP")
    envs = {
        "native": Sb3VecEnv(native),
        "made": make_vec_env(env_id(scenario), n_envs=copies, seed=0),
        "plain": make_vec_env(env_id(scenario), n_envs=copies, seed=0, env_kwargs={"render_mode": None}),
    }
    return {name: _random_steps(env, steps) for name, env in envs.items()}


def _random_steps(env: VecEnv, steps: int) -> Measurement:
    """Random legal actions, which are drawn outside the stopwatch."""
    env.seed(0)
    env.reset()
    rng = np.random.default_rng(0)

    def measure() -> Elapsed:
        watch = Stopwatch()
        for _ in range(steps):
            masks = np.array(env.env_method("action_masks"))
            actions = (rng.random(masks.shape) * masks).argmax(axis=1)
            with watch:
                env.step(actions)
        return watch.timing(steps * env.num_envs)

    return measure


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

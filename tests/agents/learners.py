"""Learners on small environments, and exported policies with made-up weights."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.agents.policies.registry import policy_of
from gpusched_env.envs.observations import Observation
from gpusched_env.envs.vector_env import GpuSchedulingVectorEnv

if TYPE_CHECKING:
    from stable_baselines3.common.base_class import BaseAlgorithm

    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

SETTINGS: dict[str, dict[str, Any]] = {
    "maskable-ppo": {"n_steps": 16, "batch_size": 32, "n_epochs": 2},
    "ppo": {"n_steps": 16, "batch_size": 32, "n_epochs": 2},
    "a2c": {"n_steps": 16},
    "dqn": {"learning_starts": 16, "buffer_size": 200, "batch_size": 16},
    "recurrent-ppo": {"n_steps": 16, "batch_size": 32, "n_epochs": 2},
}
ALGORITHMS = tuple(SETTINGS)
EVERYTHING = {"commands": ("launch", "preempt", "partition"), "preemption": ("drain", "save", "reset")}


def learner_class(algo: str) -> Any:
    """Of stable-baselines3, which takes seconds to load: listing tests should not wait for it."""
    import sb3_contrib
    import stable_baselines3

    return {
        "maskable-ppo": sb3_contrib.MaskablePPO,
        "ppo": stable_baselines3.PPO,
        "a2c": stable_baselines3.A2C,
        "dqn": stable_baselines3.DQN,
        "recurrent-ppo": sb3_contrib.RecurrentPPO,
    }[algo]


def environment(count: int = 4, **arguments: Any) -> Sb3VecEnv:
    from gpusched_env.agents.sb3_vec_env import Sb3VecEnv

    return Sb3VecEnv(GpuSchedulingVectorEnv(num_envs=count, autoreset_mode="SAME_STEP", threads=1, **arguments))


def learner(algo: str, policy: str, env: Sb3VecEnv, **settings: Any) -> BaseAlgorithm:
    kind, arguments = policy_of(algo, policy, env.env.layout)
    given = {**SETTINGS[algo], **settings}
    made: BaseAlgorithm = learner_class(algo)(kind, env, policy_kwargs=arguments, seed=0, device="cpu", **given)
    return made


def played(env: Sb3VecEnv, steps: int) -> Observation:
    """Observations after random legal actions, mostly launches."""
    rng = np.random.default_rng(1)
    layout = env.env.layout
    first_other = 1 + layout.pending_slots * layout.choices("launch")
    observations = env.reset()
    for _ in range(steps):
        masks = env.env.action_masks()
        wanted = rng.random(masks.shape) * np.where(np.arange(masks.shape[1]) < first_other, 1.0, 0.8)
        observations, *_ = env.step((wanted * masks).argmax(axis=1))
    assert isinstance(observations, dict)
    return {name: np.array(table) for name, table in observations.items()}

"""Algorithms of stable-baselines3 and sb3-contrib by name, set up for a training."""

from __future__ import annotations

from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

from gpusched_env.agents.model_file import ALGORITHMS
from gpusched_env.agents.policies.registry import policy_of
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.envs.actions import ActionLayout


def new_model(config: TrainingConfig, env: VecEnv, layout: ActionLayout) -> BaseAlgorithm:
    """An untrained model.

    Raises:
        InputError: the policy is not offered with the algorithm.
    """
    settings: dict[str, Any] = dict(config.settings)
    end = settings.pop("learning_rate_end")
    if end is not None:
        settings["learning_rate"] = LinearSchedule(settings["learning_rate"], end, 1.0)
    assert config.policy is not None, "a checked configuration"
    policy, policy_kwargs = policy_of(config.algo, config.policy, layout)
    return ALGORITHMS[config.algo](
        policy,
        env,
        policy_kwargs={**policy_kwargs, **config.policy_kwargs},
        seed=config.seed,
        device=config.torch_device,
        **settings,
    )

"""How a model decides when it is evaluated: as its exported policy, compiled, where it has one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.policies import BasePolicy

from gpusched_env.agents.export import export_policy
from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.envs.observations import Observation

Decide = Callable[[Observation, Any, NDArray[np.bool_], NDArray[np.bool_]], tuple[NDArray[np.int64], Any]]
"""The best actions and the next state of a recurrent policy, from observations with a first axis of ``n``, the present
state (``None`` at first), which of them begin an episode, shape ``(n,)``, and legal actions, shape ``(n, actions)``."""


def exported_decider(model: BaseAlgorithm, path: Path, command: str = "") -> Decide:
    """Export the policy of ``model`` to ``path``, and decide as it does.

    Raises:
        InputError: the policy cannot be exported.
    """
    export_policy(model, path, command=command)
    return policy_decider(ExportedPolicy.load(path))


def policy_decider(policy: ExportedPolicy) -> Decide:
    """Decide as an exported policy."""
    return lambda observations, state, starts, masks: (policy.act(observations, masks), state)


def torch_decider(policy: BasePolicy) -> Decide:
    """Decide with PyTorch."""

    def decide(
        observations: Observation, state: Any, starts: NDArray[np.bool_], masks: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], Any]:
        given: dict[str, Any] = {"action_masks": masks} if isinstance(policy, MaskableActorCriticPolicy) else {}
        actions, state = policy.predict(observations, state, starts, deterministic=True, **given)
        return np.asarray(actions, np.int64), state

    return decide

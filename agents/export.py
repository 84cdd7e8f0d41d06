"""From a trained model of stable-baselines3 to the file of a policy that decides without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.torch_layers import CombinedExtractor
from torch import Tensor, nn

from gpusched_env.agents.model_file import TrainedModel, model_in_memory
from gpusched_env.agents.policies.sizes import MlpSizes, Sizes
from gpusched_env.agents.policies.slot_network import SlotActor
from gpusched_env.agents.policies.unseen import unseen
from gpusched_env.agents.policy_file import PolicyInfo, Weights, current_columns, write_policy
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.errors import InputError
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.versions import versions

EXPORTED = ("maskable-ppo", "ppo", "a2c", "dqn")
"""Algorithms whose policies can be exported."""


def export_policy(
    model: BaseAlgorithm | TrainedModel,
    path: str | Path,
    *,
    scenario: Scenario | None = None,
    wait_us: float | None = None,
    command: str = "",
) -> PolicyInfo:
    """Write the actor of ``model`` to a file that :class:`~gpusched_env.agents.exported.ExportedPolicy` reads.

    Args:
        model: of stable-baselines3, or what :func:`~gpusched_env.agents.model_file.read_model` found in a ``.zip``.
        path: of the file, by custom ``*.npz``.
        scenario: what the model was trained on; ``None``: the scenario of the model's environment.
        wait_us: longest wait of action 0 in training; ``None``: of the model's environment, 100 without one.
        command: the command that trained it, to be noted.

    Returns:
        what was written besides the weights.

    Raises:
        InputError: a model that cannot be exported, or that does not fit ``scenario``; nothing is written then.
    """
    info, weights = exported(model, scenario=scenario, wait_us=wait_us, command=command)
    write_policy(path, info, weights)
    return info


def exported(
    model: BaseAlgorithm | TrainedModel,
    *,
    scenario: Scenario | None = None,
    wait_us: float | None = None,
    command: str = "",
) -> tuple[PolicyInfo, Weights]:
    """What :func:`export_policy` writes."""
    trained = model if isinstance(model, TrainedModel) else model_in_memory(model)
    if trained.algorithm not in EXPORTED:
        raise InputError(f"a model of {trained.algorithm} cannot be exported: a recurrent policy keeps a state")
    scenario = trained.scenario if scenario is None else scenario
    if scenario is None:
        raise InputError("the model has no environment: say what it was trained on, export_policy(..., scenario=)")
    if wait_us is None:
        wait_us = 100.0 if trained.wait_us is None else trained.wait_us
    layout = trained.layout_in(scenario)
    if layout.n != trained.actions:
        raise InputError(
            f"the model has {trained.actions} actions, an environment of {scenario.name} {layout.n}: "
            "it was trained on another"
        )
    if unseen(layout):
        raise InputError(
            f"the model decides about {unseen(layout)} in {scenario.name}: policy files hold no network that sees "
            "their table; play its .zip"
        )
    network, tensors = _network(trained, layout)
    weights: Weights = {name: tensor.detach().cpu().numpy().astype(np.float32) for name, tensor in tensors.items()}
    info = PolicyInfo(
        network=network,
        columns=current_columns(),
        actions=layout,
        wait_us=wait_us,
        masked=trained.algorithm == "maskable-ppo",
        algorithm=trained.algorithm,
        scenario=scenario.name,
        command=command,
        seed=trained.seed,
        timesteps=trained.timesteps,
        versions=versions(),
    )
    return info, weights


def _network(model: TrainedModel, layout: ActionLayout) -> tuple[Sizes, dict[str, Tensor]]:
    """The actor's sizes and its weights by name."""
    policy: Any = model.policy
    if model.algorithm == "dqn":
        policy = policy.q_net
        layers = list(policy.q_net)
    elif hasattr(policy.mlp_extractor, "actor"):
        layers = [policy.mlp_extractor.actor]
    else:
        layers = [*policy.mlp_extractor.policy_net, policy.action_net]
    if isinstance(layers[0], SlotActor):
        actor = layers[0]
        weights = dict(actor.state_dict())
        return actor.sizes, {name: weights[name] for name in actor.sizes.shapes(layout)}
    extractor = policy.features_extractor
    linear = [layer for layer in layers if isinstance(layer, nn.Linear)]
    activations = {type(layer) for layer in layers if not isinstance(layer, nn.Linear)}
    if not isinstance(extractor, CombinedExtractor) or len(layers) != 2 * len(linear) - 1:
        raise InputError(f"a policy of {type(policy).__name__} with {type(extractor).__name__} cannot be exported")
    if activations - {nn.Tanh} and activations - {nn.ReLU}:
        names = ", ".join(sorted(kind.__name__ for kind in activations))
        raise InputError(f"a policy with the activations {names} cannot be exported; it can with Tanh or ReLU")
    tables: Any = extractor.extractors.keys()
    sizes = MlpSizes(
        inputs=tuple(tables),
        widths=tuple(layer.out_features for layer in linear[:-1]),
        activation="relu" if nn.ReLU in activations else "tanh",
    )
    found: dict[str, Tensor] = {}
    for number, layer in enumerate(linear):
        found |= {f"{number}.weight": layer.weight, f"{number}.bias": layer.bias}
    return sizes, found

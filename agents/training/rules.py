"""A rule under training: its weights as a policy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.model_file import Decide
from gpusched_env.agents.policies.registry import RULES
from gpusched_env.agents.policies.serve import ServeTerm, Way
from gpusched_env.agents.policies.sizes import ServeSizes, Shapes
from gpusched_env.agents.policy_file import (
    PolicyInfo,
    Weights,
    current_columns,
    kind,
    read_policy,
    write_policy,
)
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.environments import training_layout
from gpusched_env.agents.training.folder import EXPORTED
from gpusched_env.agents.training.validation import Course, policy_decider
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.versions import versions


class RuleTraining:
    """What trainings of rules have in common, however they find the weights."""

    def __init__(self, course: Course, config: TrainingConfig) -> None:
        self._course, self._config = course, config
        self._layout = training_layout(config)
        self._network = RULES[config.policy or ""].of(self._layout)

    @property
    def shapes(self) -> Shapes:
        """Of the weights, by name."""
        return self._network.shapes(self._layout)

    def policy(self, weights: Weights, timesteps: int) -> ExportedPolicy:
        """The rule with some weights; ``timesteps``: decisions that it was trained for."""
        return ExportedPolicy(self._info(timesteps), weights)

    def decider(self, weights: Weights, timesteps: int) -> Decide:
        """The same, as the judge takes it."""
        return policy_decider(self.policy(weights, timesteps))

    def keep(self, weights: Weights, timesteps: int) -> None:
        """Save it."""
        write_policy(self._course.out / EXPORTED, self._info(timesteps), weights)

    def _info(self, timesteps: int) -> PolicyInfo:
        config = self._config
        return PolicyInfo(
            network=self._network,
            columns=current_columns(),
            actions=self._layout,
            wait_us=config.wait_us,
            masked=True,
            algorithm=config.algo,
            scenario=config.scenario.name,
            command=self._course.command,
            seed=config.seed,
            timesteps=timesteps,
            versions=versions(),
        )


def first_weights(config: TrainingConfig) -> Weights | None:
    """Weights of the exported policy that a training begins with; ``None``: it begins with none.

    Raises:
        InputError: no such file, or a policy of another kind or size.
    """
    if config.begin_with is None:
        return None
    network = RULES[config.policy or ""].of(training_layout(config))
    info, weights = read_policy(config.begin_with)
    if isinstance(info.network, ServeSizes) and isinstance(network, ServeSizes):
        # Made when there were fewer ways: what a new one adds is 0.
        more = np.zeros(network.shapes(training_layout(config))["value"], np.float32)
        more[: info.network.ways] = weights["value"]
        weights = {"value": more}
    shapes = {name: array.shape for name, array in weights.items()}
    if kind(info.network) != kind(network) or shapes != network.shapes(training_layout(config)):
        raise InputError(
            f"{config.begin_with}: a policy {kind(info.network)} with weights {shapes}; this training is of "
            f"{kind(network)}, {network.shapes(training_layout(config))}"
        )
    return weights


def searched_weights(config: TrainingConfig, shapes: Shapes) -> dict[str, NDArray[np.bool_]] | None:
    """By name which weights a search changes; ``None``: all.

    Raises:
        InputError: a rule of this kind has no such weights.
    """
    names = config.settings["search"]
    if names is None:
        return None
    ways = {f"{way.name}.{term.name}".lower(): (int(way), int(term)) for way in Way for term in ServeTerm}
    found = {name: np.full(shape, name in names) for name, shape in shapes.items()}
    known = [*shapes, *(ways if config.policy == "serve" else ())]
    for name in names:
        if name not in known:
            raise InputError(
                f"search: a rule of kind {config.policy} has no weights {name!r}; {did_you_mean(name, known)}"
            )
        if name not in shapes:
            found["value"][ways[name]] = True
    return found

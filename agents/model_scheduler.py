"""A model of stable-baselines3 as a scheduler, also one whose policy cannot be exported. Needs PyTorch."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from gpusched_env.agents.training.algorithms import ALGORITHMS
from gpusched_env.agents.training.config import TrainingConfig, read_config
from gpusched_env.agents.training.deciding import torch_decider
from gpusched_env.agents.training.results import CONFIG
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.observations import ObservationEncoder
from gpusched_env.envs.setup import lay_out
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge, Offer
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.view import View


class ModelScheduler:
    """A trained model, from the ``.zip`` of a training with its ``config.yaml`` beside it."""

    def __init__(self, path: str | Path) -> None:
        """Load the model.

        Raises:
            InputError: no model, or no configuration beside it.
        """
        self._path = Path(path)
        self._config: TrainingConfig = read_config(self._path.parent / CONFIG)
        try:
            model = ALGORITHMS[self._config.algo].load(self._path, device="cpu")
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            raise InputError(f"{self._path}: not a model of stable-baselines3 ({error})") from error
        self._decide = torch_decider(model)
        self._trained = lay_out(
            self._config.scenario, slots=self._config.slots, running_slots=self._config.running_slots
        )
        self._encoder = ObservationEncoder(self._trained.slots, self._trained.running_slots, self._trained.lookahead)

    def describe(self) -> str:
        """One line about the model."""
        return f"Trained agent: {self._config.algo}, {self._config.policy}, on {self._config.scenario.name}."

    def prepare(self, scenario: Offer) -> None:
        """Find out whether the model fits ``scenario``.

        Raises:
            InputError: it was trained with other actions, or for fewer tenants.
        """
        if len(scenario.tenants) > self._trained.slots:
            raise InputError(
                f"{self._path}: the model has {self._trained.slots} tenant rows; "
                f"scenario {scenario.name} has {len(scenario.tenants)} tenants"
            )
        if ActionLayout.of(scenario, self._trained.slots, self._trained.running_slots) != self._trained:
            raise InputError(
                f"{self._path}: scenario {scenario.name} offers other commands, stream priorities, streams or ways of "
                f"preempting, or another look-ahead, than {self._config.scenario.name}, which the model was trained on"
            )

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """A new episode; a recurrent model forgets the last one."""
        self.prepare(knowledge)
        self._streams = knowledge.streams
        self._state: Any = None
        self._first = True

    def decide(self, view: View) -> Command:
        """The model's best action."""
        shown = self._trained.select(view)
        observation = {name: table[None] for name, table in self._encoder.encode(view, shown).items()}
        mask = self._trained.mask(view, shown)
        actions, self._state = self._decide(observation, self._state, np.array([self._first]), mask[None])
        self._first = False
        action = int(actions[0])
        wait_us = self._config.wait_us
        # As in the environment, an illegal action is a wait.
        legal = action if mask[action] else 0
        return self._trained.decode(legal, view, wait_us=wait_us, streams=self._streams, shown=shown)

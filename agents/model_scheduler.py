"""A model of stable-baselines3 as a scheduler, also one whose policy cannot be exported. Needs PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gpusched_env.agents.learned import Acting
from gpusched_env.agents.model_file import read_model, torch_decider
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.observations import ObservationEncoder
from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Knowledge, Offer
from gpusched_env.scenarios.scenario import CommandName, Scenario
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.reads import OBSERVED, Reads
from gpusched_env.scheduling.view import View

WAIT_US = 100.0
"""Longest wait of action 0 where the file does not say: that of environments that were not told another."""


class ModelScheduler:
    """A trained model, from the ``.zip`` of a training or of ``model.save``."""

    reads: Reads = OBSERVED

    def __init__(self, path: str | Path, *, trust: bool = False) -> None:
        """Load the model.

        Args:
            path: of the ``.zip``.
            trust: whether code in the file may run (:func:`~gpusched_env.agents.model_file.read_model`).

        Raises:
            InputError: as :func:`~gpusched_env.agents.model_file.read_model`.
        """
        self._path = Path(path)
        self.set_up = SetUp(uses=self._uses)
        self._model = read_model(self._path, trust=trust)
        self._decide = torch_decider(self._model.policy)
        self._wait_us = WAIT_US if self._model.wait_us is None else self._model.wait_us
        self._layout: ActionLayout | None = None

    def describe(self) -> str:
        """One line about the model."""
        scenario = self._model.scenario
        where = "" if scenario is None else f" on {scenario.name}"
        return f"Trained agent: {self._model.algorithm}{where}."

    def prepare(self, scenario: Offer) -> None:
        """Find out whether the model fits ``scenario``.

        Raises:
            InputError: it was trained with other actions or observations, or for fewer tenants.
        """
        slots, _ = self._model.rows
        if len(scenario.tenants) > slots:
            raise InputError(
                f"{self._path}: the model has {slots} tenant rows; "
                f"scenario {scenario.name} has {len(scenario.tenants)} tenants"
            )
        layout = self._layout
        if layout is None or isinstance(scenario, Scenario) or self._model.scenario is not None:
            layout = self._model.layout_in(scenario)
        # Otherwise knowledge of the scenario before, which does not say what environments it has.
        encoder = ObservationEncoder.of(layout)
        trained = self._model.scenario
        other = trained is not None and self._model.layout_in(trained) != layout
        if other or layout.n != self._model.actions or encoder.space() != self._model.policy.observation_space:
            raise InputError(
                f"{self._path}: scenario {scenario.name} offers other commands, stream priorities, streams or ways of "
                f"preempting, or another look-ahead, than {trained.name if trained is not None else 'the one'}, "
                "which the model was trained on"
            )
        self._layout, self._encoder = layout, encoder

    def _uses(self, scenario: Scenario) -> tuple[CommandName, ...]:
        """Commands of ``scenario`` that the model has actions for; no other one asks it for a decision.

        Raises:
            InputError: as :meth:`prepare`.
        """
        self.prepare(scenario)
        assert self._layout is not None, "prepared"
        return self._layout.uses(scenario.commands)

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """A new episode; a recurrent model forgets the last one."""
        self.prepare(knowledge)
        assert self._layout is not None, "prepared"
        self._acting = Acting(self._layout, self._wait_us)
        self._acting.reset(knowledge)
        self._streams = knowledge.streams
        self._state: Any = None
        self._first = True

    def decide(self, view: View) -> Command:
        """The model's best action, or what follows from the last."""
        assert self._layout is not None, "reset comes first"
        standing = self._acting.standing(view)
        if standing is not None:
            return standing
        shown = self._layout.select(view)
        observation = {
            name: table[None] for name, table in self._encoder.encode(view, shown, self._acting.outlook).items()
        }
        mask = self._layout.mask(view, shown)
        actions, self._state = self._decide(observation, self._state, np.array([self._first]), mask[None])
        self._first = False
        action = int(actions[0])
        # As in the environment, an illegal action is a wait.
        legal = action if mask[action] else 0
        return self._acting.command(legal, view, self._streams, shown)

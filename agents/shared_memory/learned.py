"""The network as a scheduler: it sees and does what it does in the environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import numpy as np

from gpusched_env.agents.acting import Acting
from gpusched_env.agents.shared_memory.playing import WAIT_US
from gpusched_env.agents.shared_memory.rule import WEIGHTS, Singles, actions
from gpusched_env.envs.action_fields import BUDGETS
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.observations import RUNNING_SLOTS, ObservationEncoder
from gpusched_env.errors import InputError
from gpusched_env.reading import read_text
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import Command, SetBudget
from gpusched_env.scheduling.reads import OBSERVED, Reads
from gpusched_env.scheduling.view import View

SHIPPED: Final = Path(__file__).with_name("weights.json")
PERIOD_US: Final = 1000.0


def read_weights(path: Path = SHIPPED) -> Singles:
    """The weights in a file of :mod:`~gpusched_env.agents.shared_memory.searching`.

    Raises:
        InputError: it cannot be read, or holds another number of weights.
    """
    try:
        weights = np.array(json.loads(read_text(path))["weights"], np.float32)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no file of weights: {error}") from error
    if weights.shape != (WEIGHTS,):
        raise InputError(f"{path}: weights have shape {weights.shape}, must be ({WEIGHTS},)")
    return weights


class LearnedBudgets:
    """A trained network gives each core the budget that the present kernel and its deadline allow."""

    reads: Reads = OBSERVED
    set_up = SetUp(commands=("budget",))

    def __init__(self, path: str | Path | None = None) -> None:
        """
        Args:
            path: of the weights; ``None``: those that are shipped.

        Raises:
            InputError: as :func:`read_weights`.
        """
        self._weights = read_weights(SHIPPED if path is None else Path(path))

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        """A new episode.

        Raises:
            InputError: no cores share the GPU's memory.
        """
        if knowledge.core_count == 0:
            raise InputError(f"scenario {knowledge.name}: no CPU cores share the GPU's memory; nothing has a budget")
        self._layout = ActionLayout.of(knowledge, len(knowledge.tenants), RUNNING_SLOTS, PERIOD_US)
        assert self._layout.budgets == BUDGETS
        self._encoder = ObservationEncoder.of(self._layout)
        self._first = self._layout.first(SetBudget.NAME)
        self._streams = knowledge.streams
        self._acting = Acting(self._layout, WAIT_US)
        self._acting.reset(knowledge)

    def decide(self, view: View) -> Command:
        """The next budget, or what is pending."""
        standing = self._acting.standing(view)
        if standing is not None:
            return standing
        shown = self._layout.select(view)
        observation = {name: table[None] for name, table in self._encoder.encode(view, shown).items()}
        legal = self._layout.mask(view, shown)[None]
        action = int(actions(self._weights, observation, legal, self._first)[0])
        return self._acting.command(action, view, self._streams, shown)

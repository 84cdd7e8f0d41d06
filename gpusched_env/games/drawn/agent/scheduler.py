"""The agent as a scheduler: at each millisecond its policy chooses the rule that decides until the next."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Final

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.games.drawn.agent.network import numbers_of
from gpusched_env.games.drawn.agent.policy import read_choice_policy
from gpusched_env.games.drawn.agent.seeing import REPERTOIRE, SeenSoFar
from gpusched_env.games.drawn.environment.env import INTERVAL_US
from gpusched_env.games.drawn.environment.rules import RULES, ChosenRule
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scheduling.commands import Command
from gpusched_env.scheduling.view import View

DECISION_US: Final = 20.0
"""Host time of a decision; the rule before it decides meanwhile."""
FIRST: Final = RULES.index("priority-streams")
"""Decides until the first choice is made."""


class ChoosingAgent(ChosenRule):
    """A trained policy over rules."""

    def __init__(
        self,
        policy: str | Path | None = None,
        *,
        interval_us: float = INTERVAL_US,
        decision_us: float = DECISION_US,
    ) -> None:
        """
        Args:
            policy: a file of the policy; ``None``: the one that is shipped.
            interval_us: how long a choice stands (> 0).
            decision_us: host time of a decision: a choice stands from so much later on (0 or more).

        Raises:
            InputError: the file cannot be read, or is no such policy; a time out of its range.
        """
        if not 0.0 < interval_us < math.inf:
            raise InputError(f"interval_us is {interval_us!r}, must be a finite number above 0")
        if not 0.0 <= decision_us < interval_us:
            raise InputError(f"decision_us is {decision_us!r}, must be at least 0 and below interval_us")
        self._info, self._weights = read_choice_policy(policy)
        self._interval_us, self._decision_us = interval_us, decision_us

    def describe(self) -> str:
        """One line about the policy."""
        return self._info.summary()

    def reset(self, knowledge: Knowledge, rng: np.random.Generator) -> None:
        super().reset(knowledge, rng)
        self._seen = SeenSoFar(knowledge)
        self._due_us = -math.inf
        self._decided = FIRST

    def decide(self, view: View) -> Command:
        if view.time_us >= self._due_us:
            # The rule before it stands while the host decides, and the choice from then on.
            self.choose(self._decided, view.time_us + self._decision_us)
            choice = int(numbers_of(self._weights, self._seen.row(view)).argmax())
            self._decided = RULES.index(REPERTOIRE[choice])
            self._seen.chose(choice)
            self._due_us = view.time_us + self._interval_us
        if view.time_us >= self.until_us:
            self.choose(self._decided, self._due_us)
        return super().decide(view)

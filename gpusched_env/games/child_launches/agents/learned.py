"""The trained launch rule as a scheduler of child launches."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpusched_env.agents.shipped import FOLDER
from gpusched_env.agents.training.folder import policy_file
from gpusched_env.games.child_launches.agents.policy_file import read_launch_policy
from gpusched_env.games.child_launches.agents.rule import launch_number
from gpusched_env.games.child_launches.environment.encoding import WIDTH, costs_of, encode
from gpusched_env.games.child_launches.view import SERIALISE, SPAWN, Decision, LaunchKnowledge, RequestView

NAME = "DynamicParallelism"


class LearnedLaunches:
    """A launch rule whose weights were searched on random applications."""

    def __init__(self, path: str | Path | None = None) -> None:
        """
        Args:
            path: of a file or of the folder of a training; ``None``: the agent that is shipped.

        Raises:
            InputError: there is none, or it does not fit.
        """
        self.file = FOLDER / f"{NAME}.npz" if path is None else policy_file(Path(path))
        self.info, weights = read_launch_policy(self.file)
        self._weights = weights["value"]
        self._columns = np.zeros(WIDTH, np.float32)
        self.program = self.info.program
        """As in training."""

    def reset(self, knowledge: LaunchKnowledge, rng: np.random.Generator) -> None:
        """Take the launch costs of the GPU."""
        self._costs = costs_of(knowledge.machine)

    def decide(self, view: RequestView) -> Decision:
        """By the sign of the rule's number."""
        encode(view, view, self._costs, self._columns)
        return SPAWN if launch_number(self._weights, self._columns) >= 0.0 else SERIALISE

    def describe(self) -> str:
        """One line about it."""
        return self.info.summary()

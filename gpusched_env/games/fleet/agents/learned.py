"""The trained fleet rule as a dispatcher."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpusched_env.agents.shipped import FOLDER
from gpusched_env.agents.training.folder import policy_file
from gpusched_env.games.fleet.agents.playing import beside_compiled, flat, gpu_for_compiled, gpu_to_empty_compiled
from gpusched_env.games.fleet.agents.policy_file import read_fleet_policy
from gpusched_env.games.fleet.environment.emptying import Emptying
from gpusched_env.games.fleet.environment.encoding import WIDTH
from gpusched_env.games.fleet.rates import shipped_rates
from gpusched_env.games.fleet.state import WAITS, FleetState

NAME = "Fleet"


class LearnedFleet(Emptying):
    """A fleet rule whose weights were searched on generated days: placing, moving, and who shares with whom."""

    def __init__(self, path: str | Path | None = None, *, moves: bool = True, rates: str = "block-level") -> None:
        """
        Args:
            path: of a file or of the folder of a training; ``None``: the agent that is shipped.
            moves: whether jobs are moved.
            rates: that latencies are predicted with, as :func:`~gpusched_env.games.fleet.rates.shipped_rates` has them.

        Raises:
            InputError: there is none, or it does not fit.
        """
        self.file = FOLDER / f"{NAME}.npz" if path is None else policy_file(Path(path))
        self.info, weights = read_fleet_policy(self.file)
        self.control, self.weights, self.moves = self.info.control, flat(weights), moves
        self._rates = shipped_rates(rates)
        self._row = np.zeros(WIDTH, np.float32)

    def _gpu_for(self, fleet: FleetState, job: int) -> int:
        return int(gpu_for_compiled(fleet, self._rates, self.weights, job, self._row))

    def _beside(self, fleet: FleetState, job: int, but: int) -> int:
        return int(beside_compiled(fleet, self._rates, self.weights, job, but, self._row))

    def _gpu_to_empty(self, fleet: FleetState) -> int:
        return int(gpu_to_empty_compiled(fleet, self._rates, self.weights, self._row)) if self.moves else WAITS

    def describe(self) -> str:
        """One line about it."""
        return self.info.summary()

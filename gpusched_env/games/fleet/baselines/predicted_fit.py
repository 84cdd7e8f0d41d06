"""First fit or best fit where the rate model predicts that every SLO is kept; nearly empty GPUs are emptied.

Ours, no paper's: what a hand-written rule can do that knows as much as the agent. With ``empty`` 0 nothing is moved, as
in GPUColo (ICDCS 2024).
"""

from __future__ import annotations

import math
from typing import ClassVar, Final

import numpy as np

from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.co_location import NOW, shipped_rates
from gpusched_env.games.fleet.environment.encoding import (
    WIDTH,
    ConsolidatingDispatcher,
    empty_gpu_compiled,
    first_undisturbed,
)
from gpusched_env.games.fleet.problem import WAITS, FleetState

TRIES: Final = 3
"""GPUs that are looked at in a report, the emptiest first."""


class PredictedFit(ConsolidatingDispatcher):
    """First fit, or best fit, where every SLO is predicted to be kept; GPUs that are nearly empty are emptied."""

    control = "gpucolo-worst"
    ranges: ClassVar[Ranges] = {"best": Choice((False, True)), "empty": Range(0.0, 1.0)}

    def __init__(self, best: bool = False, empty: float = 0.0) -> None:
        """
        Args:
            best: to the GPU with the least utilisation left, in place of the first one.
            empty: at each report, a GPU of at most this utilisation is emptied if all its jobs have another one.

        Raises:
            InputError: ``empty`` is out of range.
        """
        if not 0.0 <= empty <= 1.0:
            raise InputError(f"predicted-fit: empty is {empty}, must be 0 to 1 (utilisation of a GPU)")
        self.best, self.empty = best, empty
        self._rates, self._row = shipped_rates(), np.zeros(WIDTH, np.float32)

    def _gpu_for(self, fleet: FleetState, job: int) -> int:
        found = self._beside(fleet, job, WAITS)
        return int(empty_gpu_compiled(fleet, job)) if found == WAITS else found

    def _beside(self, fleet: FleetState, job: int, but: int) -> int:
        return int(first_undisturbed(fleet, self._rates, job, but, self.best, self._row))

    def _gpu_to_empty(self, fleet: FleetState) -> int:
        light = np.where(fleet.count > 0, fleet.load, math.inf)
        for gpu in np.argsort(light, kind="stable")[:TRIES].tolist():
            jobs = fleet.slots[gpu, : fleet.count[gpu]]
            if self.empty == 0.0 or light[gpu] > self.empty or (fleet.ready_us[jobs] > fleet.clock[NOW]).any():
                continue
            if all(self._beside(fleet, job, gpu) != WAITS for job in jobs.tolist()):
                return int(gpu)
        return WAITS

"""Dispatchers of a fleet by name: written by hand, tuned (``tuned:NAME``) or learned; and runs of them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.games.own import NamedSchedulers
from gpusched_env.games.fleet.agents.learned import NAME, LearnedFleet
from gpusched_env.games.fleet.agents.playing import flat, play_day
from gpusched_env.games.fleet.agents.rule import HALF, SHAPES, MoveTerm, PlaceTerm
from gpusched_env.games.fleet.baselines.predicted_fit import PredictedFit
from gpusched_env.games.fleet.baselines.registry import DISPATCHERS
from gpusched_env.games.fleet.device import FleetRun, run_fleet
from gpusched_env.games.fleet.dispatcher import Dispatcher
from gpusched_env.games.fleet.problem import FleetProblem

NAMED: Final = NamedSchedulers[Dispatcher](NAME, DISPATCHERS, LearnedFleet)
new_dispatcher: Final = NAMED.new


def run_day(dispatcher: Dispatcher, problem: FleetProblem) -> FleetRun:
    """Of any of them; the agent and what is a point of its rule play compiled, which gives the same."""
    if isinstance(dispatcher, LearnedFleet):
        return play_day(dispatcher.weights, problem, control=dispatcher.control, moves=dispatcher.moves)[0]
    if isinstance(dispatcher, PredictedFit):
        moves = dispatcher.empty > 0.0
        return play_day(_weights_of(dispatcher), problem, control=dispatcher.control, moves=moves)[0]
    return run_fleet(dispatcher, problem)


def _weights_of(dispatcher: PredictedFit) -> NDArray[np.float32]:
    """Those of the fleet rule that does the same."""
    weights = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    weights["place"][:, PlaceTerm.LOAD] = 0.1 if dispatcher.best else 0.0
    weights["move"][MoveTerm.ONE] = dispatcher.empty - HALF
    return flat(weights)

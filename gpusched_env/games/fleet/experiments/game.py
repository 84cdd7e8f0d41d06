"""A fleet of GPUs, as experiments ask for it: dispatchers by name (written by hand, tuned as ``tuned:NAME``, or
learned), episodes of rankings, trainings, and the film.

A variant is a kind of day, its jobs are a seed, and the cost is that of days.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.games.game import Game
from gpusched_env.experiments.games.own import NamedSchedulers, OwnGame
from gpusched_env.experiments.pictures import GameFilm
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.fleet.agents.rule import (
    HALF,
    NAME,
    SHAPES,
    LearnedFleet,
    MoveTerm,
    PlaceTerm,
    play_day,
    weights_in_a_row,
)
from gpusched_env.games.fleet.agents.trainer import FleetTraining
from gpusched_env.games.fleet.baselines.predicted_fit import PredictedFit
from gpusched_env.games.fleet.baselines.registry import DISPATCHERS
from gpusched_env.games.fleet.device import FleetDispatcher, FleetRun, run_fleet
from gpusched_env.games.fleet.environment.encoding import FleetFeature
from gpusched_env.games.fleet.environment.problems import DAYS, RANDOM, fleet_cost, fleet_problem
from gpusched_env.games.fleet.problem import FleetProblem

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.run import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking


NAMED: Final = NamedSchedulers[FleetDispatcher](NAME, DISPATCHERS, LearnedFleet)
new_dispatcher: Final = NAMED.new


def run_day(dispatcher: FleetDispatcher, problem: FleetProblem) -> FleetRun:
    """The run of any dispatcher; the agent and what is a point of its rule play compiled, which gives the same."""
    if isinstance(dispatcher, LearnedFleet):
        return play_day(dispatcher.weights, problem, control=dispatcher.control, moves=dispatcher.moves)[0]
    if isinstance(dispatcher, PredictedFit):
        moves = dispatcher.empty > 0.0
        return play_day(_weights_of(dispatcher), problem, control=dispatcher.control, moves=moves)[0]
    return run_fleet(dispatcher, problem)


def _weights_of(dispatcher: PredictedFit) -> NDArray[np.float32]:
    """The weights of the fleet rule that does the same as the dispatcher."""
    weights = {name: np.zeros(shape, np.float32) for name, shape in SHAPES.items()}
    weights["place"][:, PlaceTerm.LOAD] = 0.1 if dispatcher.best else 0.0
    weights["move"][MoveTerm.ONE] = dispatcher.empty - HALF
    return weights_in_a_row(weights)


def run_fleet_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes."""
    run = run_day(new_dispatcher(cell.scheduler), _problem(cell.variant, cell.seed))
    return EpisodeCost(cell, fleet_cost(run))


@functools.lru_cache(1)
def _problem(name: str, seed: int) -> FleetProblem:
    return fleet_problem(name, seed)


def _fullest_undisturbed(observation: NDArray[np.float32], _: object) -> int:
    """The action for the fullest GPU on which a job disturbs nobody; without one it waits."""
    undisturbed = (observation[:, FleetFeature.PRESENT] == 1) & (observation[:, FleetFeature.DISTURBS] == 0)
    return int(np.argmax(undisturbed)) if undisturbed.any() else len(observation)


FILM: Final = GameFilm(
    env="Fleet-v0",
    options={"problem": "burst"},
    choose=_fullest_undisturbed,
    title="A day of a fleet: jobs (grey), GPUs that they share (blue)",
    clock=lambda us: f"{us / 3.6e9:.0f} h",
)


PLAY: Final = (
    "gpusched_env.games.fleet.device",
    "gpusched_env.games.fleet.agents.rule",
    "gpusched_env.games.fleet.environment.problems",
)
"""Modules that play an episode."""


class Fleets(OwnGame):
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    title = "Fleets"
    about = "which of [a fleet's GPUs](fleet.md) a job goes to, and what runs on each."
    plain_gpu = "no-colocation"
    named = NAMED
    task = staticmethod(run_fleet_cell)
    ranked_on = tuple(DAYS)
    drawn = RANDOM
    play = PLAY
    training = FleetTraining
    trained_for = "the GPUs of its days"

    def mean(self, costs: Sequence[float]) -> float:
        return statistics.fmean(costs)

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {
            NAME: [
                "Cost: GPUs in use, and one more for each inference job that is late and each job that waits, over the "
                "jobs at a time."
            ]
        }

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.games.fleet.experiments.fuzzing import FLEETS

        return FLEETS


GAME: Final[Game] = Fleets()

"""A fleet of GPUs: the game of dispatchers."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.experiments.games.game import Game, Validation
from gpusched_env.experiments.games.own import OwnGame
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.games.fleet.agents.config import FleetTraining
from gpusched_env.games.fleet.agents.learned import NAME
from gpusched_env.games.fleet.baselines.registry import DISPATCHERS, make_dispatcher
from gpusched_env.games.fleet.environment.problems import DAYS, RANDOM, fleet_cost, fleet_problem
from gpusched_env.games.fleet.experiments.dispatchers import NAMED, run_day
from gpusched_env.games.fleet.experiments.grid import run_fleet_cell

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.fuzzing import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking

PLAY: Final = (
    "gpusched_env.games.fleet.device",
    "gpusched_env.games.fleet.agents.playing",
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

    def baselines(self, config: Any) -> list[str]:
        return DISPATCHERS.names()

    def validation(self, config: FleetTraining) -> Validation:
        from gpusched_env.games.fleet.training import validation_days

        seeds = validation_days(config)
        return Validation(
            seeds=seeds,
            problems=[RANDOM],
            episodes=len(seeds),
            costs=lambda names, on_progress: _costs(seeds, names, on_progress),
        )

    @property
    def fuzzing(self) -> Fuzzing:
        from gpusched_env.games.fleet.experiments.fuzz.fuzzing import FLEETS

        return FLEETS


GAME: Final[Game] = Fleets()


def _costs(seeds: Sequence[int], dispatchers: list[str], on_progress: Progress) -> dict[str, list[float]]:
    """Dispatcher by dispatcher."""
    costs: dict[str, list[float]] = {name: [] for name in dispatchers}
    total, done = len(dispatchers) * len(seeds), 0
    for name in dispatchers:
        for seed in seeds:
            costs[name].append(fleet_cost(run_day(make_dispatcher(name), fleet_problem(RANDOM, seed))))
            done += 1
            on_progress(done, done / total)
    return costs

"""Episodes of a fleet: a variant a kind of day, its jobs a seed, the cost as days have it."""

from __future__ import annotations

import functools

from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.fleet.environment.problems import fleet_cost, fleet_problem
from gpusched_env.games.fleet.experiments.dispatchers import new_dispatcher, run_day
from gpusched_env.games.fleet.problem import FleetProblem


def run_fleet_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes."""
    run = run_day(new_dispatcher(cell.scheduler), _problem(cell.variant, cell.seed))
    return EpisodeCost(cell, fleet_cost(run))


@functools.lru_cache(1)
def _problem(name: str, seed: int) -> FleetProblem:
    return fleet_problem(name, seed)

"""Episodes of a fleet: a variant a kind of day, its jobs a seed, the cost as days have it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.fleet.agents.learned import NAME
from gpusched_env.games.fleet.environment.problems import fleet_cost, fleet_problem
from gpusched_env.games.fleet.experiments.dispatchers import new_dispatcher, run_day
from gpusched_env.games.fleet.problem import FleetProblem

DEVICE: Final = "compiled"


@dataclass(frozen=True)
class FleetGrid:
    """Days by name."""

    days: tuple[str, ...]

    @property
    def variants(self) -> dict[str, list[str]]:
        return {NAME: list(self.days)}

    @property
    def task(self) -> Callable[[RankedEpisode], EpisodeCost]:
        return run_fleet_cell

    def groups(self, schedulers: Sequence[str], seeds: Sequence[int]) -> list[list[RankedEpisode]]:
        """Those of one day together, as it takes about as long to draw as to play. Seed by seed."""
        return [
            [RankedEpisode(NAME, day, scheduler, DEVICE, seed) for scheduler in schedulers]
            for seed in seeds
            for day in self.days
        ]


def run_fleet_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes."""
    run = run_day(new_dispatcher(cell.scheduler), _problem(cell.variant, cell.seed))
    return EpisodeCost(cell, fleet_cost(run))


@functools.lru_cache(1)
def _problem(name: str, seed: int) -> FleetProblem:
    return fleet_problem(name, seed)

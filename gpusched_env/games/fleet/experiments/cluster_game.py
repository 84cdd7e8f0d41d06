"""Placing pods on clusters, as experiments ask for it: policies by name, episodes of rankings, trainings.

A variant is a workload, the order of arrivals and of nodes is a seed, and the cost is the share of the cluster's GPUs
that is free when pods have asked for 130 % of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpusched_env.errors import InputError
from gpusched_env.experiments.games.game import Game
from gpusched_env.experiments.games.own import NamedSchedulers, OwnGame
from gpusched_env.experiments.pictures import uncover
from gpusched_env.experiments.ranking.episodes import EpisodeCost, RankedEpisode
from gpusched_env.games.fleet.agents.cluster.rule import NAME, LearnedPlacement
from gpusched_env.games.fleet.agents.cluster.trainer import PlacementTraining
from gpusched_env.games.fleet.baselines.cluster.registry import PLACEMENT_SCHEDULERS, PlacementScheduler
from gpusched_env.games.fleet.environment.cluster.env import ClusterPlacementEnv
from gpusched_env.games.fleet.environment.cluster.problems import JUDGED, RANDOM

if TYPE_CHECKING:
    from gpusched_env.experiments.fuzz.run import Fuzzing
    from gpusched_env.experiments.ranking.result import Ranking

FILMED: Final = 7
"""Seed of the film's episode."""
NAMED: Final = NamedSchedulers[PlacementScheduler](NAME, PLACEMENT_SCHEDULERS, LearnedPlacement)


def run_placement_cell(cell: RankedEpisode) -> EpisodeCost:
    """The task of worker processes."""
    allocation = NAMED.new(cell.scheduler).allocation(cell.variant, cell.seed)
    return EpisodeCost(cell, 1.0 - allocation / 100.0)


def film(path: Path) -> None:
    """Write the film of an episode that FGD plays."""
    env = ClusterPlacementEnv(render_mode="rgb_array")
    env.reset(seed=FILMED)
    over = False
    while not over:
        _, _, over, _, _ = env.step(0)
    uncover(env.render(), "GPUs in use and fragmented", "130 %", path, frames=4)


PLAY: Final = (
    "gpusched_env.games.fleet.cluster.run",
    "gpusched_env.games.fleet.agents.cluster.rule",
    "gpusched_env.games.fleet.environment.cluster.problems",
)
"""Modules that play an episode."""


class ClusterPlacements(OwnGame):
    """See :class:`gpusched_env.experiments.games.game.Game`."""

    title = "Clusters"
    about = "the node and GPUs of [a cluster](fgd.md) that a pod gets."
    plain_gpu = "random-node"
    named = NAMED
    task = staticmethod(run_placement_cell)
    ranked_on = JUDGED
    drawn = RANDOM
    play = PLAY
    training = PlacementTraining
    trained_for = "drawn clusters of several GPU models"

    def mean(self, costs: Sequence[float]) -> float:
        return statistics.fmean(costs)

    def remarks(self, ranking: Ranking) -> dict[str, list[str]]:
        return {NAME: ["Cost: GPUs that are free when pods have asked for 130 % of them, of all."]}

    @property
    def fuzzing(self) -> Fuzzing:
        """
        Raises:
            InputError: there is one text of it, and nothing to compare.
        """
        raise InputError(f"{NAME} has one device, which nothing can be compared with: its runs are the published ones")


GAME: Final[Game] = ClusterPlacements()

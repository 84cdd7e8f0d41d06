"""Where the parts of the game of placing pods on a cluster are."""

from __future__ import annotations

from typing import Final

from gpusched_env.scenarios.games import Rooms

ROOM: Final = Rooms(
    env="gpusched_env.games.fleet.environment.cluster.env:ClusterPlacementEnv",
    trainer="gpusched_env.games.fleet.agents.cluster.trainer:TRAINER",
    game="gpusched_env.games.fleet.experiments.cluster_game:GAME",
    film="gpusched_env.games.fleet.experiments.cluster_game:film",
)

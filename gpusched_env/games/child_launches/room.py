"""Where the parts of this game are."""

from __future__ import annotations

from typing import Final

from gpusched_env.scenarios.games import Rooms

ROOM: Final = Rooms(
    env="gpusched_env.games.child_launches.environment.env:DynamicParallelismEnv",
    trainer="gpusched_env.games.child_launches.agents.trainer:TRAINER",
    game="gpusched_env.games.child_launches.experiments.game:GAME",
    film="gpusched_env.games.child_launches.experiments.game:FILM",
    papers="gpusched_env.games.child_launches.papers",
)

"""Where the parts of the game of drawn scenarios are."""

from __future__ import annotations

from typing import Final

from gpusched_env.scenarios.games import Rooms

ROOM: Final = Rooms(
    env="gpusched_env.games.drawn.environment.env:DrawnEnv",
    trainer="gpusched_env.games.drawn.agent.trainer:TRAINER",
    game="gpusched_env.games.drawn.experiments.game:GAME",
    film="gpusched_env.games.drawn.experiments.game:FILM",
    command="gpusched_env.games.drawn.experiments.command:register",
)

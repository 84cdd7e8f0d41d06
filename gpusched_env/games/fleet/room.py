"""Where the parts of this game are."""

from __future__ import annotations

from typing import Final

from gpusched_env.scenarios.games import Rooms

ROOM: Final = Rooms(
    env="gpusched_env.games.fleet.environment.env:FleetEnv",
    trainer="gpusched_env.games.fleet.agents.trainer:TRAINER",
    game="gpusched_env.games.fleet.experiments.game:GAME",
    command="gpusched_env.games.fleet.experiments.command:register",
    film="gpusched_env.games.fleet.experiments.game:FILM",
    benchmarks="gpusched_env.games.fleet.experiments.benchmarks:BENCHMARKS",
    papers="gpusched_env.games.fleet.papers",
)

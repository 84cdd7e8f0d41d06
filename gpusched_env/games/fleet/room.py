"""Where the parts of this game are."""

from __future__ import annotations

from typing import Final

from gpusched_env.scenarios.games import Rooms

ROOM: Final = Rooms(
    env="gpusched_env.envs.fleet.env:FleetEnv",
    trainer="gpusched_env.agents.fleet.trainer:TRAINER",
    game="gpusched_env.experiments.fleet.game:GAME",
    benchmarks="gpusched_env.experiments.benchmarks.fleets:BENCHMARKS",
)

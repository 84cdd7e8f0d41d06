"""Where the parts of this game are."""

from __future__ import annotations

from typing import Final

from gpusched_env.scenarios.games import Rooms

ROOM: Final = Rooms(
    env="gpusched_env.games.task_queues.environment.env:TaskQueueEnv",
    trainer="gpusched_env.games.task_queues.agents.trainer:TRAINER",
    game="gpusched_env.games.task_queues.experiments.game:GAME",
    film="gpusched_env.games.task_queues.experiments.game:FILM",
    benchmarks="gpusched_env.games.task_queues.experiments.benchmarks:BENCHMARKS",
    papers="gpusched_env.games.task_queues.papers",
)

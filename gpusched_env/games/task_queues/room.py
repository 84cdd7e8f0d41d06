"""Where the parts of this game are."""

from __future__ import annotations

from typing import Final

from gpusched_env.scenarios.games import Rooms

ROOM: Final = Rooms(
    env="gpusched_env.envs.task_queues.env:TaskQueueEnv",
    trainer="gpusched_env.agents.task_queues.trainer:TRAINER",
    game="gpusched_env.experiments.task_queues.game:GAME",
)

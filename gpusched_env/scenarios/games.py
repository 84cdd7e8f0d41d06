"""Games: kinds of problems, and the rooms that know them.

Kernels of tenants that share a GPU are the game of all scenarios. Each other game has a line in :data:`GAMES`: its name
goes where a scenario's does. Rooms above this one are named as text and imported when they are asked for.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Rooms:
    """Where the parts of a game are, each as ``module:Name``."""

    env: str
    """The class of its environment."""
    trainer: str
    """A :class:`gpusched_env.agents.training.trainer.Trainer`."""
    game: str
    """A :class:`gpusched_env.experiments.games.game.Game`."""


KERNELS: Final = Rooms(
    env="gpusched_env.envs.env:GpuSchedulingEnv",
    trainer="gpusched_env.agents.training.kernels:TRAINER",
    game="gpusched_env.experiments.games.kernels:GAME",
)
"""Of all scenarios."""
GAMES: Final = {
    "DynamicParallelism": Rooms(
        env="gpusched_env.envs.dynamic_parallelism.env:DynamicParallelismEnv",
        trainer="gpusched_env.agents.dynamic_parallelism.trainer:TRAINER",
        game="gpusched_env.experiments.dynamic_parallelism.game:GAME",
    ),
    "TaskQueue": Rooms(
        env="gpusched_env.envs.task_queues.env:TaskQueueEnv",
        trainer="gpusched_env.agents.task_queues.trainer:TRAINER",
        game="gpusched_env.experiments.task_queues.game:GAME",
    ),
    "Fleet": Rooms(
        env="gpusched_env.envs.fleet.env:FleetEnv",
        trainer="gpusched_env.agents.fleet.trainer:TRAINER",
        game="gpusched_env.experiments.fleet.game:GAME",
    ),
}
"""By name, those whose problems are no scenarios."""


def rooms_of(problem: object) -> Rooms:
    """The rooms of a game's name; of a scenario, or a scenario's name or file: those of kernels."""
    return GAMES.get(problem, KERNELS) if isinstance(problem, str) else KERNELS


def load_room(place: str) -> Any:
    """What a field of :class:`Rooms` names."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)

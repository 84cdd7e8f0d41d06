"""Games: kinds of problems, and the rooms that know them.

Kernels of tenants that share a GPU are the game of all scenarios. Each other game has a line in :data:`GAMES`: its name
goes where a scenario's does. What is above this module is named as text and imported when it is asked for.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Rooms:
    """Where the parts of a game are, each as ``module:Name``."""

    env: str
    """The class of its environment."""
    trainer: str
    """The game's :class:`gpusched_env.agents.training.trainer.Trainer`."""
    game: str
    """The game's :class:`gpusched_env.experiments.games.game.Game`."""
    command: str = ""
    """A function that adds commands of its own to ``gpusched lab`` and ``gpusched lab page``."""
    film: str = ""
    """A function that writes the documentation's film of it to a path."""
    benchmarks: str = ""
    """The game's :class:`gpusched_env.experiments.benchmarks.suite.GameBenchmarks`."""
    papers: str = ""
    """A package of papers about it, as :mod:`gpusched_env.experiments.papers` is: without a name."""


KERNELS: Final = Rooms(
    env="gpusched_env.envs.env:GpuSchedulingEnv",
    trainer="gpusched_env.agents.training.kernels:TRAINER",
    game="gpusched_env.experiments.games.kernels:GAME",
)
"""The rooms of all scenarios."""
GAMES: Final = {
    "DynamicParallelism": "gpusched_env.games.child_launches.room:ROOM",
    "TaskQueue": "gpusched_env.games.task_queues.room:ROOM",
    "Fleet": "gpusched_env.games.fleet.room:ROOM",
    "ClusterPlacement": "gpusched_env.games.fleet.cluster_room:ROOM",
    "Drawn": "gpusched_env.games.drawn.room:ROOM",
}
"""Where the :class:`Rooms` are of games whose problems are no scenarios, by the game's name."""


def rooms_of(problem: object) -> Rooms:
    """The rooms of a game's name; of a scenario, or a scenario's name or file: those of kernels."""
    if not isinstance(problem, str) or problem not in GAMES:
        return KERNELS
    found: Rooms = load_room(GAMES[problem])
    return found


def places_of(part: str) -> dict[str, str]:
    """Places of the part that a field of :class:`Rooms` names, by game that has it."""
    return {name: place for name in GAMES if (place := getattr(rooms_of(name), part))}


def load_room(place: str) -> Any:
    """What stands at a place ``module:Name``, as :data:`GAMES` and the fields of :class:`Rooms` have them."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)

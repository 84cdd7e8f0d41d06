"""Where an environment's episode stands, and the saved form of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpusched_env.scenarios.problem import Problem


@dataclass(slots=True)
class Run:
    """The present episode, beyond what its driver knows."""

    problem: Problem
    seed: int
    time_us: float
    """Of the present observation."""
    elapsed_us: float
    """Simulated time from the observation before this one, or from time 0."""
    cost: float = 0.0
    """Total cost that rewards have accounted for."""
    commands: int = 0
    over: bool = False
    """Whether the agent was told of the end."""


@dataclass(frozen=True, slots=True)
class EnvState:
    """A point of an episode that an environment can go back to; can be pickled."""

    run: Run
    driver: Any
    actions: int
    """Size of the action space."""
    rng: Mapping[str, Any]
    """State of the environment's ``np_random``."""

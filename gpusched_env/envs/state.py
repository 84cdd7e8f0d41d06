"""Where environments' episodes stand, and the saved forms of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

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


@dataclass(frozen=True, slots=True)
class VectorState:
    """A point that a vector environment can go back to; can be pickled."""

    environments: tuple[Any, ...]
    """What the batch saved of each environment."""
    counters: Mapping[str, NDArray[Any]]
    """Arrays over the environments: seeds, costs, decisions, illegal actions, ends that are to be followed by a
    reset, simulated times."""
    rngs: tuple[Mapping[str, Any] | None, ...]
    """States of the environments' ``np_random``; ``None`` where it was not needed yet."""
    rng_seeds: tuple[int | None, ...]
    actions: int
    """Size of the action space."""

"""Where environments' episodes stand, and the saved forms of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.sealed import Sealed


@dataclass(slots=True)
class EpisodeProgress:
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
class EnvState(Sealed):
    """A point of an episode that an environment can go back to; can be pickled."""

    run: EpisodeProgress
    driver: Any
    layout: ActionLayout
    """Of the environment: what its actions and the rows of its observations mean."""
    rng: Mapping[str, Any]
    """State of the environment's ``np_random``."""


@dataclass(frozen=True, slots=True)
class VectorState(Sealed):
    """A point that a vector environment can go back to; can be pickled."""

    environments: tuple[Any, ...]
    """What the batch saved of each environment."""
    counters: Mapping[str, NDArray[Any]]
    """Arrays over the environments: seeds, costs, decisions, illegal actions, ends that are to be followed by a
    reset, simulated times."""
    rngs: tuple[Mapping[str, Any] | None, ...]
    """States of the environments' ``np_random``; ``None`` where it was not needed yet."""
    rng_seeds: tuple[int | None, ...]
    layout: ActionLayout
    """Of the environment: what its actions and the rows of its observations mean."""


def check_state(state: Any, kind: type[EnvState] | type[VectorState], layout: ActionLayout) -> None:
    """Whether an environment with ``layout`` can go on from ``state``.

    Raises:
        InputError: it is no saved state of such an environment.
    """
    if not isinstance(state, kind):
        raise InputError(f"restore_state takes what save_state() gave ({kind.__name__}), not {type(state).__name__}")
    if state.layout.n != layout.n:
        raise InputError(f"the state has {state.layout.n} actions, this environment {layout.n}")
    if state.layout != layout:
        raise InputError("the state is of an environment with as many actions, but other ones, or with other rows")

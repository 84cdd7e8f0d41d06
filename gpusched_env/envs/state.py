"""Where environments' episodes stand, the saved forms of it, and episodes played again to be drawn."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.drivers import Driver
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.guards import Sealed, read_only_copy
from gpusched_env.scheduling.timeline import Detail

INTEGERS: Final = "i"
"""Type code of the arrays of actions: 4 bytes each."""


class EpisodeReplay:
    """Plays an episode again from its seed and actions, and records of it what pictures show.

    It follows the episode from one picture to the next, so that a film costs one more episode.
    """

    def __init__(self, make: Callable[[], Driver], record: Detail) -> None:
        """
        Args:
            make: another driver like that of the episode; made at the first picture.
            record: what pictures need.
        """
        self._make, self._record = make, record
        self._driver: Driver | None = None
        self._episode: tuple[Problem, int] | None = None
        self._played = array(INTEGERS)

    def after(self, problem: Problem, seed: int, actions: array[int], time_us: float) -> Driver:
        """What has recorded the episode up to the present.

        Args:
            problem: of the episode.
            seed: of the episode.
            actions: those that were carried out so far.
            time_us: where they have led to.

        Raises:
            InputError: they do not lead there: the episode was not played by its actions alone.
        """
        driver = self._driver = self._driver or self._make()
        known = len(self._played)
        before, self._episode = self._episode, None
        if before is None or before[0] is not problem or before[1] != seed or actions[:known] != self._played:
            driver.reset(problem, seed, self._record)
            known = 0
        for action in actions[known:]:
            if not (driver.deciding and 0 <= action < driver.mask.size):
                break
            driver.step(action)
        if driver.time_us != time_us:
            raise InputError(
                f"the episode cannot be drawn: its seed and actions lead to {driver.time_us} us, and it is at "
                f"{time_us} us; its device was driven past the environment, or a saved state of it was changed"
            )
        self._episode, self._played = (problem, seed), actions[:]
        return driver


@dataclass(slots=True)
class EpisodeProgress:
    """The present episode, beyond what its driver knows."""

    problem: Problem
    seed: int
    time_us: float
    """Simulated time of the present observation."""
    elapsed_us: float
    """Simulated time from the observation before this one, or from time 0."""
    cost: float = 0.0
    """Total cost that rewards have accounted for."""
    actions: array[int] = field(default_factory=lambda: array(INTEGERS))
    """Actions that were carried out so far."""
    over: bool = False
    """Whether the agent was told of the end."""

    def copy(self) -> EpisodeProgress:
        """One that goes on by itself."""
        return replace(self, actions=self.actions[:])


@dataclass(frozen=True, slots=True)
class EnvState(Sealed):
    """A point of an episode that an environment can go back to; can be pickled."""

    run: EpisodeProgress
    driver: Any
    layout: ActionLayout
    """The layout of the environment: what its actions and the rows of its observations mean."""
    rng: Mapping[str, Any]
    """State of the environment's ``np_random``."""


@dataclass(frozen=True, slots=True)
class VectorState(Sealed):
    """A point that a vector environment can go back to; can be pickled."""

    environments: tuple[Any, ...]
    """What the batch saved of each environment."""
    counters: Mapping[str, NDArray[Any]]
    """Arrays over the environments, which cannot be written to: seeds, costs, decisions, illegal actions, ends that are
    to be followed by a reset, simulated times."""
    rngs: tuple[Mapping[str, Any] | None, ...]
    """States of the environments' ``np_random``; ``None`` where it was not needed yet."""
    rng_seeds: tuple[int | None, ...]
    layout: ActionLayout
    """The layout of the environment: what its actions and the rows of its observations mean."""
    actions: tuple[array[int] | None, ...] | None
    """Actions of the present episodes, to draw them; ``None``: the environment has no ``render_mode``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "counters", {name: read_only_copy(values) for name, values in self.counters.items()})

    def check(self, count: int, like: Mapping[str, NDArray[Any]]) -> None:
        """Whether it is of ``count`` environments, with counters like ``like`` that are as they were saved.

        Raises:
            InputError: it is not; one was replaced or is missing.
        """
        if len(self.environments) != count:
            raise InputError(f"the state has {len(self.environments)} environments, this vector environment {count}")
        for name, values in like.items():
            saved = self.counters.get(name)
            if not isinstance(saved, np.ndarray) or saved.flags.writeable or saved.shape != values.shape:
                raise _changed(name)
        if self.actions is not None and len(self.actions) != count:
            raise _changed("actions")
        given: tuple[object, ...] = self.actions or ()  # whatever their types say: states come from files, too
        for actions, decisions in zip(given, self.counters["decisions"].tolist(), strict=False):
            if actions is not None and not (isinstance(actions, array) and len(actions) == decisions):
                raise _changed("actions")


def check_state(state: Any, kind: type[EnvState] | type[VectorState], layout: ActionLayout) -> None:
    """Whether an environment with ``layout`` can go on from ``state``.

    Raises:
        InputError: it is no saved state of such an environment, or was changed since.
    """
    if not isinstance(state, kind):
        raise InputError(f"restore_state takes what save_state() gave ({kind.__name__}), not {type(state).__name__}")
    for name, expected in KINDS.items():
        if not isinstance(getattr(state, name, None), expected) and name in kind.__slots__:
            raise _changed(name)
    for rng in (state.rng,) if isinstance(state, EnvState) else state.rngs:
        _check_generator(rng)
    if state.layout.n != layout.n:
        raise InputError(f"the state has {state.layout.n} actions, this environment {layout.n}")
    if state.layout != layout:
        raise InputError("the state is of an environment with as many actions, but other ones, or with other rows")


KINDS: dict[str, Any] = {
    "run": EpisodeProgress,
    "driver": tuple,
    "layout": ActionLayout,
    "rng": Mapping,
    "environments": tuple,
    "counters": Mapping,
    "rngs": tuple,
    "rng_seeds": tuple,
    "actions": tuple | None,
}
"""Kinds of the fields of states."""


def _check_generator(state: Any) -> None:
    """Whether a generator takes a state; it may be ``None``."""
    if state is None:
        return
    try:
        np.random.default_rng(0).bit_generator.state = state
    except (ValueError, TypeError, LookupError) as error:
        raise _changed("the state of a generator") from error


def _changed(what: str) -> InputError:
    return InputError(f"a saved state was changed: {what} is not what was saved; save it again")

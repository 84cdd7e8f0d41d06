"""What a vector environment is given: actions, seeds, masks, and a scenario for each environment and episode."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import ArrayLike, NDArray

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.setup import episode_scenario, scenario_fields
from gpusched_env.envs.team import cores
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scenarios.scenario import Scenario, override

SampleScenario = Callable[[int, np.random.Generator], Mapping[str, Any] | None]
"""Fields to replace in the next episode's scenario, from the number and the generator of an environment."""

T = TypeVar("T")

ENVIRONMENTS_A_THREAD = 16
"""Environments that a thread pays for: it steps them in tens of microseconds; sharing out a step takes about ten."""

KNOWN = ("scenario", "scenarios", "reset_mask")
"""Names of the options of ``reset``."""


class EpisodeScenarios:
    """Which scenario each environment's next episode has."""

    def __init__(
        self,
        scenario: Scenario,
        count: int,
        changes: Sequence[Mapping[str, Any]] | None,
        sample: SampleScenario | None,
    ) -> None:
        self.bases = [scenario] * count
        """Scenarios of episodes without changes of their own, one an environment."""
        self._sample = sample
        self._layout: ActionLayout
        if changes is not None:
            rows = _one_each(changes, count, "scenarios")
            self.bases = [for_environment(index, override, scenario, **row) for index, row in enumerate(rows)]

    def check(self, layout: ActionLayout) -> None:
        """Fit the scenarios to an action space, which all later ones must have.

        Raises:
            InputError: one of them needs another.
        """
        self._layout = layout
        for index, base in enumerate(self.bases):
            for_environment(index, episode_scenario, base, {}, layout)

    def given(self, options: dict[str, Any]) -> list[Scenario] | None:
        """The scenarios that options of ``reset`` give, one an environment; ``None``: they give none.

        Raises:
            InputError: unknown options, or changes that are not valid here.
        """
        for key in options:
            if key not in KNOWN:
                raise InputError(f"reset option {key!r} is not known; {did_you_mean(str(key), KNOWN)}")
        if not options:
            return None
        everywhere = scenario_fields(options.get("scenario", {}), "reset option scenario")
        rows = _one_each(options.get("scenarios", [{}] * len(self.bases)), len(self.bases), "reset option scenarios")
        return [self._changed(index, {**everywhere, **row}) for index, row in enumerate(rows)]

    def draw(self, index: int, generator: np.random.Generator) -> Scenario:
        """The scenario of an environment's next episode, if no option gives it.

        Raises:
            InputError: ``sample_scenario`` gave changes that are not valid here.
        """
        fields = self._sample(index, generator) if self._sample is not None else None
        return (
            self.bases[index]
            if fields is None
            else self._changed(index, scenario_fields(fields, "sample_scenario's value"))
        )

    def _changed(self, index: int, fields: Mapping[str, Any]) -> Scenario:
        if not fields:
            return self.bases[index]
        options = {"scenario": fields}
        return for_environment(index, episode_scenario, self.bases[index], options, self._layout)


def options_of(options: Any) -> dict[str, Any]:
    """Options of ``reset``, to take some of them out; ``None``: there are none.

    Raises:
        InputError: they are no mapping.
    """
    if not isinstance(options, Mapping | None):
        raise InputError(f"reset options must be a mapping, got {options!r}")
    return dict(options or {})


MOST_SEED = 2**63 - 1


def seeds_of(seed: int | Sequence[int | None] | None, count: int) -> list[int | None]:
    """A seed for each environment, as Gymnasium's vector environments take them.

    Raises:
        InputError: not one for each, or not integers from 0.
    """
    if seed is None:
        return [None] * count
    if isinstance(seed, int | np.integer):
        seeds: list[int | None] = [int(seed) + index for index in range(count)]
    else:
        given: Any = seed
        if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray) or np.ndim(given) != 1:
            raise InputError(
                f"seed must be an integer from 0, None, or one of these for each environment, got {seed!r}"
            )
        if len(seed) != count:
            raise InputError(f"seed has {len(seed)} entries, but there are {count} environments")
        for s in seed:
            if s is not None and not isinstance(s, int | np.integer):
                raise InputError(f"seeds must be integers from 0 or None, got {s!r}")
        seeds = [None if s is None else int(s) for s in seed]
    for index, s in enumerate(seeds):
        if s is not None and not 0 <= s <= MOST_SEED:
            raise InputError(f"the seed of environment {index} is {s}, must be in 0..{MOST_SEED}")
    return seeds


def rows_to_reset(mask: Any, count: int) -> NDArray[np.bool_]:
    """Which environments a ``reset_mask`` names; all without one.

    Raises:
        InputError: not a bool array of one entry an environment, or none is named.
    """
    if mask is None:
        return np.ones(count, np.bool_)
    if not isinstance(mask, np.ndarray) or mask.shape != (count,) or mask.dtype != np.bool_ or not mask.any():
        raise InputError(f"reset option reset_mask must be a bool array of shape ({count},) with a True, got {mask!r}")
    return mask.copy()


def action_array(actions: ArrayLike, count: int) -> NDArray[np.integer[Any]]:
    """``actions`` as an array, one an environment, whether or not they are actions of the space.

    Raises:
        InputError: not integers of that number.
    """
    chosen = np.asarray(actions)
    if chosen.shape != (count,) or chosen.dtype.kind not in "iu":
        raise InputError(f"actions must be integers of shape ({count},), got {chosen.dtype} of shape {chosen.shape}")
    return chosen


def no_action(actions: ArrayLike, index: int, n: int) -> InputError:
    """The error that says that the action of environment ``index`` is none of ``n``."""
    return InputError(f"action {np.asarray(actions)[index]} of environment {index} is not in 0..{n - 1}")


def check_compiled(device: object) -> None:
    """Raises ``InputError`` for a device that cannot step many environments."""
    if device != "compiled":
        raise InputError(
            f"device is {device!r}: the vector environment runs on 'compiled' only; "
            "gymnasium.vector.SyncVectorEnv takes environments on any device"
        )


def autoreset_mode_of(mode: AutoresetMode | str) -> AutoresetMode:
    """A mode, also by its name or value in Gymnasium (``NEXT_STEP`` or ``NextStep``).

    Raises:
        InputError: no such mode.
    """
    for known in AutoresetMode:
        if mode in (known, known.name, known.value):
            return known
    names = [known.name for known in AutoresetMode]
    raise InputError(f"autoreset_mode is {mode!r}; {did_you_mean(str(mode), names)}")


def thread_count(threads: int | None, count: int) -> int:
    """How many threads step ``count`` environments: ``threads``, or as many as pay.

    Raises:
        InputError: fewer than one, or no whole number.
    """
    if threads is None:
        return max(1, min(cores(), count // ENVIRONMENTS_A_THREAD))
    try:
        whole = operator.index(threads)
    except TypeError:
        whole = 0
    if whole < 1:
        raise InputError(f"threads is {threads!r}, must be a whole number of at least 1")
    return whole


def _one_each(rows: Sequence[Mapping[str, Any]], count: int, what: str) -> list[Mapping[str, Any]]:
    if isinstance(rows, Mapping | str) or len(rows) != count:
        raise InputError(f"{what} must be a list of {count} mappings, one an environment")
    return [scenario_fields(row, f"{what}[{index}]") for index, row in enumerate(rows)]


def for_environment(index: int, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Call ``function``; its refusals name the environment."""
    try:
        return function(*args, **kwargs)
    except InputError as error:
        raise InputError(f"environment {index}: {error}") from error

"""What the environments of all games have in common, and what is reported at the end of an episode."""

from __future__ import annotations

import copy
import math
import operator
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final, Generic, NoReturn, SupportsFloat, TypeVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from gpusched_env.episodes.metrics import Metrics, TenantMetrics, episode_metrics
from gpusched_env.episodes.session import Episode
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.guards import OneThread

FIGURES: Final = [field.name for field in fields(Metrics) if field.name not in ("tenants", "terms")]
TENANT_FIGURES: Final = [field.name for field in fields(TenantMetrics) if field.name != "name"]


def episode_summary(episode: Episode) -> dict[str, Any]:
    """What ``info`` holds at the end: ``episode_metrics`` and ``reward_terms``."""
    metrics = episode_metrics(episode)
    return {"episode_metrics": flat_metrics(metrics), "reward_terms": reward_terms(episode.problem, metrics.terms)}


def flat_metrics(metrics: Metrics) -> dict[str, float]:
    """Figures by name, those of a tenant as ``<tenant>/<figure>``; undefined (NaN) ones are left out."""
    flat = {f"cost/{name}": value for name, value in metrics.terms.items()}
    for tenant in metrics.tenants:
        flat.update({f"{tenant.name}/{figure}": getattr(tenant, figure) for figure in TENANT_FIGURES})
    flat.update({figure: getattr(metrics, figure) for figure in FIGURES})
    return {name: float(value) for name, value in flat.items() if not math.isnan(value)}


def reward_terms(problem: Problem, terms: dict[str, float]) -> dict[str, float]:
    """What each cost term contributed to the return: minus its weight times its value; they add up to the return."""
    weights = problem.scenario.reward
    return {name: 0.0 - float(getattr(weights, name)) * value for name, value in terms.items()}


class Info(dict[str, Any]):
    """What an environment tells beside an observation: a ``dict`` whose deep copies are quick.

    ``DummyVecEnv`` of stable-baselines3 makes one of every info at every step, which takes as long as many a step.
    """

    def __deepcopy__(self, memo: dict[int, Any]) -> Info:
        """A copy of its own in all depth; numbers are shared, as nobody can change them."""
        copied = memo[id(self)] = Info(self)
        for name, value in self.items():
            if type(value) is np.ndarray and not value.dtype.hasobject:
                copied[name] = value.copy()
            elif type(value) not in NUMBERS:
                copied[name] = copy.deepcopy(value, memo)
        return copied


NUMBERS: Final = (float, int, bool)
SEED_LIMIT = 2**31
"""Episode seeds drawn by the environment are below this."""

Seen = TypeVar("Seen")
Run = TypeVar("Run")
"""An episode under way."""


class SingleEnv(OneThread, gymnasium.Env[Seen, np.int64]):
    """One agent, whose actions are numbers; one thread at a time."""

    def _draw_seed(self, seed: int | None) -> int:
        """The seed of an episode that begins; ``None``: drawn from ``np_random``."""
        super().reset(seed=seed)
        return int(self.np_random.integers(SEED_LIMIT)) if seed is None else seed

    def _draws(self) -> bool:
        """Whether there is a ``render_mode``; otherwise it warns."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs a render_mode: gym.make(..., render_mode='rgb_array')")
        return self.render_mode is not None


class GameEnv(SingleEnv[Seen], Generic[Seen, Run]):
    """Of a game whose problems are no scenarios."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}  # noqa: RUF012
    _run: Run | None = None

    def _current(self) -> Run:
        if self._run is None:
            raise ResetNeeded("call reset() first")
        return self._run

    def __copy__(self) -> NoReturn:
        """Refuse to be copied.

        Raises:
            TypeError: always: both would play the one episode of one device.
        """
        raise TypeError(f"{type(self).__name__} has no shallow copy: its steps would be the original's; make another")


def reset_option(options: dict[str, Any] | None, name: str, default: Any) -> Any:
    """The value of the only option that a reset takes.

    Raises:
        InputError: there are others.
    """
    given = dict(options or {})
    value = given.pop(name, default)
    for other in given:
        raise InputError(f"reset option {other!r}; {did_you_mean(other, [name])}")
    return value


SIZE: Final = (240, 480)
"""Height and width of a game's picture."""
BACKGROUND: Final = (255, 255, 255)
Colour = tuple[int, int, int]


def columns_picture(layers: Iterable[tuple[NDArray[Any], Colour]], height: int = SIZE[0]) -> NDArray[np.uint8]:
    """Columns up to heights in pixels, later layers before earlier ones, uint8 of shape ``(height, width, 3)``."""
    image = np.full((height, SIZE[1], 3), BACKGROUND, np.uint8)
    rows = np.arange(height)[::-1, None]
    for tops, colour in layers:
        image[rows < tops] = colour
    return image


def check_render_mode(mode: object, known: list[str]) -> None:
    """Raises ``InputError`` for anything but ``None`` or a known mode."""
    if mode is not None and not (isinstance(mode, str) and mode in known):
        raise InputError(f"render_mode is {mode!r}; {did_you_mean(str(mode), known)}")


def action_number(action: Any, count: int) -> int:
    """An action of a space of ``count``.

    Raises:
        InputError: it is none.
    """
    try:
        number = operator.index(action)
    except TypeError:
        raise InputError(f"an action is an integer in 0..{count - 1}, got {action!r}") from None
    if not 0 <= number < count:
        raise InputError(f"action {number} is not in 0..{count - 1}")
    return number


Observed = TypeVar("Observed")
Act = TypeVar("Act")


class EpisodeMetrics(gymnasium.Wrapper[Observed, Act, Observed, Act], gymnasium.utils.RecordConstructorArgs):
    """Adds ``episode_metrics`` to the last info of an episode that a wrapper inside cuts, such as ``TimeLimit``.

    That wrapper says that an episode is over, and the environment cannot know. For environments of all games:
    ``EpisodeMetrics(gym.make(env_id, max_episode_steps=500))``; or without it, ``env.unwrapped.summary()`` at any time.
    """

    def __init__(self, env: gymnasium.Env[Observed, Act]) -> None:
        """Wrap ``env``, which is one of this package's with wrappers around it."""
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)

    def step(self, action: Act) -> tuple[Observed, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step as the environment does, with the metrics of an episode that is cut off."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if truncated and "episode_metrics" not in info:
            info = {**info, **self.env.get_wrapper_attr("summary")()}
        return observation, reward, terminated, truncated, info

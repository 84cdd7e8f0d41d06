"""What the environments of all games have in common."""

from __future__ import annotations

import operator
from typing import Any, NoReturn, TypeVar

import gymnasium
import numpy as np

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scheduling.one_thread import OneThread

SEED_LIMIT = 2**31
"""Episode seeds drawn by the environment are below this."""

Seen = TypeVar("Seen")


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


class GameEnv(SingleEnv[Seen]):
    """Of a game whose problems are no scenarios."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}  # noqa: RUF012

    def __copy__(self) -> NoReturn:
        """Refuse.

        Raises:
            TypeError: always: both would play the one episode of one device.
        """
        raise TypeError(f"{type(self).__name__} has no shallow copy: its steps would be the original's; make another")


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

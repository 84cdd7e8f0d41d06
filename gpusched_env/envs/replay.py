"""Episodes played again to be drawn, so that nothing is recorded of those that nobody looks at."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final

from gpusched_env.envs.drivers import Driver
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import Detail

INTEGERS: Final = "i"
"""Of the arrays of actions: 4 bytes each."""


class Replay:
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

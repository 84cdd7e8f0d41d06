"""Pictures of many environments, of which nothing is recorded but their actions."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch import BatchDriver, EnvBatch
from gpusched_env.envs.render import Renderer, RenderMode, detail_of
from gpusched_env.envs.state import INTEGERS, EpisodeReplay
from gpusched_env.envs.vector_infos import Counters
from gpusched_env.errors import InputError
from gpusched_env.scheduling.contract import Device

FIRST_ROOM: Final = 256
"""Actions of an episode that there is room for at first; doubled when it is full."""


class VectorDrawing:
    """Draws the environments of a vector environment with a ``render_mode``."""

    def __init__(self, mode: RenderMode, layout: ActionLayout, batch: EnvBatch, counters: Counters) -> None:
        """
        Args:
            mode: in which way.
            layout: of the actions.
            batch: the environments.
            counters: of their episodes.
        """
        self._batch, self._counters = batch, counters
        self._renderer = Renderer(mode)
        make = functools.partial(BatchDriver, layout, batch.wait_us)
        self._replays = [EpisodeReplay(make, detail_of(mode)) for _ in range(batch.count)]
        self.kept: NDArray[np.int32] = np.zeros((batch.count, 0), np.int32)
        """Actions of the present episodes, shape ``(n, room)``: as many of a row as the episode has had decisions."""
        self._known = np.zeros(batch.count, np.bool_)
        """Whether the actions of the present episode were kept from its start."""
        self._steps_left = 0
        """Steps that there is surely room for."""

    def begin(self, index: int) -> None:
        """Begin an environment's next episode."""
        self._known[index] = True

    def make_room(self) -> None:
        """Make room for the actions of a step that is about to be counted, which go into :attr:`kept`."""
        if not self._steps_left:
            most, room = int(self._counters.decisions.max()), self.kept.shape[1]
            if 2 * most >= room:
                self.kept = np.pad(self.kept, ((0, 0), (0, max(FIRST_ROOM, 2 * most - room))))
            self._steps_left = self.kept.shape[1] - most
        self._steps_left -= 1

    def save(self) -> tuple[array[int] | None, ...]:
        """Copies of the actions, to go back to with :meth:`load`."""
        return tuple(self._actions(index) for index in range(self._batch.count))

    def load(self, saved: Sequence[array[int] | None] | None) -> None:
        """Go back to saved actions; ``None``: they were not kept."""
        given = saved or [None] * self._batch.count
        longest = max(len(actions or ()) for actions in given)
        self.kept = np.zeros((self._batch.count, FIRST_ROOM + longest), np.int32)
        self._steps_left = 0
        for index, actions in enumerate(given):
            self._known[index] = actions is not None
            self.kept[index, : len(actions or ())] = actions or ()

    def _actions(self, index: int) -> array[int] | None:
        if not self._known[index]:
            return None
        return array(INTEGERS, self.kept[index, : self._counters.decisions[index]].tobytes())

    def device(self, index: int) -> Device:
        """What has recorded all that pictures show of an environment.

        Raises:
            InputError: its actions are not known.
        """
        actions = self._actions(index)
        if actions is None:
            raise InputError(
                "the episode cannot be drawn: it began, or its state was saved, in a vector environment without a "
                "render_mode, which keeps no actions"
            )
        seed, time_us = int(self._counters.seeds[index]), float(self._batch.times_us[index, 1])
        return self._replays[index].after(self._batch.arena(index).problem, seed, actions, time_us).device

    def pictures(self) -> tuple[Any, ...]:
        """One an environment: texts, or pictures of one size, with black below and beside the smaller ones."""
        drawn: list[Any] = [self._draw(index) for index in range(self._batch.count)]
        if isinstance(drawn[0], str):
            return tuple(drawn)
        height, width, _ = np.max([image.shape for image in drawn], axis=0)
        return tuple(np.pad(each, ((0, height - len(each)), (0, width - len(each[0])), (0, 0))) for each in drawn)

    def _draw(self, index: int) -> Any:
        device, problem = self.device(index), self._batch.arena(index).problem
        return self._renderer.draw(problem, device.timeline, device.view(), over=bool(self._counters.over[index]))

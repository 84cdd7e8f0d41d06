"""Pictures of many environments, of which nothing is recorded but their actions."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.compiled.layout import DECIDE
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.batch_driver import BatchDriver
from gpusched_env.envs.render import Renderer, RenderMode, detail_of
from gpusched_env.envs.replay import INTEGERS, Replay
from gpusched_env.envs.vector_counters import Counters
from gpusched_env.errors import InputError
from gpusched_env.scheduling.device import Device


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
        self._replays = [Replay(make, detail_of(mode)) for _ in range(batch.count)]
        self._actions: list[array[int] | None] = [array(INTEGERS) for _ in range(batch.count)]

    def begin(self, e: int) -> None:
        """An environment's next episode."""
        self._actions[e] = array(INTEGERS)

    def add(self, actions: NDArray[np.int64]) -> None:
        """Note the actions of a step before it is taken, shape ``(n,)``, where an episode is not over."""
        for e in np.flatnonzero(self._batch.reasons == DECIDE).tolist():
            kept = self._actions[e]
            if kept is not None:
                kept.append(int(actions[e]))

    def save(self) -> tuple[array[int] | None, ...]:
        """Copies of the actions, to go back to with :meth:`load`."""
        return tuple(None if actions is None else actions[:] for actions in self._actions)

    def load(self, saved: Sequence[array[int] | None] | None) -> None:
        """Go back; ``None``: they were not kept."""
        self._actions = [None if actions is None else actions[:] for actions in saved or [None] * self._batch.count]

    def device(self, e: int) -> Device:
        """What has recorded all that pictures show of an environment.

        Raises:
            InputError: its actions are not known.
        """
        actions = self._actions[e]
        if actions is None:
            raise InputError(
                "the episode cannot be drawn: its state was saved by a vector environment without a render_mode, which "
                "keeps no actions"
            )
        seed, time_us = int(self._counters.seeds[e]), float(self._batch.times_us[e, 1])
        return self._replays[e].after(self._batch.arena(e).problem, seed, actions, time_us).device

    def pictures(self) -> tuple[Any, ...]:
        """One an environment: texts, or pictures of one size, with black below and beside the smaller ones."""
        drawn: list[Any] = [self._draw(e) for e in range(self._batch.count)]
        if isinstance(drawn[0], str):
            return tuple(drawn)
        height, width, _ = np.max([image.shape for image in drawn], axis=0)
        return tuple(np.pad(each, ((0, height - len(each)), (0, width - len(each[0])), (0, 0))) for each in drawn)

    def _draw(self, e: int) -> Any:
        device, problem = self.device(e), self._batch.arena(e).problem
        return self._renderer.draw(problem, device.timeline, device.view(), over=bool(self._counters.over[e]))

"""What a vector environment counts and tells: counters of episodes, generators, and infos as Gymnasium's."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from gpusched_env.compiling import native
from gpusched_env.devices.compiled.layout import DECIDE
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.single import episode_summary
from gpusched_env.episodes.session import Episode

SAVED: Final = ("seeds", "costs", "decisions", "illegal", "over", "times_us")
"""What of :class:`Counters` belongs to a state that can be gone back to."""


class Counters:
    """Counts of the episode that each environment is in; arrays of shape ``(n,)``, live."""

    def __init__(self, count: int, times_us: NDArray[np.float64]) -> None:
        """``times_us``: of the batch, shape ``(n, 2)``."""
        self.seeds = np.zeros(count, np.int64)
        self.costs = np.zeros(count)
        """Costs that rewards have told so far."""
        self.decisions = np.zeros(count, np.int64)
        self.illegal = np.zeros(count, np.int64)
        """Illegal actions of the episodes."""
        self.over = np.zeros(count, np.bool_)
        """Whether the episode has ended, and the next step or reset begins another."""
        self.began = np.zeros(count)
        """When each episode began, in seconds of ``time.perf_counter``."""
        self.times_us = times_us

    def begin(self, index: int, seed: int) -> None:
        """Begin an environment's next episode."""
        self.seeds[index] = seed
        self.costs[index] = 0.0
        self.decisions[index] = 0
        self.illegal[index] = 0
        self.over[index] = False
        self.began[index] = time.perf_counter()

    def save(self) -> dict[str, NDArray[Any]]:
        """Copies of the counts, to go back to with :meth:`load`."""
        return {name: getattr(self, name).copy() for name in SAVED}

    def load(self, saved: Mapping[str, NDArray[Any]]) -> None:
        """Go back to saved counts; the episodes take their time from now."""
        for name in SAVED:
            getattr(self, name)[:] = saved[name]
        self.began[:] = time.perf_counter()


class Generators:
    """The environments' random number generators. One that was never seeded is made when it is first asked for."""

    def __init__(self, count: int) -> None:
        self._generators: list[np.random.Generator | None] = [None] * count
        self.seeds: list[int | None] = [None] * count
        """Seeds of the generators."""

    def __getitem__(self, index: int) -> np.random.Generator:
        generator = self._generators[index]
        if generator is None:
            generator, seed = seeding.np_random()
            self.set(index, generator, seed)
        return generator

    def set(self, index: int, generator: np.random.Generator, seed: int) -> None:
        """Replace a generator by another, which was made of ``seed``."""
        self._generators[index], self.seeds[index] = generator, seed

    def save(self) -> tuple[Mapping[str, Any] | None, ...]:
        """The states of all, ``None`` where there is none yet; :meth:`load` goes back to them."""
        return tuple(None if generator is None else generator.bit_generator.state for generator in self._generators)

    def load(self, states: Sequence[Mapping[str, Any] | None], seeds: Sequence[int | None]) -> None:
        """Go back to states; ``seeds``: as they were then."""
        for index, state in enumerate(states):
            self._generators[index] = None
            if state is not None:
                generator, _ = seeding.np_random(0)
                generator.bit_generator.state = state
                self._generators[index] = generator
        self.seeds = [*seeds]


@native()
def count_actions(actions, reasons, masks, over, restartable, decisions, illegal, kept):
    """Count the actions of a step before they are carried out, if all of them can be.

    Args:
        actions: int64 ``(n,)``.
        reasons, masks: of the batch.
        over: bool ``(n,)``: whose episode has ended.
        restartable: whether a step of such an environment begins the next episode.
        decisions, illegal: int64 ``(n,)``: actions and illegal actions of the episodes; added to.
        kept: int32 ``(n, room)``: the actions of the episodes, as far as there is room; written.

    Returns:
        the first environment whose action is not one, the first whose episode is over (-1: none), and whether
        everything was counted. That is not so if an action is none, or an episode is over and not restartable.
    """
    wrong = ended = -1
    for index in range(actions.size - 1, -1, -1):
        if actions[index] < 0 or actions[index] >= masks.shape[1]:
            wrong = index
        if over[index]:
            ended = index
    if wrong >= 0 or (ended >= 0 and not restartable):
        return wrong, ended, False
    for index in range(actions.size):
        if reasons[index] == DECIDE:
            if decisions[index] < kept.shape[1]:
                kept[index, decisions[index]] = actions[index]
            decisions[index] += 1
            illegal[index] += not masks[index, actions[index]]
    return wrong, ended, True


@native()
def count_results(reasons, costs, charged, over, rewards, ended):
    """Count what a step has led to.

    Args:
        reasons, costs: of the batch.
        charged: float64 ``(n,)``: total costs that earlier rewards have told; brought up to date.
        over: bool ``(n,)``: whose episode had ended before the step; then: whose has ended in it.
        rewards: float64 ``(n,)``; written.
        ended: bool ``(n,)``: whose episode has ended in this step; written.

    Returns:
        how many episodes have ended.
    """
    number = 0
    for index in range(reasons.size):
        rewards[index] = charged[index] - costs[index]
        charged[index] = costs[index]
        ended[index] = reasons[index] != DECIDE and not over[index]
        over[index] = ended[index]
        number += ended[index]
    return number


@native()
def copy_infos(masks, times_us, illegal, rows, out_masks, out_times_us, out_elapsed_us, out_illegal):
    """Copy what infos say of the environments ``rows`` (bool ``(n,)``); zeros for the others.

    Args:
        masks: int8 ``(n, actions)``.
        times_us: float64 ``(n, 2)``, see :class:`~gpusched_env.envs.batch.EnvBatch`.
        illegal: int64 ``(n,)``.
        out_masks: int8 ``(n, actions)``; written.
        out_times_us, out_elapsed_us, out_illegal: float64 and int64 ``(n,)``; written.
    """
    for index in range(rows.size):
        shown = rows[index]
        for action in range(masks.shape[1]):
            out_masks[index, action] = masks[index, action] & shown
        out_times_us[index] = times_us[index, 1] if shown else 0.0
        out_elapsed_us[index] = times_us[index, 1] - times_us[index, 0] if shown else 0.0
        out_illegal[index] = illegal[index] if shown else 0


Rows = NDArray[np.bool_]


def batched_infos(batch: EnvBatch, illegal: NDArray[np.int64], rows: Rows | None) -> dict[str, Any]:
    """Infos of the environments ``rows``; zeros in the others.

    Args:
        batch: the environments.
        illegal: illegal actions of each one's episode.
        rows: shape ``(num_envs,)``; becomes part of the infos. ``None``: all.
    """
    count = batch.count
    if rows is None:
        rows = np.empty(count, np.bool_)
        rows.fill(True)
    masks, times_us, elapsed_us = np.empty(batch.masks.shape, np.int8), np.empty(count), np.empty(count)
    illegal_actions = np.empty(count, np.int64)
    copy_infos(batch.masks.view(np.int8), batch.times_us, illegal, rows, masks, times_us, elapsed_us, illegal_actions)
    return {
        "action_mask": masks, "time_us": times_us, "elapsed_us": elapsed_us, "illegal_actions": illegal_actions,
        "_action_mask": rows, "_time_us": rows, "_elapsed_us": rows, "_illegal_actions": rows,
    }  # fmt: skip


def add_seeds(infos: dict[str, Any], seeds: NDArray[np.int64], rows: Rows) -> dict[str, Any]:
    """``infos`` with the seeds of the environments ``rows``, whose episodes have just begun."""
    infos["seed"], infos["_seed"] = np.where(rows, seeds, 0), rows
    return infos


def last_info(batch: EnvBatch, index: int, illegal: int, episode: Episode) -> dict[str, Any]:
    """The info of the single environment at the end of an episode."""
    return {
        "action_mask": batch.masks[index].astype(np.int8),
        "time_us": float(batch.times_us[index, 1]),
        "elapsed_us": float(batch.times_us[index, 1] - batch.times_us[index, 0]),
        "illegal_actions": illegal,
        **episode_summary(episode),
    }

"""Many episodes of an exported policy at once, without Python between their decisions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.devices.compiled.layout import DECIDE
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.errors import InputError
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.metrics import Metrics, episode_metrics
from gpusched_env.scheduling.session import Episode

COPIES = 64
"""Episodes at a time."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Episodes of one policy on one scenario, in the order of their seeds."""

    seeds: tuple[int, ...]
    costs: NDArray[np.float64]
    """Shape ``(seeds,)``; returns are minus these."""
    metrics: tuple[Metrics, ...]


def evaluate_costs(
    policy: ExportedPolicy,
    scenario: Scenario,
    seeds: int | Sequence[int],
    *,
    copies: int = COPIES,
    threads: int = 1,
    on_progress: Callable[[int], None] = lambda finished: None,
) -> Evaluation:
    """Run the policy on every seed, on the compiled device.

    Every episode is the same as that of :func:`~gpusched_env.scheduling.session.run_episode` with a
    :class:`~gpusched_env.agents.learned.LearnedScheduler`.

    Args:
        seeds: how many, counted from 0, or which.
        copies: episodes at a time.
        threads: how many step them.
        on_progress: told how many episodes have finished, whenever one does.

    Raises:
        InputError: the policy does not fit the scenario, or there are no seeds.
        DeadlockError: in one of the episodes work is left but nothing can happen any more.
    """
    wanted = tuple(range(seeds)) if isinstance(seeds, int) else tuple(int(seed) for seed in seeds)
    if not wanted or min(wanted) < 0:
        raise InputError(f"seeds are {seeds}: give at least one, none below 0")
    episodes = _Episodes(policy, scenario, wanted, min(copies, len(wanted)), threads)
    try:
        while len(episodes.metrics) < len(wanted):
            on_progress(len(episodes.metrics))
            episodes.run_until_one_ends()
    finally:
        episodes.batch.close()
    on_progress(len(wanted))
    metrics = tuple(episodes.metrics[number] for number in range(len(wanted)))
    return Evaluation(wanted, np.array([found.cost for found in metrics]), metrics)


class _Episodes:
    """The episodes under way, and the figures of those that have ended, by their number."""

    def __init__(
        self, policy: ExportedPolicy, scenario: Scenario, seeds: Sequence[int], copies: int, threads: int
    ) -> None:
        layout = policy.layout_for(scenario)
        self.metrics: dict[int, Metrics] = {}
        self.batch = EnvBatch(copies, layout, wait_us=policy.info.wait_us, threads=threads)
        self._problem = build_problem(scenario)
        self._seeds = seeds
        self._left = deque(range(len(seeds)))
        self._numbers = np.full(copies, -1)
        """Which episode each environment has; -1: none any more."""
        self._decisions = np.zeros(copies, np.int64)
        self._actions = np.zeros(copies, np.int64)
        self._active = np.zeros(copies, np.bool_)
        self._policy: tuple[Any, ...] = (policy.sizes, policy.weights, policy.info.masked, self._active)
        self._seen: tuple[Any, ...] = (*self.batch.observations.values(), self.batch.masks)
        self._written: tuple[Any, ...] = (
            policy.scratch(layout.slots),
            np.zeros((copies, layout.n), np.float32),
            self._actions,
        )
        self._begin(range(copies))

    def run_until_one_ends(self) -> None:
        """Step all episodes until at least one is over, and begin the next in its place."""
        from gpusched_env.agents.forward import act_batch

        batch = self.batch
        while not (ended := np.flatnonzero((self._numbers >= 0) & (batch.reasons != DECIDE))).size:
            np.equal(batch.reasons, DECIDE, out=self._active)
            self._actions[:] = 0
            act_batch(*self._policy, *self._seen, *self._written)
            self._decisions += self._actions != 0
            batch.step(self._actions)
        for e in ended.tolist():
            self.metrics[int(self._numbers[e])] = episode_metrics(self._episode(e))
        self._begin(ended.tolist())

    def _begin(self, environments: Iterable[int]) -> None:
        began = False
        for e in environments:
            self._numbers[e] = self._left.popleft() if self._left else -1
            self._decisions[e] = 0
            if self._numbers[e] >= 0:
                self.batch.begin(e, self._problem, self._seeds[self._numbers[e]])
                began = True
        if began:
            self.batch.run()

    def _episode(self, e: int) -> Episode:
        device = self.batch.devices[e]
        return Episode(
            problem=self._problem,
            seed=self._seeds[self._numbers[e]],
            timeline=device.timeline,
            costs=device.costs,
            end_us=device.time_us,
            done=device.done,
            decisions=int(self._decisions[e]),
            wall_s=0.0,
        )

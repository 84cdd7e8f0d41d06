"""Many episodes of an exported policy at once, without Python between their decisions."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.exported import Actor, ExportedPolicy, act_batch
from gpusched_env.agents.network import Ints, Singles
from gpusched_env.compiling import native
from gpusched_env.devices.compiled.layout import DEADLOCK, DECIDE, OVER
from gpusched_env.envs.actions import ActionLayout
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.envs.batch_state import state_at
from gpusched_env.envs.encoding import Bools
from gpusched_env.envs.stepping import step_range
from gpusched_env.episodes.metrics import Metrics, episode_metrics
from gpusched_env.episodes.session import Episode
from gpusched_env.errors import InputError
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scenarios.set_up import SetUp, set_up


class Player:
    """Decides and steps in a loop that is compiled as a whole; other Python threads run meanwhile."""

    def __init__(self, batch: EnvBatch, policy: ExportedPolicy) -> None:
        """
        Args:
            batch: its environments have the layout of ``policy``.
            policy: its weights can be replaced at each call.
        """
        assert policy.info.actions.running_slots == batch.observations["running"].shape[1]
        self.batch = batch
        self.asked: NDArray[np.int64] = np.zeros(batch.count, np.int64)
        """Decisions in each environment so far, waits included."""
        self.commands: NDArray[np.int64] = np.zeros(batch.count, np.int64)
        """Commands in each environment so far: decisions that were not a wait."""
        self._actor = policy.actor(batch.observations["pending"].shape[1])
        self._counts = PlayCounts(np.zeros(batch.count, np.bool_), self.asked, self.commands)
        self._numbers = np.zeros(batch.masks.shape, np.float32)

    def play(self, weights: NDArray[np.float32] | None = None, *, to_the_end: bool) -> None:
        """Play until all episodes under way are over, or one of them is.

        Args:
            weights: in place of the policy's.
            to_the_end: whether to go on until all are over.

        Raises:
            DeadlockError: in an episode work is left but nothing can happen any more.
        """
        actor = self._actor if weights is None else self._actor._replace(weights=weights)
        while _play(actor, to_the_end, self._numbers, self._counts, self.batch.state_at):
            self.batch.go_on()


class PlayCounts(NamedTuple):
    """What is counted of each environment, ``(n,)``."""

    active: Bools
    """Whether a decision is open; written."""
    asked: Ints
    commands: Ints


@native()
def _play(actor: Actor, to_the_end: bool, numbers: Singles, counts: PlayCounts, address: int) -> bool:
    """Whether an environment has to be served, or is in a deadlock; then call again."""
    state = state_at(address)
    active, actions, reasons = counts.active, state.progress.actions, state.progress.reasons
    while True:
        count = 0
        for index in range(reasons.size):
            active[index] = reasons[index] == DECIDE
            count += active[index]
            actions[index] = 0
        if count == 0:
            return False
        act_batch(actor, active, state.observations, state.legal, numbers, actions)
        for index in range(reasons.size):
            counts.asked[index] += active[index]
            counts.commands[index] += actions[index] != 0
        if step_range(0, reasons.size, True, address) > 0:
            return True
        ended = 0
        for index in range(reasons.size):
            if reasons[index] == DEADLOCK:
                return True
            ended += active[index] and reasons[index] == OVER
        if ended > 0 and not to_the_end:
            return False


COPIES = 64
"""Episodes that are played at a time."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Episodes of one policy on one scenario, in the order of their seeds."""

    seeds: tuple[int, ...]
    costs: NDArray[np.float64]
    """Costs of the episodes, shape ``(seeds,)``; returns are minus these."""
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

    Every episode is the same as that of :func:`~gpusched_env.episodes.session.run_episode` with a
    :class:`~gpusched_env.agents.learned.LearnedScheduler`.

    Args:
        seeds: how many, counted from 0, or which.
        copies: episodes at a time.
        threads: how many play them.
        on_progress: told how many episodes have finished, whenever one does, in the thread that played it.

    Raises:
        InputError: the policy does not fit the scenario, or there are no seeds.
        DeadlockError: in one of the episodes work is left but nothing can happen any more.
    """
    wanted = tuple(range(seeds)) if isinstance(seeds, int) else tuple(int(seed) for seed in seeds)
    if not wanted or min(wanted) < 0:
        raise InputError(f"seeds are {seeds}: give at least one, none below 0")
    layout = policy.layout_for(scenario)
    problem = set_up(build_problem(scenario), SetUp(uses=lambda it: layout.uses(it.commands)))
    found: dict[int, Metrics] = {}

    def note(number: int, episode: Episode, asked: int) -> None:
        found[number] = episode_metrics(episode)
        on_progress(len(found))

    on_progress(0)
    play_episodes(policy, layout, [(problem, seed) for seed in wanted], note, copies=copies, threads=threads)
    metrics = tuple(found[number] for number in range(len(wanted)))
    return Evaluation(wanted, np.array([found.cost for found in metrics]), metrics)


Ended = Callable[[int, Episode, int], None]
"""Told of an episode's end: its number, the episode, and the decisions in it, waits included. One call at a time."""


def play_episodes(
    policy: ExportedPolicy,
    layout: ActionLayout,
    episodes: Sequence[tuple[Problem, int]],
    ended: Ended,
    *,
    copies: int = COPIES,
    threads: int = 1,
) -> None:
    """Play episodes of a policy, on the compiled device.

    Args:
        layout: actions of the policy in the problems.
        episodes: problems, set up for the policy, and seeds.
        ended: is told of each that has ended, in the thread that played it.
        copies: episodes at a time.
        threads: how many play them.

    Raises:
        DeadlockError: in one of the episodes work is left but nothing can happen any more.
    """
    played = _Episodes(policy, layout, episodes, ended)
    groups = min(threads, len(episodes))
    with ThreadPoolExecutor(groups) as pool:
        for group in [pool.submit(played.play, -(-min(copies, len(episodes)) // groups)) for _ in range(groups)]:
            group.result()


class _Episodes:
    """The episodes that are left, by their number."""

    def __init__(
        self, policy: ExportedPolicy, layout: ActionLayout, episodes: Sequence[tuple[Problem, int]], ended: Ended
    ) -> None:
        self._policy, self._layout, self._episodes, self._ended = policy, layout, episodes, ended
        self._left = deque(range(len(episodes)))
        self._lock = threading.Lock()

    def play(self, copies: int) -> None:
        """Play ``copies`` episodes at a time until none is left; several threads can do so together."""
        numbers: list[int | None] = [number for _ in range(copies) if (number := self._next()) is not None]
        batch = EnvBatch(len(numbers), self._layout, wait_us=self._policy.info.wait_us)
        player = Player(batch, self._policy)
        self._begin(batch, numbers, range(len(numbers)))
        while any(number is not None for number in numbers):
            player.play(to_the_end=False)
            ended = [index for index in np.flatnonzero(batch.reasons != DECIDE).tolist() if numbers[index] is not None]
            for index in ended:
                self._note(numbers[index], player, index)
                player.asked[index] = player.commands[index] = 0
                numbers[index] = self._next()
            self._begin(batch, numbers, ended)

    def _next(self) -> int | None:
        with self._lock:
            return self._left.popleft() if self._left else None

    def _begin(self, batch: EnvBatch, numbers: Sequence[int | None], environments: Iterable[int]) -> None:
        begun = [(index, number) for index in environments if (number := numbers[index]) is not None]
        for index, number in begun:
            batch.begin(index, *self._episodes[number])
        if begun:
            batch.run()

    def _note(self, number: int | None, player: Player, index: int) -> None:
        assert number is not None
        problem, seed = self._episodes[number]
        device = player.batch.devices[index]
        episode = Episode(
            problem=problem,
            seed=seed,
            timeline=device.timeline,
            costs=device.costs,
            end_us=device.time_us,
            done=device.done,
            decisions=int(player.commands[index]),
            wall_s=0.0,
        )
        with self._lock:
            self._ended(number, episode, int(player.asked[index]))

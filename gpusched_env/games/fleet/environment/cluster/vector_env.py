"""Many copies of the environment of clusters that one compiled call steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from gpusched_env.envs.single import SEED_LIMIT
from gpusched_env.envs.vector_arguments import autoreset_mode_of, seeds_of
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.state import FRAGMENTED_MILLI, USED_MILLI
from gpusched_env.games.fleet.environment.cluster.copies import At, Copies, with_room
from gpusched_env.games.fleet.environment.cluster.encoding import WIDTH
from gpusched_env.games.fleet.environment.cluster.env import (
    HUNDRED,
    check_shaping,
    observation_space,
    percent_of,
    potential,
)
from gpusched_env.games.fleet.environment.cluster.playing import begin_copy, step_copies
from gpusched_env.games.fleet.environment.cluster.problems import RANDOM, check_name, new_copy
from gpusched_env.games.fleet.environment.cluster.shortlist import CANDIDATES

Rows = NDArray[np.float32]
MOST_COPIES: Final = 4096


class ClusterPlacementVectorEnv(VectorEnv[Rows, NDArray[np.int64], NDArray[Any]]):
    """Copies of :class:`~gpusched_env.games.fleet.environment.cluster.env.ClusterPlacementEnv`, step by step the same.

    Episodes that end begin anew in the same step (``SAME_STEP``) or in the next one (``NEXT_STEP``). Seeds of later
    episodes are drawn from those given.
    """

    metadata: dict[str, Any] = {"render_modes": [], "render_fps": 10}  # noqa: RUF012
    copy = True
    """Observations are copies."""
    render_mode = None

    def __init__(
        self,
        problem: str = RANDOM,
        *,
        num_envs: int = 1,
        shaping: float = 0.0,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
    ) -> None:
        """
        Args:
            problem: of all copies, as of the single environment.
            num_envs: copies, 1 to 4096.
            shaping: weight of the potential.
            autoreset_mode: ``SAME_STEP`` or ``NEXT_STEP``.

        Raises:
            InputError: no such problem, count, weight or mode.
        """
        check_name(problem)
        if type(num_envs) is not int or not 1 <= num_envs <= MOST_COPIES:
            raise InputError(f"num_envs is {num_envs!r}, must be a whole number of 1 to {MOST_COPIES}")
        self.autoreset_mode = autoreset_mode_of(autoreset_mode)
        if self.autoreset_mode is AutoresetMode.DISABLED:
            raise InputError("autoreset_mode is DISABLED, must be SAME_STEP or NEXT_STEP")
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.problem, self.num_envs, self.shaping = problem, num_envs, check_shaping(shaping)
        self.single_observation_space = observation_space()
        self.single_action_space = spaces.Discrete(CANDIDATES)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._copies: Copies | None = None
        self._rows: Rows = np.zeros((num_envs, CANDIDATES, WIDTH), np.float32)
        self._rewards, self._totals = np.zeros(num_envs), np.zeros(num_envs)
        self._over, self._before = np.zeros(num_envs, np.bool_), np.zeros(num_envs)
        self._seeds = np.zeros(num_envs, np.int64)
        self._generators = [np.random.default_rng() for _ in range(num_envs)]

    def draw_in(self, render_mode: str) -> None:
        """Pictures are those of single environments."""

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Rows, dict[str, Any]]:
        """Begin all episodes.

        Args:
            seed: of the first episode of each copy, or of the first copy, from which the others count on.
            options: none.

        Raises:
            InputError: seeds that are none, or options.
        """
        if options:
            raise InputError(f"reset options {sorted(options)}: this environment has none")
        for number, given in enumerate(seeds_of(seed, self.num_envs)):
            if given is not None:
                self._generators[number] = np.random.default_rng(given)
            self._begin(number, given)
        self._over[:] = False
        return self._rows.copy(), self._infos()

    def step(
        self, actions: ArrayLike
    ) -> tuple[Rows, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Place a pod in each copy.

        Raises:
            ResetNeeded: there was no reset.
            InputError: not an action for each copy.
        """
        copies = self._known()
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or not np.issubdtype(chosen.dtype, np.integer):
            raise InputError(f"actions are {chosen.dtype} of shape {chosen.shape}, must be {self.num_envs} integers")
        if ((chosen < 0) | (chosen >= CANDIDATES)).any():
            raise InputError(f"an action is not in 0..{CANDIDATES - 1}: {chosen.tolist()}")
        waiting = self._over.copy()
        step_copies(copies, chosen.astype(np.int64), self._rewards, self._over, self._rows)
        self._totals += self._rewards
        rewards = self._rewards.copy()
        if self.shaping:
            now = potential(copies)
            rewards += self.shaping * np.where(waiting, 0.0, now - self._before)
            self._before = now
        over = self._over & ~waiting
        infos: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos = self._ended(over)
            waiting = over
        elif over.any():
            infos = self._ended(over)["final_info"]
        for number in np.flatnonzero(waiting).tolist():
            self._begin(number, None)
            self._over[number] = False
        return self._rows.copy(), rewards, over, np.zeros_like(over), {**infos, **self._infos()}

    def action_masks(self) -> NDArray[np.bool_]:
        """Legal actions of the next step, shape ``(num_envs, 32)``."""
        count = np.where(self._over, 0, self._known().shortlist.count[:, 0])
        masks: NDArray[np.bool_] = np.arange(CANDIDATES) < count[:, None]
        return masks

    def _known(self) -> Copies:
        if self._copies is None:
            raise ResetNeeded("call reset() first")
        return self._copies

    def _begin(self, number: int, seed: int | None) -> None:
        """Begin an episode of a copy; ``None``: a seed is drawn."""
        self._seeds[number] = self._generators[number].integers(SEED_LIMIT) if seed is None else seed
        one = new_copy(self.problem, int(self._seeds[number]))
        self._copies = with_room(self._copies, number, self.num_envs, one)
        begin_copy(self._copies, number, self._rows[number])
        self._totals[number] = self._before[number] = 0.0

    def _infos(self) -> dict[str, Any]:
        copies = self._known()
        every = np.ones(self.num_envs, np.bool_)
        found = {
            "action_mask": self.action_masks().astype(np.int8),
            "allocation": percent_of(copies, USED_MILLI),
            "fragmentation": percent_of(copies, FRAGMENTED_MILLI),
            "pods": copies.at[:, At.POD].copy(),
            "dropped": copies.at[:, At.DROPPED].copy(),
            "illegal_actions": copies.at[:, At.ILLEGAL].copy(),
            "seed": self._seeds.copy(),
        }
        return {**found, **{f"_{name}": every for name in found}}

    def _ended(self, over: NDArray[np.bool_]) -> dict[str, Any]:
        """What is told of episodes that have ended: ``final_obs`` and ``final_info``."""
        if not over.any():
            return {}
        copies = self._known()
        metrics = {
            "cost": 1.0 - self._totals / HUNDRED,
            "allocation": self._totals.copy(),
            "fragmentation": percent_of(copies, FRAGMENTED_MILLI),
            "dropped": copies.at[:, At.DROPPED] / np.maximum(1, copies.at[:, At.POD]),
        }
        told = {**metrics, **{f"_{name}": over for name in metrics}}
        last = {"episode_metrics": told, "_episode_metrics": over}
        observations = np.empty(self.num_envs, object)
        for number in np.flatnonzero(over).tolist():
            observations[number] = self._rows[number].copy()
        return {"final_obs": observations, "_final_obs": over, "final_info": last, "_final_info": over}

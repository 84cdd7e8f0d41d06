"""CMA-ES on the rule of a game that is no scenario: what is the same for all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policies.sizes import Shapes
from gpusched_env.agents.policy_file import GamePolicyInfo, Weights, write_game_policy
from gpusched_env.agents.training.environments import SEEDS_EACH, TRAINING_SEED
from gpusched_env.agents.training.evolution import Evolution, gathered
from gpusched_env.agents.training.folder import EXPORTED
from gpusched_env.agents.training.trainer import GameTraining
from gpusched_env.agents.training.validation import TrainingRun
from gpusched_env.versions import versions

P = TypeVar("P")
"""The type of a game's problem."""


class GamePopulation(ABC, Generic[P]):
    """Threads that play candidates on random problems."""

    def __init__(self, config: GameTraining) -> None:
        self._seed = TRAINING_SEED + SEEDS_EACH * config.seed
        self._episodes = int(config.settings["episodes"])
        self._pool = ThreadPoolExecutor(config.threads)

    @abstractmethod
    def drawn(self, rng: np.random.Generator, count: int) -> list[P]:
        """The problems of a generation: ``count`` of them."""

    @abstractmethod
    def play(self, weights: NDArray[np.float32], problem: P) -> tuple[float, int]:
        """Cost of a candidate on a problem, and its decisions."""

    def costs(
        self, candidates: Sequence[NDArray[np.float32]], generation: int, tell: Callable[[int], None]
    ) -> tuple[NDArray[np.float64], int]:
        """Costs of all candidates, as :meth:`gpusched_env.agents.training.evolution.Population.costs` has them."""
        problems = self.drawn(np.random.default_rng((self._seed, generation)), self._episodes)
        # Those of one problem together, which may share what it keeps.
        tasks = [(weights, problem) for problem in problems for weights in candidates]
        costs, decisions = gathered(self._pool.map(lambda task: self.play(*task), tasks), tell)
        return costs.reshape(len(problems), len(candidates)).T, decisions

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()


class GameEvolution(Evolution):
    """One training of a game's rule."""

    INFO: ClassVar[type[GamePolicyInfo]]
    """What the files of its policies say of them."""
    SHAPES: ClassVar[Shapes]

    def __init__(self, course: TrainingRun, config: GameTraining, state: dict[str, Any] | None) -> None:
        super().__init__(course, self.SHAPES, None, state)
        self._config = config

    def decider(self) -> NDArray[np.float32]:
        """The mean of the search, in the form that candidates have."""
        return self._candidate(self._mean)

    def keep(self) -> None:
        """Save the mean of the search as the policy's file."""
        keep_game_policy(self._course, self.INFO, self.timesteps, self._mean, **self._told())

    def _told(self) -> dict[str, Any]:
        """What else the policy's file says."""
        return {}


def keep_game_policy(
    course: TrainingRun, kind: type[GamePolicyInfo], timesteps: int, weights: Weights, **told: Any
) -> None:
    """Write the policy of a training; ``kind``: of the file; ``told``: fields that only files of that kind have."""
    info = kind(
        algorithm=course.config.algo,
        command=course.command,
        seed=course.config.seed,
        timesteps=timesteps,
        versions=versions(),
        **told,
    )
    write_game_policy(course.out / EXPORTED, info, weights)


def log_mean(relative: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean logarithm of each candidate's costs, where these are ratios, shape ``(candidates,)``."""
    return np.asarray(np.log(relative).mean(axis=1))

"""Candidates of a search play the same episodes, many at a time."""

from __future__ import annotations

import queue
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.exported import ExportedPolicy
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.environments import DRAWN_SEEDS, SEEDS_EACH, TRAINING_SEED, training_changes
from gpusched_env.agents.training.randomise import Randomise, sampler
from gpusched_env.envs.batch import EnvBatch
from gpusched_env.scenarios.problem import Problem, build_problem
from gpusched_env.scenarios.scenario import override


class Population:
    """Threads, each with environments for the episodes of one candidate."""

    def __init__(self, config: TrainingConfig, policy: ExportedPolicy) -> None:
        """``policy``: of the kind of the candidates."""
        self._config = config
        self._changes = training_changes(config)
        self._sample = None
        if config.randomise != Randomise():
            self._sample = sampler(config.scenario, self._changes, config.randomise)
        self._episodes = len(self._changes) * int(config.settings["episodes"])
        self._fixed = [build_problem(override(config.scenario, **change)) for change in self._changes]
        self._stages: queue.SimpleQueue[_Stage] = queue.SimpleQueue()
        for _ in range(config.threads):
            self._stages.put(_Stage(config, policy, self._episodes))
        self._pool = ThreadPoolExecutor(config.threads)

    def costs(self, candidates: Sequence[NDArray[np.float32]], generation: int) -> tuple[NDArray[np.float64], int]:
        """Costs of all candidates on the episodes of a generation, and how many decisions these took.

        Which episodes they are depends on the training's seed and the generation only.

        Args:
            candidates: weights as in :attr:`ExportedPolicy.weights`.
            generation: counted from 0.

        Returns:
            shape ``(candidates, episodes)``, and the number of decisions.

        Raises:
            DeadlockError: in an episode work is left but nothing can happen any more.
        """
        rng = np.random.default_rng((TRAINING_SEED + SEEDS_EACH * self._config.seed, generation))
        problems = self._problems(rng)
        seeds = rng.integers(*DRAWN_SEEDS, self._episodes // len(self._changes)).tolist()
        played = [(problem, seeds[k % len(seeds)]) for k, problem in enumerate(problems)]

        def play(weights: NDArray[np.float32]) -> tuple[NDArray[np.float64], int]:
            stage = self._stages.get()
            try:
                return stage.play(weights, played)
            finally:
                self._stages.put(stage)

        found = list(self._pool.map(play, candidates))
        return np.array([costs for costs, _ in found]), sum(decisions for _, decisions in found)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def _problems(self, rng: np.random.Generator) -> list[Problem]:
        """Of each variant as many in a row as it has episodes."""
        if self._sample is None:
            each = self._episodes // len(self._fixed)
            return [problem for problem in self._fixed for _ in range(each)]
        drawn = (self._sample(number, rng) for number in range(self._episodes))
        return [build_problem(override(self._config.scenario, **(fields or {}))) for fields in drawn]


class _Stage:
    """The environments of one thread."""

    def __init__(self, config: TrainingConfig, policy: ExportedPolicy, episodes: int) -> None:
        from gpusched_env.agents.player import Player

        self._player = Player(EnvBatch(episodes, policy.info.actions, wait_us=config.wait_us), policy)

    def play(
        self, weights: NDArray[np.float32], episodes: Sequence[tuple[Problem, int]]
    ) -> tuple[NDArray[np.float64], int]:
        """Costs of a candidate's episodes, and their decisions."""
        batch = self._player.batch
        for e, (problem, seed) in enumerate(episodes):
            batch.begin(e, problem, seed)
        batch.run()
        before = int(self._player.asked.sum())
        self._player.play(weights, to_the_end=True)
        return batch.costs.copy(), int(self._player.asked.sum()) - before

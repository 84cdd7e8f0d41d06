"""The training of the fleet rule: random days, CMA-ES, validation on other random days.

The named days that results are about are never played.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.fleet.config import FleetTraining
from gpusched_env.agents.fleet.playing import flat, play_day
from gpusched_env.agents.fleet.policy_file import FleetPolicyInfo, write_fleet_policy
from gpusched_env.agents.fleet.rule import SHAPES
from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.training.environments import DRAWN_SEEDS, SEEDS_EACH, TRAINING_SEED, VALIDATION_SEED
from gpusched_env.agents.training.evolution import Evolution
from gpusched_env.agents.training.folder import EXPORTED
from gpusched_env.agents.training.validation import Course, ValidationResult
from gpusched_env.envs.fleet.problems import RANDOM, fleet_cost, fleet_problem
from gpusched_env.fleet.problem import FleetProblem
from gpusched_env.versions import versions


def validation_days(config: FleetTraining) -> list[int]:
    """Seeds of the random days that a training of this configuration is validated on."""
    return [VALIDATION_SEED + number for number in range(config.validation_seeds)]


class FleetJudge:
    """See :class:`gpusched_env.agents.training.validation.Judge`."""

    def __init__(self, config: FleetTraining) -> None:
        self.seeds = validation_days(config)
        self._days = [fleet_problem(RANDOM, seed) for seed in self.seeds]

    def judge(self, decide: NDArray[np.float32]) -> ValidationResult:
        """``decide``: the weights of the rule, in one row."""
        played = [play_day(decide, day) for day in self._days]
        costs = [fleet_cost(run) for run, _ in played]
        figures = {
            "gpus": statistics.fmean(run.gpus for run, _ in played),
            "violations": float(np.nanmean([run.violations for run, _ in played])),
            "decisions": float(sum(decisions for _, decisions in played)),
        }
        return ValidationResult(costs, statistics.fmean(costs), figures, None)

    def close(self) -> None:
        """There are no threads."""


class FleetEvolution(Evolution):
    """Of the fleet rule."""

    def __init__(self, course: Course, config: FleetTraining, state: dict[str, Any] | None) -> None:
        super().__init__(course, SHAPES, None, state)
        self._config = config

    def decider(self) -> NDArray[np.float32]:
        return flat(self._mean)

    def keep(self) -> None:
        config = self._config
        info = FleetPolicyInfo(
            algorithm=config.algo,
            command=self._course.command,
            seed=config.seed,
            timesteps=self.timesteps,
            versions=versions(),
        )
        write_fleet_policy(self._course.out / EXPORTED, info, self._mean)

    def _population(self) -> FleetPopulation:
        return FleetPopulation(self._config)

    def _candidate(self, weights: Weights) -> NDArray[np.float32]:
        return flat(weights)


class FleetPopulation:
    """Threads that play candidates."""

    def __init__(self, config: FleetTraining) -> None:
        self._seed = TRAINING_SEED + SEEDS_EACH * config.seed
        self._episodes = int(config.settings["episodes"])
        self._pool = ThreadPoolExecutor(config.threads)

    def costs(self, candidates: Sequence[NDArray[np.float32]], generation: int) -> tuple[NDArray[np.float64], int]:
        """As of :meth:`gpusched_env.agents.training.evolution.Population.costs`."""
        rng = np.random.default_rng((self._seed, generation))
        days = [fleet_problem(RANDOM, int(seed)) for seed in rng.integers(*DRAWN_SEEDS, self._episodes)]

        def play(task: tuple[NDArray[np.float32], FleetProblem]) -> tuple[float, int]:
            run, decisions = play_day(*task)
            return fleet_cost(run), decisions

        found = list(self._pool.map(play, [(weights, day) for weights in candidates for day in days]))
        costs = np.array([cost for cost, _ in found]).reshape(len(candidates), len(days))
        return costs, sum(decisions for _, decisions in found)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

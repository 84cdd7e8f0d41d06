"""The training of the launch rule: random applications, CMA-ES, validation on other random applications.

A cost is an application's time over that of its flat version; means of it are geometric, as those of speed-ups are.
The benchmarks that results are about are never played.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.dynamic_parallelism.config import LaunchTraining
from gpusched_env.agents.dynamic_parallelism.playing import PlayedLaunches, play_launches
from gpusched_env.agents.dynamic_parallelism.policy_file import LaunchPolicyInfo, write_launch_policy
from gpusched_env.agents.dynamic_parallelism.rule import SHAPES
from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.training.environments import DRAWN_SEEDS, SEEDS_EACH, TRAINING_SEED, VALIDATION_SEED
from gpusched_env.agents.training.evolution import Evolution
from gpusched_env.agents.training.folder import EXPORTED
from gpusched_env.agents.training.validation import Course, ValidationResult
from gpusched_env.dynamic_parallelism.problem import LaunchProblem, launch_problem
from gpusched_env.envs.dynamic_parallelism.playing import flat_ps
from gpusched_env.versions import versions
from gpusched_env.workload.dynamic_parallelism.randomised import random_benchmark

Application = tuple[LaunchProblem, int]
"""A problem, and how long its flat version takes, ps."""


def evolve_launches(course: Course, config: LaunchTraining, state: dict[str, Any] | None) -> int:
    """Search until the configured number of decisions is reached, or the watcher ends it; returns their number.

    ``state``: of the checkpoint to go on from.
    """
    evolution = LaunchEvolution(course, config, state)
    evolution.run()
    return evolution.timesteps


def applications(
    seeds: Iterable[int], count: int, most: int, pool: ThreadPoolExecutor | None = None
) -> list[Application]:
    """The first ``count`` random applications of ``seeds`` with at most so many requests."""
    found: list[Application] = []
    drawn: Iterator[int] = iter(seeds)
    while len(found) < count:
        wanted = list(itertools.islice(drawn, count - len(found)))
        made = map(_application, wanted) if pool is None else pool.map(_application, wanted)
        found += [application for application in made if application[0].asking <= most]
    return found


def _application(seed: int) -> Application:
    problem = launch_problem(random_benchmark(seed))
    return problem, flat_ps(problem)


def validation_applications(config: LaunchTraining) -> list[Application]:
    """Those that a training of this configuration is validated on."""
    return applications(itertools.count(VALIDATION_SEED), config.validation_seeds, config.requests)


def geometric_mean(values: Sequence[float] | NDArray[np.float64]) -> float:
    """Of positive numbers."""
    return float(np.exp(np.log(values).mean()))


class LaunchJudge:
    """See :class:`gpusched_env.agents.training.validation.Judge`."""

    def __init__(self, config: LaunchTraining) -> None:
        self._applications = validation_applications(config)
        self.seeds = [int(problem.name.rpartition("-")[2]) for problem, _ in self._applications]

    def judge(self, decide: NDArray[np.float32]) -> ValidationResult:
        """``decide``: the weights of the rule."""
        played = [play_launches(decide, *application) for application in self._applications]
        costs = [episode.cost for episode in played]
        decisions = sum(episode.decisions for episode in played)
        children = sum(episode.children for episode in played)
        figures = {
            "speedup": 1.0 / geometric_mean(costs),
            "decisions": decisions,
            "launched_share": children / decisions,
        }
        return ValidationResult(costs, geometric_mean(costs), figures, None)

    def close(self) -> None:
        """There are no threads."""


class LaunchEvolution(Evolution):
    """Of the launch rule."""

    def __init__(self, course: Course, config: LaunchTraining, state: dict[str, Any] | None) -> None:
        super().__init__(course, SHAPES, None, state)
        self._config = config

    def decider(self) -> NDArray[np.float32]:
        return self._candidate(self._mean)

    def keep(self) -> None:
        config = self._config
        info = LaunchPolicyInfo(
            algorithm=config.algo,
            command=self._course.command,
            seed=config.seed,
            timesteps=self.timesteps,
            versions=versions(),
        )
        write_launch_policy(self._course.out / EXPORTED, info, self._mean)

    def _population(self) -> LaunchPopulation:
        return LaunchPopulation(self._config)

    def _candidate(self, weights: Weights) -> NDArray[np.float32]:
        return weights["value"]

    def _mean_of(self, relative: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.log(relative).mean(axis=1))


class LaunchPopulation:
    """Threads that play candidates."""

    def __init__(self, config: LaunchTraining) -> None:
        self._seed = TRAINING_SEED + SEEDS_EACH * config.seed
        self._episodes = int(config.settings["episodes"])
        self._pool = ThreadPoolExecutor(config.threads)
        rng = np.random.default_rng(self._seed)
        seeds = (int(rng.integers(*DRAWN_SEEDS)) for _ in itertools.count())
        self._applications = applications(seeds, int(config.settings["applications"]), config.requests, self._pool)

    def costs(self, candidates: Sequence[NDArray[np.float32]], generation: int) -> tuple[NDArray[np.float64], int]:
        """As of :meth:`gpusched_env.agents.training.evolution.Population.costs`."""
        rng = np.random.default_rng((self._seed, generation))
        chosen = rng.choice(len(self._applications), self._episodes, replace=False)
        played = [self._applications[number] for number in chosen]

        def play(task: tuple[NDArray[np.float32], Application]) -> PlayedLaunches:
            weights, (problem, flat) = task
            return play_launches(weights, problem, flat)

        tasks = [(weights, application) for application in played for weights in candidates]
        found = list(self._pool.map(play, tasks))
        costs = np.array([episode.cost for episode in found]).reshape(len(played), len(candidates)).T
        return costs, sum(episode.decisions for episode in found)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

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

from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.training.environments import DRAWN_SEEDS, VALIDATION_SEED
from gpusched_env.agents.training.game_evolution import GameEvolution, GamePopulation, log_mean
from gpusched_env.agents.training.validation import Judge, ValidationResult
from gpusched_env.games.child_launches.agents.rule import SHAPES, LaunchPolicyInfo, play_launches
from gpusched_env.games.child_launches.agents.trainer import LaunchTraining
from gpusched_env.games.child_launches.environment.requests import flat_ps
from gpusched_env.games.child_launches.problem import LaunchProblem, Transformations, launch_problem
from gpusched_env.games.child_launches.workload.suite import random_benchmark

Application = tuple[LaunchProblem, int]
"""A problem, and how long its flat version takes, ps."""


def applications(
    seeds: Iterable[int], count: int, config: LaunchTraining, pool: ThreadPoolExecutor | None = None
) -> list[Application]:
    """The first ``count`` random applications of ``seeds`` that have few enough requests, compiled as in a training.

    They are given as they are written.
    """
    found: list[Application] = []
    drawn: Iterator[int] = iter(seeds)
    while len(found) < count:
        wanted = list(itertools.islice(drawn, count - len(found)))
        made = map(_application, wanted) if pool is None else pool.map(_application, wanted)
        found += [each for each in made if config.program.applied(each[0]).asking <= config.requests]
    return found


def _application(seed: int) -> Application:
    problem = launch_problem(random_benchmark(seed))
    return problem, flat_ps(problem)


def compiled(found: Iterable[Application], program: Transformations) -> list[Application]:
    """The applications, compiled as ``program`` says; their flat versions are what they were."""
    return [(program.applied(problem), flat) for problem, flat in found]


def seeds_of(found: Iterable[Application]) -> list[int]:
    """Which random applications these are."""
    return [int(problem.name.rpartition("-")[2]) for problem, _ in found]


def validation_applications(config: LaunchTraining) -> list[Application]:
    """Applications that a training of this configuration is validated on."""
    return applications(itertools.count(VALIDATION_SEED), config.validation_seeds, config)


def geometric_mean(values: Sequence[float] | NDArray[np.float64]) -> float:
    """The geometric mean of positive numbers."""
    return float(np.exp(np.log(values).mean()))


class LaunchJudge(Judge):
    """Of the launch rule."""

    def __init__(self, config: LaunchTraining) -> None:
        self._applications = compiled(validation_applications(config), config.program)
        self.seeds = seeds_of(self._applications)

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


class LaunchEvolution(GameEvolution):
    """A search for the weights of the launch rule."""

    INFO = LaunchPolicyInfo
    SHAPES = SHAPES
    _config: LaunchTraining

    def _population(self) -> LaunchPopulation:
        return LaunchPopulation(self._config)

    def _candidate(self, weights: Weights) -> NDArray[np.float32]:
        return weights["value"]

    def _told(self) -> dict[str, Any]:
        return {"program": self._config.program}

    def _mean_of(self, relative: NDArray[np.float64]) -> NDArray[np.float64]:
        return log_mean(relative)


class LaunchPopulation(GamePopulation[Application]):
    """Random applications, drawn once."""

    def __init__(self, config: LaunchTraining) -> None:
        super().__init__(config)
        rng = np.random.default_rng(self._seed)
        seeds = (int(rng.integers(*DRAWN_SEEDS)) for _ in itertools.count())
        found = applications(seeds, int(config.settings["applications"]), config, self._pool)
        self._applications = compiled(found, config.program)

    def drawn(self, rng: np.random.Generator, count: int) -> list[Application]:
        return [self._applications[number] for number in rng.choice(len(self._applications), count, replace=False)]

    def play(self, weights: NDArray[np.float32], problem: Application) -> tuple[float, int]:
        episode = play_launches(weights, *problem)
        return episode.cost, episode.decisions

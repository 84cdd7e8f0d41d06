"""The training of the fleet rule: random days, CMA-ES, validation on other random days.

The named days that results are about are never played.
"""

from __future__ import annotations

import statistics

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.training.environments import DRAWN_SEEDS, validation_seeds
from gpusched_env.agents.training.game_evolution import GameEvolution, GamePopulation
from gpusched_env.agents.training.validation import Judge, ValidationResult
from gpusched_env.games.fleet.agents.rule import SHAPES, FleetPolicyInfo, play_day, weights_in_a_row
from gpusched_env.games.fleet.agents.trainer import FleetTraining
from gpusched_env.games.fleet.environment.problems import RANDOM, fleet_cost, fleet_problem
from gpusched_env.games.fleet.problem import FleetProblem


class FleetJudge(Judge):
    """Of the fleet rule."""

    def __init__(self, config: FleetTraining) -> None:
        self.seeds = validation_seeds(config)
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


class FleetEvolution(GameEvolution):
    """A search for the weights of the fleet rule."""

    INFO = FleetPolicyInfo
    SHAPES = SHAPES
    _config: FleetTraining

    def _population(self) -> FleetPopulation:
        return FleetPopulation(self._config)

    def _candidate(self, weights: Weights) -> NDArray[np.float32]:
        return weights_in_a_row(weights)


class FleetPopulation(GamePopulation[FleetProblem]):
    """Random days that candidates play."""

    def drawn(self, rng: np.random.Generator, count: int) -> list[FleetProblem]:
        return [fleet_problem(RANDOM, int(seed)) for seed in rng.integers(*DRAWN_SEEDS, count)]

    def play(self, weights: NDArray[np.float32], problem: FleetProblem) -> tuple[float, int]:
        run, decisions = play_day(weights, problem)
        return fleet_cost(run), decisions

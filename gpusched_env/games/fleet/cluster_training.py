"""The training of the placement rule: drawn clusters and workloads, CMA-ES, validation on other drawn ones.

The cost is the share of the GPUs that is free at the end. Candidates are compared with one another on the same
arrivals. The published workloads that results are about are never played.
"""

from __future__ import annotations

import statistics
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.policy_file import Weights
from gpusched_env.agents.training.environments import DRAWN_SEEDS, validation_seeds
from gpusched_env.agents.training.game_evolution import GameEvolution, GamePopulation
from gpusched_env.agents.training.validation import Judge, ValidationResult
from gpusched_env.games.fleet.agents.cluster.rule import SHAPES, PlacementPolicyInfo, play_placements
from gpusched_env.games.fleet.agents.cluster.trainer import PlacementTraining
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.environment.cluster.copies import Copies, with_room
from gpusched_env.games.fleet.environment.cluster.problems import RANDOM, allocation_of, new_copy

HUNDRED: Final = 100.0


def play_drawn(place: NDArray[np.float32], episode: Copies) -> tuple[float, int]:
    """Share of the GPUs that is free at the end of an episode of the rule, and its decisions.

    Args:
        place: weights of the rule.
        episode: at its beginning, where it stays.
    """
    allocation, decisions = play_placements(place, with_room(None, 0, 1, episode))
    return 1.0 - allocation / HUNDRED, decisions


class PlacementJudge(Judge):
    """Of the placement rule."""

    def __init__(self, config: PlacementTraining) -> None:
        self.seeds = validation_seeds(config)
        self._episodes = [new_copy(RANDOM, seed) for seed in self.seeds]
        self._with_fgd = statistics.fmean(allocation_of(Policy.FGD, RANDOM, seed) for seed in self.seeds)

    def judge(self, decide: NDArray[np.float32]) -> ValidationResult:
        """``decide``: the weights of the rule."""
        played = [play_drawn(decide, episode) for episode in self._episodes]
        costs, decisions = zip(*played, strict=True)
        cost = statistics.fmean(costs)
        figures = {
            "points_above_fgd": HUNDRED * (1.0 - cost) - self._with_fgd,
            "decisions": float(sum(decisions)),
        }
        return ValidationResult(list(costs), cost, figures, None)


class PlacementEvolution(GameEvolution):
    """A search for the weights of the placement rule."""

    INFO = PlacementPolicyInfo
    SHAPES = SHAPES
    _config: PlacementTraining

    def _population(self) -> PlacementPopulation:
        return PlacementPopulation(self._config)

    def _candidate(self, weights: Weights) -> NDArray[np.float32]:
        return weights["place"].astype(np.float32)


class PlacementPopulation(GamePopulation[Copies]):
    """Drawn episodes that candidates play."""

    def drawn(self, rng: np.random.Generator, count: int) -> list[Copies]:
        return [new_copy(RANDOM, int(seed)) for seed in rng.integers(*DRAWN_SEEDS, count)]

    def play(self, weights: NDArray[np.float32], problem: Copies) -> tuple[float, int]:
        return play_drawn(weights, problem)

"""The training of the placement rule: drawn clusters and workloads, CMA-ES, validation on other drawn ones.

A candidate's cost on an episode is what it leaves free of the GPUs, over what FGD leaves free with the same arrivals:
FGD is the baseline. The published workloads that results are about are never played.
"""

from __future__ import annotations

import statistics
from typing import Final, NamedTuple

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

LEAST_FREE: Final = 0.5
"""Per cent of the GPUs that FGD counts as leaving free, at least."""
HUNDRED: Final = 100.0


class DrawnEpisode(NamedTuple):
    """An episode at its beginning, and what FGD leaves free at its end."""

    copy: Copies
    free_with_fgd: float
    """Per cent of the GPUs."""


class PlacementPlay(NamedTuple):
    """An episode of the rule."""

    allocation: float
    """Per cent of the GPUs."""
    cost: float
    decisions: int


def drawn_episode(seed: int) -> DrawnEpisode:
    """The episode of a seed."""
    free = HUNDRED - allocation_of(Policy.FGD, RANDOM, seed)
    return DrawnEpisode(new_copy(RANDOM, seed), max(LEAST_FREE, free))


def play_drawn(place: NDArray[np.float32], episode: DrawnEpisode) -> PlacementPlay:
    """An episode of the rule, which stays at its beginning; ``place``: the weights."""
    allocation, decisions = play_placements(place, with_room(None, 0, 1, episode.copy))
    return PlacementPlay(allocation, (HUNDRED - allocation) / episode.free_with_fgd, decisions)


class PlacementJudge(Judge):
    """Of the placement rule."""

    def __init__(self, config: PlacementTraining) -> None:
        self.seeds = validation_seeds(config)
        self._episodes = [drawn_episode(seed) for seed in self.seeds]

    def judge(self, decide: NDArray[np.float32]) -> ValidationResult:
        """``decide``: the weights of the rule."""
        played = [play_drawn(decide, episode) for episode in self._episodes]
        costs = [play.cost for play in played]
        points = [
            play.allocation - HUNDRED + episode.free_with_fgd
            for play, episode in zip(played, self._episodes, strict=True)
        ]
        figures = {
            "points_above_fgd": statistics.fmean(points),
            "decisions": float(sum(play.decisions for play in played)),
        }
        return ValidationResult(costs, statistics.fmean(costs), figures, None)


class PlacementEvolution(GameEvolution):
    """A search for the weights of the placement rule."""

    INFO = PlacementPolicyInfo
    SHAPES = SHAPES
    _config: PlacementTraining

    def _population(self) -> PlacementPopulation:
        return PlacementPopulation(self._config)

    def _candidate(self, weights: Weights) -> NDArray[np.float32]:
        return weights["place"].astype(np.float32)


class PlacementPopulation(GamePopulation[DrawnEpisode]):
    """Drawn episodes that candidates play."""

    def drawn(self, rng: np.random.Generator, count: int) -> list[DrawnEpisode]:
        return [drawn_episode(int(seed)) for seed in rng.integers(*DRAWN_SEEDS, count)]

    def play(self, weights: NDArray[np.float32], problem: DrawnEpisode) -> tuple[float, int]:
        play = play_drawn(weights, problem)
        return play.cost, play.decisions

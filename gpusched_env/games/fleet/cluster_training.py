"""The training of the placement rule: policy gradients on drawn clusters and workloads, validation on other drawn ones.

The cost is the share of the GPUs that is free at the end. The published workloads that results are about are never
played.
"""

from __future__ import annotations

import statistics
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.agents.training.environments import DRAWN_SEEDS, SEEDS_EACH, TRAINING_SEED, validation_seeds
from gpusched_env.agents.training.game_evolution import keep_game_policy
from gpusched_env.agents.training.validation import Judge, TrainingRun, ValidationResult
from gpusched_env.games.fleet.agents.cluster.adam import change_by, rate_at
from gpusched_env.games.fleet.agents.cluster.gradient import drawn_episode, gradient_of
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


class PlacementGradient:
    """A training of the placement rule by policy gradients, with Adam (Kingma and Ba, ICLR 2015)."""

    def __init__(self, course: TrainingRun, config: PlacementTraining, state: dict[str, Any] | None) -> None:
        """``state``: of the checkpoint to go on from."""
        self._course, self._config = course, config
        self.timesteps = self._steps = 0
        self._weights, self._mean, self._square = (np.zeros(SHAPES["place"]) for _ in range(3))
        if state is not None:
            self.timesteps, self._steps = state["timesteps"], state["steps"]
            self._weights, self._mean, self._square = (state[name].copy() for name in ("weights", "mean", "square"))

    def run(self) -> None:
        """Learn on to the end."""
        course = self._course
        with ThreadPoolExecutor(self._config.threads) as pool:
            while self.timesteps < self._config.timesteps and not course.stopped:
                course.boundary(self, self.timesteps)
                self._step(pool)
        course.end(self, self.timesteps)

    def decider(self) -> NDArray[np.float32]:
        """The weights, as the judge takes them."""
        return self._weights.astype(np.float32)

    def keep(self) -> None:
        """Save the weights as the policy's file."""
        keep_game_policy(self._course, PlacementPolicyInfo, self.timesteps, {"place": self.decider()})

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        kept = {"weights": self._weights, "mean": self._mean, "square": self._square}
        return {"timesteps": self.timesteps, "steps": self._steps, **{name: kept[name].copy() for name in kept}}

    def _step(self, pool: ThreadPoolExecutor) -> None:
        """Play episodes of the same arrivals, and follow the gradient; drawn by the number of the step alone."""
        settings, weights = self._config.settings, self.decider()
        dice = np.random.default_rng((TRAINING_SEED + SEEDS_EACH * self._config.seed, self._steps))
        copy = new_copy(RANDOM, int(dice.integers(*DRAWN_SEEDS)))
        episodes = list(
            pool.map(
                lambda own: drawn_episode(copy, weights, settings["temperature"], own),
                dice.spawn(settings["episodes"]),
            )
        )
        gradient = gradient_of(episodes, settings["discount"], settings["shaping"])
        self._steps += 1
        rate = rate_at(settings["learning_rate"], self.timesteps / self._config.timesteps)
        self._weights += change_by(gradient, self._mean, self._square, self._steps, rate)
        self.timesteps += sum(one.decisions for one in episodes)
        allocations = [float(one.reward.sum()) for one in episodes]
        figures = {
            "reinforce/allocation": statistics.fmean(allocations),
            "reinforce/spread": statistics.pstdev(allocations),
            "reinforce/learning_rate": rate,
            "reinforce/weights": float(np.abs(self._weights).mean()),
        }
        self._course.board.scalars(figures, self.timesteps)

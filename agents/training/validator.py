"""Validations in the course of a training: the learning curve, the best policy, what TensorBoard shows of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.deciding import Decide
from gpusched_env.agents.training.environments import training_changes, validation_env, validation_seeds
from gpusched_env.agents.training.files import replacing
from gpusched_env.agents.training.gantt import gantt
from gpusched_env.agents.training.record import LearningCurve, Validation
from gpusched_env.agents.training.results import VALIDATION
from gpusched_env.agents.training.tensorboard import TensorBoard
from gpusched_env.agents.training.validation import Played, mean_cost, mean_figures, play


@dataclass(frozen=True, slots=True)
class Progress:
    """What a training tells whoever watches it."""

    timesteps: int
    validation: Validation | None
    """Of a validation that has just been made."""
    best_cost: float | None


Watch = Callable[[Progress], bool | None]
"""Called after every step and every validation; ``False`` ends the training."""


class Validator:
    """Plays the validation episodes of a training, and keeps its record."""

    def __init__(
        self,
        config: TrainingConfig,
        out: Path,
        board: TensorBoard,
        baselines: Mapping[str, float],
        watch: Watch | None,
    ) -> None:
        """``baselines``: mean costs of other schedulers on the validation episodes."""
        self.config = config
        self.curve: list[Validation] = []
        self.stopped = False
        """Whether the watcher ended the training."""
        self._out = out
        self._board = board
        self._baselines = dict(baselines)
        self._watch = watch
        self._env = validation_env(config)
        self._seeds = validation_seeds(config) * len(training_changes(config))
        self._next = 0
        self._train_s = 0.0
        self._since = time.perf_counter()

    @property
    def best_cost(self) -> float | None:
        """The lowest mean cost of a validation."""
        return min((point.cost for point in self.curve), default=None)

    @property
    def train_s(self) -> float:
        """Wall time of the training, of interrupted parts up to their last checkpoint."""
        return self._train_s + time.perf_counter() - self._since

    def due(self, timesteps: int) -> bool:
        """Whether it is time for the next validation."""
        return timesteps >= self._next

    def missing(self, timesteps: int) -> bool:
        """Whether there is none yet of what ``timesteps`` decisions have led to."""
        return not self.curve or self.curve[-1].timesteps < timesteps

    def validate(self, decide: Decide, timesteps: int, keep: Callable[[], None]) -> None:
        """Play the validation episodes.

        Args:
            decide: the policy.
            timesteps: decisions that it was trained for.
            keep: saves it; called if it is the best so far.
        """
        self._next = timesteps + self.config.validate_every
        episodes = play(decide, self._env, self._seeds)
        cost = mean_cost(episodes)
        best = self.best_cost is None or cost < self.best_cost
        if best:
            keep()
        point = Validation(timesteps=timesteps, cost=cost, costs=[e.cost for e in episodes], best=best)
        self.curve.append(point)
        self._write_curve()
        self._show(episodes, decide)
        self.tell(timesteps, point)

    def tell(self, timesteps: int, point: Validation | None = None) -> None:
        """Tell the watcher how far the training is, and of a validation."""
        if self._watch is not None and self._watch(Progress(timesteps, point, self.best_cost)) is False:
            self.stopped = True

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of it."""
        return {"curve": list(self.curve), "next": self._next, "train_s": self.train_s}

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to what :meth:`state` gave."""
        self.curve = list(state["curve"])
        self._next = state["next"]
        self._train_s = state["train_s"]
        self._since = time.perf_counter()

    def close(self) -> None:
        """End the threads of the environments."""
        self._env.close()

    def _write_curve(self) -> None:
        content = LearningCurve(seeds=self._seeds, baselines=self._baselines, validations=self.curve)
        with replacing(self._out / VALIDATION) as partial:
            partial.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")

    def _show(self, episodes: list[Played], decide: Decide) -> None:
        point, best_cost = self.curve[-1], self.best_cost
        assert best_cost is not None
        scalars = {f"validation/{name}": value for name, value in mean_figures(episodes).items()}
        scalars |= {"validation/cost": point.cost, "validation/best_cost": best_cost}
        if self._baselines:
            scalars["validation/gap_to_best_baseline"] = point.cost / min(self._baselines.values()) - 1.0
        self._board.scalars(scalars, point.timesteps)
        self._board.image("validation/schedule", gantt(decide, self.config, self._seeds[0]), point.timesteps)

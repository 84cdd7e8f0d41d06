"""What happens between two rollouts: validations, the best model, checkpoints."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from stable_baselines3.common.callbacks import BaseCallback

from gpusched_env.agents.training.checkpoint import Checkpoints
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.deciding import can_export, exported_decider, torch_decider
from gpusched_env.agents.training.environments import training_changes, validation_env, validation_seeds
from gpusched_env.agents.training.files import replacing
from gpusched_env.agents.training.gantt import gantt
from gpusched_env.agents.training.record import LearningCurve, Validation
from gpusched_env.agents.training.results import BEST, CHECKPOINTS, EXPORTED, VALIDATION
from gpusched_env.agents.training.tensorboard import TensorBoard
from gpusched_env.agents.training.validation import mean_cost, mean_figures, play


@dataclass(frozen=True, slots=True)
class Progress:
    """What a training tells whoever watches it."""

    timesteps: int
    validation: Validation | None
    """Of a validation that has just been made."""
    best_cost: float | None


Watch = Callable[[Progress], bool | None]
"""Called after every step and every validation; ``False`` ends the training."""


class Boundary(BaseCallback):
    """Validates and saves at the start of rollouts, when it is time."""

    def __init__(
        self,
        config: TrainingConfig,
        out: Path,
        board: TensorBoard,
        baselines: Mapping[str, float],
        watch: Watch | None,
        *,
        checkpoints: bool = True,
        command: str = "",
    ) -> None:
        """``baselines``: mean costs of other schedulers on the validation episodes; ``command``: noted in files."""
        super().__init__()
        self.config = config
        self.curve: list[Validation] = []
        self.stopped = False
        """Whether the watcher ended the training."""
        self.train_s = 0.0
        """Wall time of the training, of interrupted parts up to their last checkpoint."""
        self._out = out
        self._board = board
        self._baselines = dict(baselines)
        self._watch = watch
        self._command = command
        self._checkpoints = Checkpoints(out / CHECKPOINTS) if checkpoints else None
        self._env = validation_env(config)
        self._seeds = validation_seeds(config) * len(training_changes(config))
        self._next_validation = self._next_checkpoint = 0
        self._since = time.perf_counter()

    @property
    def best_cost(self) -> float | None:
        """The lowest mean cost of a validation."""
        return min((point.cost for point in self.curve), default=None)

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of this callback."""
        return {
            "curve": list(self.curve),
            "next": (self._next_validation, self._next_checkpoint),
            "train_s": self.train_s + time.perf_counter() - self._since,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to what :meth:`state` gave."""
        self.curve = list(state["curve"])
        self._next_validation, self._next_checkpoint = state["next"]
        self.train_s = state["train_s"]
        self._since = time.perf_counter()

    def _on_rollout_start(self) -> None:
        if self.num_timesteps >= self._next_validation:
            self._next_validation = self.num_timesteps + self.config.validate_every
            self.validate()
        if self._checkpoints is not None and self.num_timesteps >= self._next_checkpoint:
            self._next_checkpoint = self.num_timesteps + self.config.checkpoint_every
            self._checkpoints.save(self.model, self.state())

    def _on_step(self) -> bool:
        self._tell(None)
        return not self.stopped

    def _on_training_end(self) -> None:
        if not self.curve or self.curve[-1].timesteps < self.num_timesteps:
            self.validate()
        if self._checkpoints is not None:
            # Nothing happens from here to the next rollout, if the training is prolonged later.
            self._checkpoints.save(self.model, self.state())
        self.train_s += time.perf_counter() - self._since
        self._env.close()

    def validate(self) -> None:
        """Play the validation episodes; keep the model if it is the best so far."""
        with tempfile.TemporaryDirectory() as scratch:
            self._validate(Path(scratch) / EXPORTED)

    def _validate(self, exported: Path) -> None:
        if can_export(self.model):
            decide = exported_decider(self.model, exported, self._command)
        else:
            decide = torch_decider(self.model)
        episodes = play(decide, self._env, self._seeds)
        cost = mean_cost(episodes)
        best = self.best_cost is None or cost < self.best_cost
        point = Validation(timesteps=self.num_timesteps, cost=cost, costs=[e.cost for e in episodes], best=best)
        if best:
            with replacing(self._out / BEST) as partial:
                self.model.save(partial)
            if exported.exists():
                with replacing(self._out / EXPORTED) as partial:
                    shutil.copyfile(exported, partial)
        self.curve.append(point)
        self._write_curve()
        self._show(mean_figures(episodes), gantt(decide, self.config, self._seeds[0]))
        self._tell(point)

    def _write_curve(self) -> None:
        content = LearningCurve(seeds=self._seeds, baselines=self._baselines, validations=self.curve)
        with replacing(self._out / VALIDATION) as partial:
            partial.write_bytes(msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")

    def _show(self, figures: dict[str, float], schedule: NDArray[np.uint8]) -> None:
        scalars = {f"validation/{name}": value for name, value in figures.items()}
        best_cost = self.best_cost
        assert best_cost is not None
        scalars |= {"validation/cost": self.curve[-1].cost, "validation/best_cost": best_cost}
        if self._baselines:
            bar = min(self._baselines.values())
            scalars["validation/gap_to_best_baseline"] = self.curve[-1].cost / bar - 1.0
        self._board.scalars(scalars, self.num_timesteps)
        self._board.image("validation/schedule", schedule, self.num_timesteps)

    def _tell(self, point: Validation | None) -> None:
        if self._watch is not None and self._watch(Progress(self.num_timesteps, point, self.best_cost)) is False:
            self.stopped = True

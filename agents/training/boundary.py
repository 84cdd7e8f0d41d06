"""What happens between two rollouts of an algorithm of stable-baselines3: validations and checkpoints."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from stable_baselines3.common.callbacks import BaseCallback

from gpusched_env.agents.export import EXPORTED as CAN_EXPORT
from gpusched_env.agents.training.course import Course
from gpusched_env.agents.training.deciding import exported_decider, torch_decider
from gpusched_env.agents.training.files import replacing
from gpusched_env.agents.training.results import BEST, EXPORTED


class Boundary(BaseCallback):
    """Validates and saves at the start of rollouts, when it is time."""

    def __init__(self, course: Course) -> None:
        super().__init__()
        self._course = course
        self._next_checkpoint = 0

    def restore(self, state: dict[str, object]) -> None:
        """Go back to what a checkpoint has kept of this callback."""
        validator, next_checkpoint = state["validator"], state["next_checkpoint"]
        assert isinstance(validator, dict)
        assert isinstance(next_checkpoint, int)
        self._course.validator.restore(validator)
        self._next_checkpoint = next_checkpoint

    def _on_rollout_start(self) -> None:
        if self._course.validator.due(self.num_timesteps):
            self._validate()
        if self.num_timesteps >= self._next_checkpoint:
            self._next_checkpoint = self.num_timesteps + self._course.config.checkpoint_every
            self._save()

    def _on_step(self) -> bool:
        self._course.validator.tell(self.num_timesteps)
        return not self._course.validator.stopped

    def _on_training_end(self) -> None:
        if self._course.validator.missing(self.num_timesteps):
            self._validate()
        # Nothing happens from here to the next rollout, if the training is prolonged later.
        self._save()

    def _save(self) -> None:
        if self._course.saves:
            state = {"validator": self._course.validator.state(), "next_checkpoint": self._next_checkpoint}
            self._course.checkpoints.save(self.model, state)

    def _validate(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            exported = Path(scratch) / EXPORTED
            if self._course.config.algo in CAN_EXPORT:
                decide = exported_decider(self.model, exported, self._course.command)
            else:
                decide = torch_decider(self.model.policy)
            self._course.validator.validate(decide, self.num_timesteps, lambda: self._keep(exported))

    def _keep(self, exported: Path) -> None:
        with replacing(self._course.out / BEST) as partial:
            self.model.save(partial)
        if exported.exists():
            with replacing(self._course.out / EXPORTED) as partial:
                shutil.copyfile(exported, partial)

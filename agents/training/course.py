"""What every algorithm needs in the course of a training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpusched_env.agents.training.checkpoint import Checkpoints
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.tensorboard import TensorBoard
from gpusched_env.agents.training.validator import Validator


@dataclass(frozen=True, slots=True)
class Course:
    """One training under way."""

    config: TrainingConfig
    out: Path
    """The folder of the training."""
    board: TensorBoard
    validator: Validator
    checkpoints: Checkpoints
    saves: bool
    """Whether checkpoints are to be written."""
    resumes: bool
    """Whether it goes on from the last checkpoint."""
    command: str
    """The command line, to be noted in exported policies."""

"""What a training leaves on record: how it was configured, and its learning curve."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from gpusched_env.agents.training.config import TrainingConfig, read_config, read_provenance
from gpusched_env.agents.training.results import CONFIG, VALIDATION
from gpusched_env.errors import InputError


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """One point of a learning curve."""

    timesteps: int
    cost: float
    """Mean over the validation episodes."""
    costs: list[float]
    """Of each, by training variant and then seed."""
    best: bool
    """Whether it was the best so far."""


class LearningCurve(msgspec.Struct, frozen=True, kw_only=True):
    """``validation.json``."""

    seeds: list[int]
    """Of the validation episodes, in the order of their costs."""
    baselines: dict[str, float]
    """Mean costs of hand-written schedulers on the same episodes."""
    validations: list[Validation]


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one training."""

    folder: Path
    config: TrainingConfig
    command: str
    versions: dict[str, str]
    curve: LearningCurve

    @property
    def best(self) -> Validation:
        """The validation of the model that was kept."""
        return min(self.curve.validations, key=lambda point: point.cost)


def read_record(folder: Path) -> Record:
    """The record in the folder of a training.

    Raises:
        InputError: it is none, or has no validation yet.
    """
    if not (folder / CONFIG).is_file():
        raise InputError(f"{folder}: is not the folder of a training, it has no {CONFIG}")
    path = folder / VALIDATION
    config = read_config(folder / CONFIG)
    command, versions = read_provenance(folder / CONFIG)
    try:
        curve = msgspec.json.decode(path.read_bytes(), type=LearningCurve)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except msgspec.DecodeError as error:
        raise InputError(f"{path}: not the learning curve of a training ({error})") from error
    if not curve.validations:
        raise InputError(f"{path}: has no validation yet")
    return Record(folder, config, command, versions, curve)

"""A training from start to end, or from its last checkpoint on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import torch

from gpusched_env.agents.policies.registry import RULE
from gpusched_env.agents.training.checkpoint import Checkpoints
from gpusched_env.agents.training.config import TrainingConfig, differences, read_config, write_config
from gpusched_env.agents.training.course import Course
from gpusched_env.agents.training.environments import training_env
from gpusched_env.agents.training.evolution import evolve
from gpusched_env.agents.training.files import replacing
from gpusched_env.agents.training.imitation import check_algorithm
from gpusched_env.agents.training.learning import learn
from gpusched_env.agents.training.record import LearningCurve, Validation
from gpusched_env.agents.training.results import BOARD, CHECKPOINTS, CONFIG, MADE, RESULT, VALIDATION
from gpusched_env.agents.training.tensorboard import RESULTS, TensorBoard
from gpusched_env.agents.training.validator import Validator, Watch
from gpusched_env.errors import InputError
from gpusched_env.scheduling.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training came to."""

    curve: list[Validation]
    timesteps: int
    train_s: float
    stopped: bool
    """Whether its watcher ended it early."""

    @property
    def best(self) -> Validation:
        """The validation of the model that was kept."""
        return min(self.curve, key=lambda point: point.cost)


def train(
    config: TrainingConfig,
    out: Path,
    *,
    teacher: Callable[[], Scheduler] | None = None,
    baselines: Mapping[str, float] | None = None,
    provenance: Mapping[str, Any] | None = None,
    resume: bool = False,
    trust: bool = False,
    watch: Watch | None = None,
    checkpoints: bool = True,
) -> Trained:
    """Train into the folder ``out``.

    It holds ``config.yaml``, ``best.zip`` and ``final.zip`` (models of stable-baselines3: the best in validation, the
    last), ``best.npz`` (the best one's policy, which runs without PyTorch), ``validation.json`` (the learning curve),
    ``result.json``, ``tensorboard/`` and ``checkpoints/``.

    Args:
        config: what to train.
        out: created if it is not there.
        teacher: makes the scheduler that ``config.imitation`` names; needed if it does.
        baselines: mean costs of other schedulers on the validation episodes, by name.
        provenance: what to note beside the configuration: versions, the command line.
        resume: go on from the last checkpoint in ``out``; without one, start. A training that was completed stays
            as it is, unless ``config.timesteps`` is larger now.
        trust: whether to go on from a checkpoint that somebody else wrote, which runs whatever code is in it.
        watch: is told of the progress, and can end the training.
        checkpoints: whether to write any.

    Raises:
        InputError: ``out`` holds another training, or cannot be written; an invalid configuration; a checkpoint
            of somebody else without ``trust``.
    """
    config = check_training(config, out, resume=resume, trust=trust)
    if config.imitation is not None and teacher is None:
        raise InputError(f"the training imitates {config.imitation.scheduler}, but was given no teacher")
    began_before = _prepare(out)
    torch.set_num_threads(config.threads)
    if began_before:
        done = _completed(config, out)
        if done is not None:
            return done
    write_config(config, dict(provenance or {}), out / CONFIG)
    kept = Checkpoints(out / CHECKPOINTS)
    steps = kept.steps() if began_before else []
    board = TensorBoard(out / BOARD, first_step=steps[-1] + 1 if steps else None)
    validator = Validator(config, out, board, baselines or {}, watch)
    command = str((provenance or {}).get("command", ""))
    course = Course(config, out, board, validator, kept, saves=checkpoints, resumes=bool(steps), command=command)
    try:
        if not steps:
            board.hyper_parameters(config, RESULTS if baselines else RESULTS[:2])
        timesteps = evolve(course) if config.algo in RULE else learn(course, teacher)
        trained = Trained(validator.curve, timesteps, validator.train_s, validator.stopped)
        _write_result(trained, dict(baselines or {}), out)
    finally:
        validator.close()
        board.close()
    return trained


def check_training(config: TrainingConfig, out: Path, *, resume: bool, trust: bool = False) -> TrainingConfig:
    """The configuration with everything filled in, if :func:`train` can begin; changes nothing.

    Raises:
        InputError: as :func:`train`.
    """
    config = config.checked()
    if config.imitation is not None:
        check_algorithm(config.algo)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; name a folder")
    if (out / CONFIG).exists():
        if not resume:
            raise InputError(f"{out} holds a training already; go on with --resume, or name another folder")
        other = [name for name in differences(read_config(out / CONFIG), config) if name != "timesteps"]
        if other:
            raise InputError(
                f"{out} holds a training with another {', '.join(other)}; resume it with the same settings"
            )
        if not trust:
            Checkpoints(out / CHECKPOINTS).check_author()
    elif (out / CHECKPOINTS).exists():
        raise InputError(f"{out} has {CHECKPOINTS} but no {CONFIG}; name another folder")
    training_env(config).close()
    return config


def _prepare(out: Path) -> bool:
    """Make the folder ready; whether a training began in it that is to go on."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from error
    if not (out / CONFIG).exists():
        return False
    if Checkpoints(out / CHECKPOINTS).steps():
        return True
    # Killed before the first checkpoint, there is nothing to go on from.
    for name in MADE:
        if (out / name).is_dir():
            shutil.rmtree(out / name)
        else:
            (out / name).unlink(missing_ok=True)
    return False


class _Result(msgspec.Struct, kw_only=True):
    """``result.json``."""

    timesteps: int
    train_s: float
    stopped: bool
    best: Validation
    final: Validation
    baselines: dict[str, float]


def _write_result(trained: Trained, baselines: dict[str, float], out: Path) -> None:
    result = _Result(
        timesteps=trained.timesteps,
        train_s=round(trained.train_s, 3),
        stopped=trained.stopped,
        best=trained.best,
        final=trained.curve[-1],
        baselines=baselines,
    )
    with replacing(out / RESULT) as partial:
        partial.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n")


def _completed(config: TrainingConfig, out: Path) -> Trained | None:
    """What a completed training came to; ``None`` if there is more to do."""
    if not (out / RESULT).exists():
        return None
    result = msgspec.json.decode((out / RESULT).read_bytes(), type=_Result)
    if result.timesteps < config.timesteps:
        (out / RESULT).unlink()
        return None
    curve = msgspec.json.decode((out / VALIDATION).read_bytes(), type=LearningCurve).validations
    return Trained(curve, result.timesteps, result.train_s, result.stopped)

"""Training: :func:`train` fills a folder, from the first step to the last, or from its last checkpoint on.

``config`` says what a training is, ``environments`` where it learns, ``imitation`` how it can begin, ``learning``,
``evolution`` and ``rollouts`` are the ways to go on, ``validation`` judges the policy meanwhile, and ``folder`` is what
is left.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpusched_env.agents.files import remove_partial, writing_to
from gpusched_env.agents.training.config import Training
from gpusched_env.agents.training.folder import (
    BOARD,
    CHECKPOINTS,
    CONFIG,
    MADE,
    RESULT,
    VALIDATION,
    Checkpoints,
    CurveEntry,
    LearningCurve,
    TrainingResult,
    check_kept,
    differences,
    read_config,
    write_config,
    write_json,
)
from gpusched_env.agents.training.trainer import trainer_of
from gpusched_env.errors import InputError
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.scheduling.contract import Scheduler

if TYPE_CHECKING:
    from gpusched_env.agents.training.progress import OnProgress

IMITATES = ("maskable-ppo", "ppo", "a2c")
"""Algorithms that can begin with an imitation: their policy gives a probability to each action of a single decision."""


@dataclass(frozen=True, slots=True)
class Trained:
    """What a training came to."""

    curve: list[CurveEntry]
    timesteps: int
    train_s: float
    stopped: bool
    """Whether its watcher ended it early."""

    @property
    def best(self) -> CurveEntry:
        """The validation of the model that was kept."""
        return min(self.curve, key=lambda point: point.cost)

    def result(self, baselines: dict[str, float]) -> TrainingResult:
        """What is written of it; ``baselines``: mean costs of other schedulers."""
        return TrainingResult(
            timesteps=self.timesteps,
            train_s=round(self.train_s, 3),
            stopped=self.stopped,
            best=self.best,
            final=self.curve[-1],
            baselines=baselines,
        )


def train(
    config: Training,
    out: Path,
    *,
    teacher: Callable[[], Scheduler] | None = None,
    baselines: Mapping[str, float] | None = None,
    provenance: Mapping[str, Any] | None = None,
    resume: bool = False,
    trust: bool = False,
    watch: OnProgress | None = None,
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
        baselines: mean costs of other schedulers on the validation episodes, by name; more may come while it runs.
            ``None``: there are none.
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
    config = check_training(config, out, resume=resume)
    if config.imitation is not None and teacher is None:
        raise InputError(f"the training imitates {config.imitation.scheduler}, but was given no teacher")
    with writing_to(out):
        out.mkdir(parents=True, exist_ok=True)
        state = None
        if (out / CONFIG).exists():
            done = _completed(config, out)
            if done is not None:
                return done
            state = _last_state(out, trust)
        return _carry_out(config, out, teacher, baselines, dict(provenance or {}), state, watch, checkpoints)


def _last_state(out: Path, trust: bool) -> dict[str, Any] | None:
    """State of the last checkpoint; ``None``, and an empty folder, where a kill came before the first one."""
    kept = Checkpoints(out / CHECKPOINTS)
    remove_partial(out)
    remove_partial(kept.folder)
    state = kept.last(trust=trust) if kept.steps() else None
    if state is None:
        _remove(out)
    elif (out / VALIDATION).exists():
        check_kept(out)
    return state


def _carry_out(
    config: Training,
    out: Path,
    teacher: Callable[[], Scheduler] | None,
    baselines: Mapping[str, float] | None,
    noted: dict[str, Any],
    state: dict[str, Any] | None,
    watch: OnProgress | None,
    saves: bool,
) -> Trained:
    """Train from a state, or from the start."""
    import torch

    from gpusched_env.agents.training.validation import TrainingRun

    (out / RESULT).unlink(missing_ok=True)
    torch.set_num_threads(config.threads)
    write_config(config, noted, out / CONFIG)
    trainer = trainer_of(config.scenario)
    course = TrainingRun(
        config,
        out,
        trainer.judge(config),
        command=str(noted.get("command", "")),
        baselines=baselines,
        watch=watch,
        saves=saves,
        state=state,
    )
    try:
        timesteps = trainer.learn(course, config, teacher, None if state is None else state["learner"])
        trained = Trained(course.curve, timesteps, course.train_s, course.stopped)
        write_json(trained.result(dict(baselines or {})), out / RESULT)
    finally:
        course.close()
    return trained


def check_training(config: Training, out: Path, *, resume: bool) -> Training:
    """The configuration with everything filled in, if :func:`train` can begin; changes nothing.

    Raises:
        InputError: as :func:`train`.
    """
    config = config.checked()
    if config.imitation is not None and config.algo not in IMITATES:
        raise InputError(f"{config.algo} cannot begin with an imitation; {', '.join(IMITATES)} can")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: is a file; name a folder")
    for folder in (out / BOARD, out / CHECKPOINTS):
        if os.path.lexists(folder) and not folder.is_dir():
            raise InputError(f"{folder}: is no folder; remove it, or name another folder for the training")
    if (out / CONFIG).exists():
        if not resume:
            raise InputError(f"{out} holds a training already; go on with --resume, or name another folder")
        found = differences(read_config(out / CONFIG), config)
        other = [f"{name} ({there} there, {now} now)" for name, there, now in found if name != "timesteps"]
        if other:
            raise InputError(
                f"{out} holds a training with another {', '.join(other)}; resume it with the same settings"
            )
    elif (out / CHECKPOINTS).exists():
        raise InputError(f"{out} has {CHECKPOINTS} but no {CONFIG}; name another folder")
    trainer_of(config.scenario).check(config)
    return config


def _completed(config: Training, out: Path) -> Trained | None:
    """What a completed training came to; ``None`` if there is more to do."""
    result_file, curve_file = out / RESULT, out / VALIDATION
    if not (result_file.exists() and curve_file.exists()):
        return None
    result = decoded(read_bytes(result_file), TrainingResult, f"{result_file}: not what a training wrote")
    curve = decoded(read_bytes(curve_file), LearningCurve, f"{curve_file}: not what a training wrote").validations
    if result.timesteps < config.timesteps:
        return None
    check_kept(out)
    return Trained(curve, result.timesteps, result.train_s, result.stopped)


def _remove(out: Path) -> None:
    for name in MADE:
        if (out / name).is_dir():
            shutil.rmtree(out / name)
        else:
            (out / name).unlink(missing_ok=True)

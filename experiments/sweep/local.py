"""A sweep on this machine with Optuna: what is tried, and what was found."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import optuna
from optuna.trial import FrozenTrial, Trial, TrialState
from rich.table import Table
from sqlalchemy.exc import SQLAlchemyError

from gpusched_env.agents.files import writing_to
from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.progress import TrainingProgress
from gpusched_env.errors import InputError

Suggest = Callable[[Trial], Any]


def _log(name: str, low: float, high: float) -> Suggest:
    return lambda trial: trial.suggest_float(name, low, high, log=True)


def _one_of(name: str, *values: int) -> Suggest:
    return lambda trial: trial.suggest_categorical(name, values)


def _gamma(trial: Trial) -> float:
    """How far ahead to look, in decisions, evenly on a logarithmic scale."""
    return 1.0 - 1.0 / trial.suggest_float("horizon_decisions", 100.0, 10_000.0, log=True)


_COMMON: dict[str, Suggest] = {"learning_rate": _log("learning_rate", 3e-5, 3e-3), "gamma": _gamma}
_ADVANTAGE: dict[str, Suggest] = {
    "ent_coef": _log("ent_coef", 1e-5, 1e-2),
    "gae_lambda": lambda trial: trial.suggest_float("gae_lambda", 0.9, 0.995),
}
_PPO: dict[str, Suggest] = {
    **_COMMON,
    **_ADVANTAGE,
    "n_steps": _one_of("n_steps", 128, 256, 512),
    "batch_size": _one_of("batch_size", 512, 1024, 2048, 4096),
    "n_epochs": lambda trial: trial.suggest_int("n_epochs", 2, 8),
    "clip_range": lambda trial: trial.suggest_float("clip_range", 0.1, 0.3),
}
SPACES: dict[str, dict[str, Suggest]] = {
    "maskable-ppo": _PPO,
    "ppo": _PPO,
    "recurrent-ppo": _PPO,
    "a2c": {**_COMMON, **_ADVANTAGE, "n_steps": _one_of("n_steps", 8, 16, 32, 64)},
    "dqn": {
        **_COMMON,
        "batch_size": _one_of("batch_size", 64, 128, 256, 512),
        "target_update_interval": _one_of("target_update_interval", 1_000, 5_000, 20_000),
        "exploration_fraction": lambda trial: trial.suggest_float("exploration_fraction", 0.05, 0.5),
    },
    "cma-es": {
        "population": _one_of("population", 12, 16, 24, 32),
        "episodes": _one_of("episodes", 1, 2, 4),
        "sigma": _log("sigma", 0.1, 1.0),
    },
    "rollouts": {
        "hold": _one_of("hold", 1, 2, 4),
        "horizon_us": _log("horizon_us", 5_000.0, 20_000.0),
        "penalty": _log("penalty", 30.0, 1_000.0),
    },
    "distillation": {
        "learning_rate": _log("learning_rate", 5e-4, 5e-3),
        "n_epochs": _one_of("n_epochs", 4, 8, 16),
        "margin": _log("margin", 0.01, 0.2),
    },
}
"""The hyper-parameters of each algorithm, and how an Optuna trial draws them."""


def suggested(config: TrainingConfig, fixed: frozenset[str], trial: Trial) -> TrainingConfig:
    """``config`` with hyper-parameters drawn by ``trial``, all but those that are ``fixed``."""
    drawn = {name: draw(trial) for name, draw in SPACES[config.algo].items() if name not in fixed}
    return msgspec.structs.replace(config, settings={**config.settings, **drawn}).checked()


class SweepTrial(msgspec.Struct, frozen=True, kw_only=True):
    """A trial of a sweep, and what came of it."""

    number: int
    state: str
    """``complete``, ``pruned`` or ``failed``."""
    cost: float | None
    """Lowest validation cost after the start."""
    drawn: dict[str, Any]
    """Hyper-parameters as they were drawn."""
    folder: str


OUTCOME = "sweep.json"
"""All trials, and the command."""
SHOWN = 10
"""Rows of the table."""


def table(tried: Sequence[SweepTrial]) -> Table:
    """The best completed trials, best first."""
    states = [trial.state for trial in tried]
    counts = ", ".join(f"{states.count(state)} {state}" for state in ("complete", "pruned", "failed"))
    found = Table("trial", "validation cost", "hyper-parameters", "folder", title=counts)
    done = [(trial.cost, trial) for trial in tried if trial.state == "complete" and trial.cost is not None]
    for cost, trial in sorted(done, key=lambda pair: pair[0])[:SHOWN]:
        drawn = [
            f"{name}={value:.3g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in trial.drawn.items()
        ]
        found.add_row(str(trial.number), f"{cost:.4g}", ", ".join(drawn), trial.folder)
    return found


STORAGE, STUDY, CONFIG = "sweep.db", "sweep", "training"
STARTUP_TRIALS = 5
"""Trials before the first one can be stopped early."""
_STATES = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned", TrialState.FAIL: "failed"}


def sweep(
    config: TrainingConfig,
    trials: int,
    out: Path,
    *,
    fixed: frozenset[str] = frozenset(),
    on_trial: Callable[[SweepTrial], None] | None = None,
) -> list[SweepTrial]:
    """Try hyper-parameters until there are ``trials`` in ``out``, those of earlier calls included.

    Args:
        config: all that is the same for every trial.
        trials: complete and pruned ones.
        out: has ``sweep.db`` and a folder for each trial.
        fixed: hyper-parameters that stay as ``config`` has them.
        on_trial: called after each.

    Returns:
        all trials so far. One that a kill cut short counts as failed, and is replaced.

    Raises:
        InputError: ``out`` holds a sweep of another training, or a damaged one, which stays as it is.
    """
    with writing_to(out):
        out.mkdir(parents=True, exist_ok=True)
    # What it warns of ends the sweep with an error that says so.
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as folder:
            # To look at a database is to change it: first at a copy, with what a kill has left to be undone.
            for file in out.glob(f"{STORAGE}*"):
                shutil.copy(file, folder)
            _study(config, out, Path(folder))
        study = _study(config, out, out)
    except InputError:
        raise
    except Exception as error:  # Whatever a damaged database leads to.
        raise InputError(f"{out / STORAGE}: no sweep that can be gone on with ({_first_line(error)})") from error
    finished = (TrialState.COMPLETE, TrialState.PRUNED)
    while len(study.get_trials(deepcopy=False, states=finished)) < trials:
        try:
            study.optimize(lambda trial: _run(trial, config, fixed, out), n_trials=1)
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            raise InputError(f"{out / STORAGE}: cannot be written ({_first_line(error)})") from error
        if on_trial is not None:
            on_trial(_tried(study.trials[-1], out))
    return [_tried(trial, out) for trial in study.trials]


def _first_line(error: Exception) -> str:
    """SQLAlchemy's messages go on with the SQL."""
    return str(error).partition("\n")[0]


def _study(config: TrainingConfig, out: Path, folder: Path) -> optuna.Study:
    """The sweep in ``out``, its database in ``folder``, its trials all at an end; a new one if there is none."""
    storage = f"sqlite:///{(folder / STORAGE).resolve()}"
    before = _trials_before(config, out, storage)
    study = optuna.create_study(
        study_name=STUDY,
        storage=storage,
        load_if_exists=True,
        # A sweep that goes on must not draw again what it drew first.
        sampler=optuna.samplers.TPESampler(seed=config.seed + before),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS),
    )
    study.set_user_attr(CONFIG, msgspec.json.decode(msgspec.json.encode(config)))
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)
    for trial in study.trials:
        _tried(trial, out)
    return study


def _trials_before(config: TrainingConfig, out: Path, storage: str) -> int:
    """How many trials an earlier call has left; they must be of the same sweep."""
    if STUDY not in optuna.get_all_study_names(storage):
        return 0
    study = optuna.load_study(study_name=STUDY, storage=storage)
    stored, given = study.user_attrs.get(CONFIG, {}), msgspec.json.decode(msgspec.json.encode(config))
    other = [name for name, value in given.items() if stored.get(name) != value]
    if other:
        raise InputError(f"{out}: holds a sweep with another {', '.join(other)}; name another folder")
    return len(study.trials)


def _run(trial: Trial, config: TrainingConfig, fixed: frozenset[str], out: Path) -> float:
    def watch(progress: TrainingProgress) -> bool:
        point = progress.validation
        if point is None or point.timesteps == 0:
            return True
        trial.report(point.cost, point.timesteps)
        return not trial.should_prune()

    trained = train(
        suggested(config, fixed, trial), out / "trials" / f"{trial.number:04d}", watch=watch, checkpoints=False
    )
    cost = min(point.cost for point in trained.curve if point.timesteps > 0)
    trial.set_user_attr("cost", cost)
    if trained.stopped:
        raise optuna.TrialPruned
    return cost


def _tried(trial: FrozenTrial, out: Path) -> SweepTrial:
    return SweepTrial(
        number=trial.number,
        state=_STATES[trial.state],
        cost=trial.user_attrs.get("cost"),
        drawn=trial.params,
        folder=str(out / "trials" / f"{trial.number:04d}"),
    )

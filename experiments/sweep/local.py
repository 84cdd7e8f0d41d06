"""A sweep on this machine: Optuna's TPE, trials that fall behind the median are stopped, everything kept in SQLite."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import optuna
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from gpusched_env.agents.files import writing_to
from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import TrainingConfig
from gpusched_env.agents.training.validation import Progress
from gpusched_env.errors import InputError
from gpusched_env.experiments.sweep.space import Tried, suggested

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
    on_trial: Callable[[Tried], None] | None = None,
) -> list[Tried]:
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
    def watch(progress: Progress) -> bool:
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


def _tried(trial: FrozenTrial, out: Path) -> Tried:
    return Tried(
        number=trial.number,
        state=_STATES[trial.state],
        cost=trial.user_attrs.get("cost"),
        drawn=trial.params,
        folder=str(out / "trials" / f"{trial.number:04d}"),
    )

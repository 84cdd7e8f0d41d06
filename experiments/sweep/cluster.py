"""A sweep on a Ray cluster: the same search, trials on all its machines."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import msgspec
from ray import tune
from ray.tune.schedulers import MedianStoppingRule
from ray.tune.search.optuna import OptunaSearch

from gpusched_env.agents.training import train
from gpusched_env.agents.training.config import TrainingConfig, config_of
from gpusched_env.agents.training.progress import TrainingProgress
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.ray_cluster import connected
from gpusched_env.experiments.sweep.local import SPACES, STARTUP_TRIALS, SweepTrial

NAME = "ray"
"""Folder of Ray Tune's files."""
TRIALS = "trials"
"""Folder of the trainings, by Ray's name of the trial."""
DRAWN = "drawn."
"""Prefix of the names of hyper-parameters in a trial's configuration, which has what Optuna drew as well."""


def sweep(
    config: TrainingConfig,
    trials: int,
    out: Path,
    address: str,
    *,
    fixed: frozenset[str] = frozenset(),
    trust: bool = False,
) -> list[SweepTrial]:
    """Try hyper-parameters on a cluster; goes on with what is in ``out``.

    Args:
        config: all that is the same for every trial.
        trials: how many.
        out: folder that all machines of the cluster share.
        address: of the cluster (``host:port``, ``auto``, ``ray://...``), or ``local`` for one of this machine.
        fixed: hyper-parameters that stay as ``config`` has them.
        trust: whether to go on with Ray's files in ``out``, which runs whatever code is in them.

    Raises:
        InputError: there is no cluster at ``address``, or a sweep in ``out`` that is not trusted.
    """
    if (out / NAME).exists() and not trust:
        raise InputError(
            f"{out / NAME}: Ray goes on with a sweep by running what is in its files. If you trust whoever wrote them "
            "(such as yourself), say so: --trust (in Python trust=True)"
        )
    with connected(address):
        return _sweep(config, trials, out.resolve(), fixed)


def _sweep(config: TrainingConfig, trials: int, out: Path, fixed: frozenset[str]) -> list[SweepTrial]:
    names = tuple(name for name in SPACES[config.algo] if name not in fixed)
    space = functools.partial(_draw, config.algo, names)
    trainable = functools.partial(_train, msgspec.to_builtins(config), out / TRIALS)
    storage = out / NAME
    resources = tune.with_resources(trainable, {"cpu": config.threads})
    if tune.Tuner.can_restore(storage):
        tuner = tune.Tuner.restore(str(storage), trainable=resources, resume_unfinished=True)
    else:
        tuner = tune.Tuner(
            resources,
            tune_config=tune.TuneConfig(
                metric="cost",
                mode="min",
                num_samples=trials,
                search_alg=OptunaSearch(space=space, metric="cost", mode="min", seed=config.seed),
                scheduler=MedianStoppingRule(
                    time_attr="timesteps", grace_period=1, min_samples_required=STARTUP_TRIALS
                ),
            ),
            run_config=tune.RunConfig(name=NAME, storage_path=str(out), verbose=0),
        )
    results = tuner.fit()
    return [_tried(number, results[number], config.timesteps, out / TRIALS) for number in range(len(results))]


def _draw(algo: str, names: tuple[str, ...], trial: Any) -> dict[str, Any]:
    """Adds to the trial's configuration what the local search draws."""
    return {f"{DRAWN}{name}": SPACES[algo][name](trial) for name in names}


def _train(plain: dict[str, Any], folder: Path, drawn: dict[str, Any]) -> None:
    """One trial, in a process of the cluster."""
    given = {name: value for name, value in plain.items() if name != "settings"}
    trial = tune.get_context().get_trial_id()
    config = config_of({**given, **plain["settings"], **_of(drawn)})
    # A trial that Ray runs again, after a machine was lost, finds its folder there, written on that machine.
    train(config, folder / str(trial), watch=_report, resume=True, trust=True)


def _of(drawn: dict[str, Any]) -> dict[str, Any]:
    """Hyper-parameters in a trial's configuration."""
    return {name.removeprefix(DRAWN): value for name, value in drawn.items() if name.startswith(DRAWN)}


def _report(progress: TrainingProgress) -> None:
    point = progress.validation
    if point is not None and point.timesteps > 0:
        tune.report({"cost": point.cost, "timesteps": point.timesteps})


def _tried(number: int, result: Any, timesteps: int, folder: Path) -> SweepTrial:
    trial = str((result.metrics or {}).get("trial_id"))
    history = result.metrics_dataframe
    cost = None if history is None else float(history["cost"].min())
    if result.error is not None or cost is None:
        state = "failed"
    else:
        state = "complete" if result.metrics["timesteps"] >= timesteps else "pruned"
    return SweepTrial(number=number, state=state, cost=cost, drawn=_of(result.config), folder=str(folder / trial))

"""The next options to try for a scheduler: Optuna's tree-structured Parzen estimator, told of all trials so far."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial

from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.baselines.tuning import Trial

Drawn = dict[str, float | str]
"""Options as :class:`~gpusched_env.baselines.tuning.Trial` keeps them."""
RANDOM_SHARE = 0.4
"""Of the budget: trials at random before the estimator is asked."""


def next_trial(scheduler: str, ranges: Ranges, trials: Sequence[Trial], budget: int, seed: int) -> Drawn:
    """Options to try, as :class:`~gpusched_env.baselines.tuning.Trial` keeps them; the same after the same trials.

    Args:
        scheduler: name; searches of different ones draw apart from each other.
        ranges: what is searched.
        trials: so far; the first has the defaults.
        budget: trials in all.
        seed: of the search.
    """
    distributions = {name: _distribution(space) for name, space in ranges.items()}
    state = [seed, zlib.crc32(scheduler.encode()), len(trials)]
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        # Of options that matter together; Optuna calls it experimental.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=int(np.random.SeedSequence(state).generate_state(1)[0]),
            n_startup_trials=round(RANDOM_SHARE * budget),
            multivariate=True,
        )
    study = optuna.create_study(sampler=sampler)
    for trial in trials:
        if trial.drawn.keys() == ranges.keys():
            study.add_trial(create_trial(params=dict(trial.drawn), distributions=distributions, value=trial.cost))
    drawn = study.ask(distributions).params
    return {name: _rounded(value, ranges[name]) for name, value in drawn.items()}


def defaults_in(ranges: Ranges, defaults: Mapping[str, Any]) -> Drawn:
    """The defaults as a trial keeps them; empty if one of them is outside of its range."""
    if not all(space.holds(defaults[name]) for name, space in ranges.items()):
        return {}
    return {
        name: _text(defaults[name]) if isinstance(space, Choice) else defaults[name] for name, space in ranges.items()
    }


def spec_of(scheduler: str, drawn: Drawn) -> str:
    """The scheduler with these options, as the command line takes it."""
    options = ",".join(f"{name}={value}" for name, value in drawn.items())
    return f"{scheduler}({options})" if options else scheduler


def _distribution(space: Range | Choice) -> BaseDistribution:
    if isinstance(space, Choice):
        return CategoricalDistribution([_text(value) for value in space.values])
    if isinstance(space.low, int) and isinstance(space.high, int):
        return IntDistribution(space.low, space.high, log=space.log)
    return FloatDistribution(space.low, space.high, log=space.log)


def _text(value: object) -> str:
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _rounded(value: float | str, space: Range | Choice) -> float | str:
    """Three digits do, within the range."""
    if isinstance(space, Choice) or not isinstance(value, float):
        return value
    return min(max(float(f"{value:.3g}"), space.low), space.high)

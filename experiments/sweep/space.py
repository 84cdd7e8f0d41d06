"""What a sweep tries, ranges of the hyper-parameters that matter most, by algorithm; and what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from optuna.trial import Trial
from rich.table import Table

from gpusched_env.agents.training.config import TrainingConfig

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
"""By algorithm: hyper-parameters, and how an Optuna trial draws them."""


def suggested(config: TrainingConfig, fixed: frozenset[str], trial: Trial) -> TrainingConfig:
    """``config`` with hyper-parameters drawn by ``trial``, all but those that are ``fixed``."""
    drawn = {name: draw(trial) for name, draw in SPACES[config.algo].items() if name not in fixed}
    return msgspec.structs.replace(config, settings={**config.settings, **drawn}).checked()


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One trial."""

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


def table(tried: Sequence[Tried]) -> Table:
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

"""Scenarios that trainings of the agent are validated on: drawn from far behind those that it learns from."""

from __future__ import annotations

from collections.abc import Sequence

from gpusched_env.agents.training.environments import VALIDATION_SEED
from gpusched_env.games.drawn.environment.env import DRAWS
from gpusched_env.games.drawn.problems.splits import TRAIN


def validation_names(seeds: Sequence[int]) -> list[str]:
    """The scenario of each seed of a validation."""
    return [f"{TRAIN}-{DRAWS + seed - VALIDATION_SEED}" for seed in seeds]

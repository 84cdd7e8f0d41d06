"""What a training of the rule of forms is."""

from __future__ import annotations

from typing import ClassVar, Literal

from gpusched_env.agents.training.config import Count, Positive, Values
from gpusched_env.agents.training.game_training import GameTraining


class FormSettings(Values, frozen=True, kw_only=True):
    """Of the fit (:mod:`gpusched_env.games.task_queues.agents.training`)."""

    episodes: Count = 50
    """Random problems that a round runs in every form."""
    sharpness: Positive = 3.0
    """How sharply forms are told apart: a factor on their values."""
    penalty: Positive = 0.01
    """On the mean square of the weights, beside logarithms of costs."""
    steps: Count = 1000
    """Of gradient descent, in each round from the beginning."""


class FormTraining(GameTraining, frozen=True, kw_only=True):
    """One training of the rule of forms, on random graphs."""

    RULE: ClassVar[str] = "rule of forms"
    SETTINGS: ClassVar[type[Values]] = FormSettings

    scenario: Literal["TaskQueue"] = "TaskQueue"
    algo: Literal["every-form"] = "every-form"
    policy: Literal["forms"] = "forms"
    timesteps: Count = 24_000
    """Forms tried."""
    validate_every: Count = 2_400
    validation_seeds: Count = 128
    checkpoint_every: Count = 2_400

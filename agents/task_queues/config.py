"""What a training of the rule of forms is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from gpusched_env.agents.training.config import Count, Positive
from gpusched_env.agents.training.game_training import GameSettings, GameTraining


class FormSettings(GameSettings, frozen=True, kw_only=True):
    """CMA-ES on the rule of forms (:mod:`gpusched_env.agents.task_queues.rule`); episodes are random problems."""

    population: Annotated[int, Meta(ge=4)] = 24
    episodes: Count = 32
    sigma: Positive = 0.1


class FormTraining(GameTraining, frozen=True, kw_only=True):
    """One training of the rule of forms, on random graphs."""

    RULE: ClassVar[str] = "rule of forms"
    SETTINGS: ClassVar[type[GameSettings]] = FormSettings

    scenario: Literal["TaskQueue"] = "TaskQueue"
    policy: Literal["forms"] = "forms"
    timesteps: Count = 500_000
    validate_every: Count = 25_000
    validation_seeds: Count = 64
    checkpoint_every: Count = 50_000

"""Trainings of the rule of forms: what one is, and how it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal

from gpusched_env.agents.training.config import CheckedStruct, Count, Positive
from gpusched_env.agents.training.trainer import GameTraining, RuleTrainer, Trainer
from gpusched_env.games.task_queues.agents.rule import FormPolicyInfo

if TYPE_CHECKING:
    from gpusched_env.games.task_queues.training import FormJudge, FormLearner


class FormSettings(CheckedStruct, frozen=True, kw_only=True):
    """Settings of the fit (:mod:`gpusched_env.games.task_queues.training`)."""

    episodes: Count = 50
    """Random problems that a round runs in every form."""
    sharpness: Positive = 3.0
    """How sharply forms are told apart: a factor on their values."""
    penalty: Positive = 0.01
    """Penalty on the mean square of the weights, beside logarithms of costs."""
    steps: Count = 1000
    """Steps of gradient descent, in each round from the beginning."""


class FormTraining(GameTraining, frozen=True, kw_only=True):
    """One training of the rule of forms, on random graphs."""

    RULE: ClassVar[str] = "rule of forms"
    SETTINGS: ClassVar[type[CheckedStruct]] = FormSettings

    scenario: Literal["TaskQueue"] = "TaskQueue"
    algo: Literal["every-form"] = "every-form"
    policy: Literal["forms"] = "forms"
    timesteps: Count = 24_000
    """Number of forms tried."""
    validate_every: Count = 2_400
    validation_seeds: Count = 128
    checkpoint_every: Count = 2_400


def _parts() -> tuple[type[FormJudge], type[FormLearner]]:
    from gpusched_env.games.task_queues.training import FormJudge, FormLearner

    return FormJudge, FormLearner


TRAINER: Final[Trainer[FormTraining]] = RuleTrainer(config=FormTraining, read=FormPolicyInfo.read, parts=_parts)

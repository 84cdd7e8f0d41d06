"""Trainings of the rule of forms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpusched_env.agents.training.trainer import RuleTrainer, Trainer
from gpusched_env.games.task_queues.agents.config import FormTraining
from gpusched_env.games.task_queues.agents.policy_file import read_form_policy

if TYPE_CHECKING:
    from gpusched_env.agents.training.validation import Course, Judge


def _judge(config: FormTraining) -> Judge:
    from gpusched_env.games.task_queues.training import FormJudge

    return FormJudge(config)


def _learn(course: Course, config: FormTraining, state: dict[str, Any] | None) -> int:
    from gpusched_env.games.task_queues.training import learn_forms

    return learn_forms(course, config, state)


TRAINER: Final[Trainer[FormTraining]] = RuleTrainer(
    config=FormTraining, read=read_form_policy, judging=_judge, learning=_learn
)

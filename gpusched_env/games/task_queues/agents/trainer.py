"""Trainings of the rule of forms."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.agents.training.trainer import Trainer
from gpusched_env.games.task_queues.agents.config import FormTraining
from gpusched_env.games.task_queues.agents.policy_file import read_form_policy
from gpusched_env.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from gpusched_env.agents.training.validation import Course, Judge


class FormTrainer:
    """See :class:`gpusched_env.agents.training.trainer.Trainer`."""

    config = FormTraining

    def check(self, config: FormTraining) -> None:
        """Whatever could be wrong is found when the configuration is made."""

    def judge(self, config: FormTraining) -> Judge:
        from gpusched_env.games.task_queues.agents.training import FormJudge

        return FormJudge(config)

    def learn(
        self,
        course: Course,
        config: FormTraining,
        teacher: Callable[[], Scheduler] | None,
        state: dict[str, Any] | None,
    ) -> int:
        from gpusched_env.games.task_queues.agents.training import FormLearner

        learner = FormLearner(course, config, state)
        learner.run()
        return learner.timesteps

    def check_policy(self, path: Path, name: str) -> None:
        read_form_policy(path)


TRAINER: Final[Trainer[FormTraining]] = FormTrainer()

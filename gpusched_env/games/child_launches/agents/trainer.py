"""Trainings of the launch rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.agents.training.trainer import Trainer
from gpusched_env.games.child_launches.agents.config import LaunchTraining
from gpusched_env.games.child_launches.agents.policy_file import read_launch_policy
from gpusched_env.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from gpusched_env.agents.training.validation import Course, Judge


class LaunchTrainer:
    """See :class:`gpusched_env.agents.training.trainer.Trainer`."""

    config = LaunchTraining

    def check(self, config: LaunchTraining) -> None:
        """Whatever could be wrong is found when the configuration is made."""

    def judge(self, config: LaunchTraining) -> Judge:
        from gpusched_env.games.child_launches.training import LaunchJudge

        return LaunchJudge(config)

    def learn(
        self,
        course: Course,
        config: LaunchTraining,
        teacher: Callable[[], Scheduler] | None,
        state: dict[str, Any] | None,
    ) -> int:
        from gpusched_env.games.child_launches.training import evolve_launches

        return evolve_launches(course, config, state)

    def check_policy(self, path: Path, name: str) -> None:
        read_launch_policy(path)


TRAINER: Final[Trainer[LaunchTraining]] = LaunchTrainer()

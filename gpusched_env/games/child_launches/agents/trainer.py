"""Trainings of the launch rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpusched_env.agents.training.trainer import RuleTrainer, Trainer
from gpusched_env.games.child_launches.agents.config import LaunchTraining
from gpusched_env.games.child_launches.agents.policy_file import read_launch_policy

if TYPE_CHECKING:
    from gpusched_env.agents.training.validation import Course, Judge


def _judge(config: LaunchTraining) -> Judge:
    from gpusched_env.games.child_launches.training import LaunchJudge

    return LaunchJudge(config)


def _learn(course: Course, config: LaunchTraining, state: dict[str, Any] | None) -> int:
    from gpusched_env.games.child_launches.training import evolve_launches

    return evolve_launches(course, config, state)


TRAINER: Final[Trainer[LaunchTraining]] = RuleTrainer(
    config=LaunchTraining, read=read_launch_policy, judging=_judge, learning=_learn
)

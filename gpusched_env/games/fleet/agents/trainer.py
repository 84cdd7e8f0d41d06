"""Trainings of the fleet rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from gpusched_env.agents.training.trainer import RuleTrainer, Trainer
from gpusched_env.games.fleet.agents.config import FleetTraining
from gpusched_env.games.fleet.agents.policy_file import read_fleet_policy

if TYPE_CHECKING:
    from gpusched_env.agents.training.validation import Course, Judge


def _judge(config: FleetTraining) -> Judge:
    from gpusched_env.games.fleet.training import FleetJudge

    return FleetJudge(config)


def _learn(course: Course, config: FleetTraining, state: dict[str, Any] | None) -> int:
    from gpusched_env.games.fleet.training import FleetEvolution

    evolution = FleetEvolution(course, config, state)
    evolution.run()
    return evolution.timesteps


TRAINER: Final[Trainer[FleetTraining]] = RuleTrainer(
    config=FleetTraining, read=read_fleet_policy, judging=_judge, learning=_learn
)

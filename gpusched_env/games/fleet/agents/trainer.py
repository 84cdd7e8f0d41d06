"""Trainings of the fleet rule."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpusched_env.agents.training.trainer import Trainer
from gpusched_env.games.fleet.agents.config import FleetTraining
from gpusched_env.games.fleet.agents.policy_file import read_fleet_policy
from gpusched_env.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from gpusched_env.agents.training.validation import Course, Judge


class FleetTrainer:
    """See :class:`gpusched_env.agents.training.trainer.Trainer`."""

    config = FleetTraining

    def check(self, config: FleetTraining) -> None:
        """Whatever could be wrong is found when the configuration is made."""

    def judge(self, config: FleetTraining) -> Judge:
        from gpusched_env.games.fleet.training import FleetJudge

        return FleetJudge(config)

    def learn(
        self,
        course: Course,
        config: FleetTraining,
        teacher: Callable[[], Scheduler] | None,
        state: dict[str, Any] | None,
    ) -> int:
        from gpusched_env.games.fleet.training import FleetEvolution

        evolution = FleetEvolution(course, config, state)
        evolution.run()
        return evolution.timesteps

    def check_policy(self, path: Path, name: str) -> None:
        read_fleet_policy(path)


TRAINER: Final[Trainer[FleetTraining]] = FleetTrainer()

"""Trainings of task queues: there are none by command yet; its environment is trained on as any of Gymnasium's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from gpusched_env.agents.training.config import Training
from gpusched_env.agents.training.trainer import Trainer
from gpusched_env.errors import InputError
from gpusched_env.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from gpusched_env.agents.training.validation import Course, Judge

NAME: Final = "TaskQueue"


def no_training() -> NoReturn:
    """Say so.

    Raises:
        InputError: always.
    """
    raise InputError(
        f"{NAME} has no training by command: learn on gymnasium.make('gpusched_env:gpusched/{NAME}-v0') with a library "
        "of your own, as docs/training-in-one-file.md does"
    )


class NoTrainer:
    """See :class:`gpusched_env.agents.training.trainer.Trainer`."""

    @property
    def config(self) -> type[Any]:
        no_training()

    def check(self, config: Training) -> None:
        no_training()

    def judge(self, config: Training) -> Judge:
        no_training()

    def learn(
        self, course: Course, config: Training, teacher: Callable[[], Scheduler] | None, state: dict[str, Any] | None
    ) -> int:
        no_training()

    def check_policy(self, path: Path, name: str) -> None:
        no_training()


TRAINER: Final[Trainer[Any]] = NoTrainer()

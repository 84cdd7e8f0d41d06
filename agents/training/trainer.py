"""What a training asks of the game that it is for; the rest of a training is the same for all games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from gpusched_env.agents.training.config import Training
from gpusched_env.scenarios.games import load_room, rooms_of
from gpusched_env.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from gpusched_env.agents.training.validation import Course, Judge

C = TypeVar("C", bound=Training)


class Trainer(Protocol[C]):
    """How policies of a game are trained, judged and recognised."""

    @property
    def config(self) -> type[C]:
        """The kind of its configurations."""
        ...

    def check(self, config: C) -> None:
        """Find out whether a training can begin.

        Raises:
            InputError: why it cannot.
        """
        ...

    def judge(self, config: C) -> Judge:
        """Plays the episodes of validations."""
        ...

    def learn(
        self, course: Course, config: C, teacher: Callable[[], Scheduler] | None, state: dict[str, Any] | None
    ) -> int:
        """Train until the configured number of decisions is reached, or the watcher ends it; returns their number.

        ``state``: of the learner in the checkpoint to go on from.
        """
        ...

    def check_policy(self, path: Path, name: str) -> None:
        """Find out whether the policy in a file can play what ``name`` names.

        Raises:
            InputError: why it cannot.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class RuleTrainer(Generic[C]):
    """The :class:`Trainer` of a game whose policies are the weights of one rule."""

    config: type[C]
    read: Callable[[Path], object]
    """Reads the file of a policy, checked."""
    judging: Callable[[C], Judge]
    """Plays the episodes of validations."""
    learning: Callable[[Course, C, dict[str, Any] | None], int]
    """Trains, by course, configuration and state, and gives the number of decisions."""

    def check(self, config: C) -> None:
        """Whatever could be wrong is found when the configuration is made."""

    def judge(self, config: C) -> Judge:
        return self.judging(config)

    def learn(
        self, course: Course, config: C, teacher: Callable[[], Scheduler] | None, state: dict[str, Any] | None
    ) -> int:
        return self.learning(course, config, state)

    def check_policy(self, path: Path, name: str) -> None:
        self.read(path)


def trainer_of(problem: object) -> Trainer[Any]:
    """That of a game's name, or of a scenario or its name."""
    found: Trainer[Any] = load_room(rooms_of(problem).trainer)
    return found

"""What a training asks of the game that it is for, and the configuration of trainings of games that are no
scenarios.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Protocol, Self, TypeVar

import msgspec
from msgspec import Meta

from gpusched_env.agents.training.config import CheckedStruct, Count, Positive, Training
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scenarios.games import load_room, rooms_of
from gpusched_env.scheduling.contract import Scheduler

if TYPE_CHECKING:
    from gpusched_env.agents.training.validation import Judge, TrainingRun


C = TypeVar("C", bound=Training)


class RuleLearner(Protocol):
    """What learns by itself, by an algorithm of this package."""

    @property
    def timesteps(self) -> int:
        """Decisions so far."""
        ...

    def run(self) -> None:
        """Go on until the configured number of decisions is reached, or the watcher ends it."""


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
        self, course: TrainingRun, config: C, teacher: Callable[[], Scheduler] | None, state: dict[str, Any] | None
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
    parts: Callable[[], tuple[Callable[[C], Judge], Callable[[TrainingRun, C, dict[str, Any] | None], RuleLearner]]]
    """Imports what makes the judge and, for a course and the state in a checkpoint, the learner."""

    def check(self, config: C) -> None:
        """Whatever could be wrong is found when the configuration is made."""

    def judge(self, config: C) -> Judge:
        judge, _ = self.parts()
        return judge(config)

    def learn(
        self, course: TrainingRun, config: C, teacher: Callable[[], Scheduler] | None, state: dict[str, Any] | None
    ) -> int:
        _, begin = self.parts()
        learner = begin(course, config, state)
        learner.run()
        return learner.timesteps

    def check_policy(self, path: Path, name: str) -> None:
        self.read(path)


def trainer_of(problem: object) -> Trainer[Any]:
    """The trainer for a game's name, or for a scenario or its name."""
    found: Trainer[Any] = load_room(rooms_of(problem).trainer)
    return found


class GameSettings(CheckedStruct, frozen=True, kw_only=True):
    """CMA-ES on the rule of a game (:mod:`gpusched_env.agents.training.evolution`)."""

    population: Annotated[int, Meta(ge=4)] = 16
    """Candidates of a generation."""
    episodes: Count = 12
    """Random problems that each candidate plays; others in the next generation."""
    sigma: Positive = 0.5
    """Standard deviation of the weights at first."""


class GameTraining(Training, frozen=True, kw_only=True):
    """One training of a game's rule, on random problems; each game has a kind of its own."""

    RULE: ClassVar[str]
    """What is searched, in words."""
    SETTINGS: ClassVar[type[CheckedStruct]] = GameSettings

    scenario: str
    """The game's name."""
    policy: str
    algo: str = "cma-es"
    imitation: None = None

    def checked(self) -> Self:
        try:
            valid = msgspec.convert(msgspec.to_builtins(self), type(self))
            given = msgspec.convert(valid.settings, self.SETTINGS)
        except msgspec.ValidationError as error:
            raise InputError(f"training: {error}") from error
        return msgspec.structs.replace(valid, settings=msgspec.to_builtins(given))


T = TypeVar("T", bound=GameTraining)


def game_training_of(kind: type[T], values: dict[str, Any]) -> T:
    """A configuration from plain values; hyper-parameters may stand beside the other fields.

    Raises:
        InputError: unknown name or invalid value.
    """
    own, known = kind.__struct_fields__, kind.SETTINGS.__struct_fields__
    for name in values:
        if name not in (*own, *known):
            raise InputError(
                f"training of the {kind.RULE} has no setting {name!r}; {did_you_mean(name, [*own, *known])}"
            )
    plain = {name: value for name, value in values.items() if name in own}
    plain["settings"] = {**plain.get("settings", {}), **{n: v for n, v in values.items() if n in known}}
    try:
        return msgspec.convert(plain, kind).checked()
    except msgspec.ValidationError as error:
        raise InputError(f"training: {error}") from error

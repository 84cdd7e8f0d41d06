"""Trainings of games that are no scenarios: the weights of a rule, on random problems."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self, TypeVar

import msgspec
from msgspec import Meta

from gpusched_env.agents.training.config import Count, Positive, Seed, Values
from gpusched_env.errors import InputError, did_you_mean


class GameSettings(Values, frozen=True, kw_only=True):
    """CMA-ES on the rule of a game (:mod:`gpusched_env.agents.training.evolution`)."""

    population: Annotated[int, Meta(ge=4)] = 16
    """Candidates of a generation."""
    episodes: Count = 12
    """Random problems that each candidate plays; others in the next generation."""
    sigma: Positive = 0.5
    """Standard deviation of the weights at first."""


class GameTraining(Values, frozen=True, kw_only=True):
    """One training of a game's rule, on random problems; each game has a kind of its own."""

    RULE: ClassVar[str]
    """What is searched, in words."""
    SETTINGS: ClassVar[type[Values]] = GameSettings

    scenario: str
    """The game's name."""
    policy: str
    algo: str = "cma-es"
    timesteps: Count
    """Decisions; the last generation or round is completed."""
    seed: Seed = 0
    threads: Count = 1
    """Candidates that play at a time; the result does not depend on it."""
    settings: dict[str, Any] = {}  # noqa: RUF012  # A struct copies its default.
    """Fields of ``SETTINGS``."""
    imitation: None = None
    validate_every: Count
    validation_seeds: Count
    """Random problems of a validation."""
    checkpoint_every: Count

    @property
    def name(self) -> str:
        """Of what is trained for."""
        return self.scenario

    def checked(self) -> Self:
        """This configuration with all hyper-parameters filled in.

        Raises:
            InputError: a value that it cannot have.
        """
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

"""What a training of the fleet rule is."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpusched_env.agents.training.config import Count, Positive, Seed, Values
from gpusched_env.errors import InputError, did_you_mean


class FleetSettings(Values, frozen=True, kw_only=True):
    """CMA-ES on the fleet rule (:mod:`gpusched_env.agents.fleet.rule`)."""

    population: Annotated[int, Meta(ge=4)] = 20
    """Candidates of a generation."""
    episodes: Count = 12
    """Random days that each candidate plays; others in the next generation."""
    sigma: Positive = 0.5
    """Standard deviation of the weights at first."""


class FleetTraining(Values, frozen=True, kw_only=True):
    """One training of the fleet rule, on random days."""

    scenario: Literal["Fleet"] = "Fleet"
    algo: Literal["cma-es"] = "cma-es"
    policy: Literal["fleet"] = "fleet"
    timesteps: Count = 30_000_000
    """Decisions of all candidates; the last generation is completed."""
    seed: Seed = 0
    threads: Count = 1
    """Candidates that play at a time; the result does not depend on it."""
    settings: dict[str, Any] = {}  # noqa: RUF012  # A struct copies its default.
    """Fields of :class:`FleetSettings`."""
    imitation: None = None
    validate_every: Count = 3_000_000
    validation_seeds: Count = 32
    """Random days of a validation."""
    checkpoint_every: Count = 3_000_000

    @property
    def name(self) -> str:
        """Of what is trained for."""
        return self.scenario

    def checked(self) -> FleetTraining:
        """This configuration with all hyper-parameters filled in.

        Raises:
            InputError: a value that it cannot have.
        """
        try:
            valid = msgspec.convert(msgspec.to_builtins(self), FleetTraining)
            given = msgspec.convert(valid.settings, FleetSettings)
        except msgspec.ValidationError as error:
            raise InputError(f"training: {error}") from error
        return msgspec.structs.replace(valid, settings=msgspec.to_builtins(given))


def fleet_training_of(values: dict[str, Any]) -> FleetTraining:
    """A configuration from plain values; hyper-parameters may stand beside the other fields.

    Raises:
        InputError: unknown name or invalid value.
    """
    own, known = FleetTraining.__struct_fields__, FleetSettings.__struct_fields__
    for name in values:
        if name not in (*own, *known):
            raise InputError(
                f"training of the fleet rule has no setting {name!r}; {did_you_mean(name, [*own, *known])}"
            )
    plain = {name: value for name, value in values.items() if name in own}
    plain["settings"] = {**plain.get("settings", {}), **{n: v for n, v in values.items() if n in known}}
    try:
        return msgspec.convert(plain, FleetTraining).checked()
    except msgspec.ValidationError as error:
        raise InputError(f"training: {error}") from error

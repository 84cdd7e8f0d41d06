"""What a training of the launch rule is."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpusched_env.agents.training.config import Count, Positive, Seed, Values
from gpusched_env.errors import InputError, did_you_mean


class LaunchSettings(Values, frozen=True, kw_only=True):
    """CMA-ES on the launch rule (:mod:`gpusched_env.agents.dynamic_parallelism.rule`)."""

    population: Annotated[int, Meta(ge=4)] = 16
    """Candidates of a generation."""
    applications: Count = 192
    """Random ones that a training draws; to make one takes as long as to play it several times."""
    episodes: Count = 24
    """Of these that each candidate plays; others in the next generation."""
    sigma: Positive = 0.5
    """Standard deviation of the weights at first."""


class LaunchTraining(Values, frozen=True, kw_only=True):
    """One training of the launch rule for dynamic parallelism, on random applications."""

    scenario: Literal["DynamicParallelism"] = "DynamicParallelism"
    algo: Literal["cma-es"] = "cma-es"
    policy: Literal["launch"] = "launch"
    timesteps: Count = 100_000_000
    """Decisions of all candidates; the last generation is completed."""
    seed: Seed = 0
    threads: Count = 1
    """Candidates that play at a time; the result does not depend on it."""
    settings: dict[str, Any] = {}  # noqa: RUF012  # A struct copies its default.
    """Fields of :class:`LaunchSettings`."""
    imitation: None = None
    requests: Count = 60_000
    """Applications with more requests are left out: few would take most of the time."""
    validate_every: Count = 10_000_000
    validation_seeds: Count = 48
    """Applications of a validation."""
    checkpoint_every: Count = 10_000_000

    @property
    def name(self) -> str:
        """Of what is trained for."""
        return self.scenario

    def checked(self) -> LaunchTraining:
        """This configuration with all hyper-parameters filled in.

        Raises:
            InputError: a value that it cannot have.
        """
        try:
            valid = msgspec.convert(msgspec.to_builtins(self), LaunchTraining)
            given = msgspec.convert(valid.settings, LaunchSettings)
        except msgspec.ValidationError as error:
            raise InputError(f"training: {error}") from error
        if given.episodes > given.applications:
            raise InputError(f"training: {given.episodes} episodes of {given.applications} applications")
        return msgspec.structs.replace(valid, settings=msgspec.to_builtins(given))


def launch_training_of(values: dict[str, Any]) -> LaunchTraining:
    """A configuration from plain values; hyper-parameters may stand beside the other fields.

    Raises:
        InputError: unknown name or invalid value.
    """
    own, known = LaunchTraining.__struct_fields__, LaunchSettings.__struct_fields__
    for name in values:
        if name not in (*own, *known):
            raise InputError(
                f"training of the launch rule has no setting {name!r}; {did_you_mean(name, [*own, *known])}"
            )
    plain = {name: value for name, value in values.items() if name in own}
    plain["settings"] = {**plain.get("settings", {}), **{n: v for n, v in values.items() if n in known}}
    try:
        return msgspec.convert(plain, LaunchTraining).checked()
    except msgspec.ValidationError as error:
        raise InputError(f"training: {error}") from error

"""Domain randomisation: what differs from episode to episode besides the workloads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from gpusched_env.envs.vector_arguments import SampleScenario
from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.scenarios.problem import build_problem
from gpusched_env.scenarios.scenario import Scenario, override

RATES = ("rate_per_s",)
"""Fields of arrivals that grow with the rate."""
GAPS = ("think_us", "period_us")
"""Fields that shrink with it."""
PROFILE_SEEDS = 2**31


class Randomise(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is drawn anew for each episode."""

    rates: tuple[Annotated[float, Meta(gt=0)], Annotated[float, Meta(gt=0)]] | None = None
    """A factor on every tenant's rate of arrivals, one each, log-uniform between these."""
    gpus: tuple[str, ...] = ()
    """The GPU, one of these."""
    profiles: Annotated[float, Meta(ge=1)] = 1.0
    """Profiled durations and gaps are off by up to this factor each (``scatter`` of the scenario's ``profiles``)."""


def randomise_of(text: str) -> Randomise:
    """From the form of the command line: ``rates=0.7:1.4,gpus=h100-sxm+h200-sxm,profiles=2``.

    Raises:
        InputError: unknown name or invalid value.
    """
    given: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        if name not in Randomise.__struct_fields__:
            raise InputError(f"--randomise {part}: {did_you_mean(name, Randomise.__struct_fields__)}")
        separator = {"rates": ":", "gpus": "+"}.get(name)
        given[name] = value.split(separator) if separator else value
    try:
        return msgspec.convert(given, Randomise, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(
            f"--randomise {text}: {error}; expected such as rates=0.7:1.4,gpus=h100-sxm+h200-sxm,profiles=2"
        ) from error


def sampler(scenario: Scenario, changes: Sequence[Mapping[str, Any]], randomise: Randomise) -> SampleScenario | None:
    """What a vector environment asks for the fields of its next episode; ``None`` if there is nothing to draw.

    Args:
        scenario: the environment's.
        changes: variants of it, one of which each episode has.
        randomise: what else is drawn.

    Raises:
        InputError: a variant does not run on one of the GPUs.
    """
    if len(changes) == 1 and not changes[0] and randomise == Randomise():
        return None
    variants = [override(scenario, **change) for change in changes]
    for gpu in randomise.gpus:
        for variant in variants:
            build_problem(override(variant, gpu=gpu))

    def sample(number: int, rng: np.random.Generator) -> dict[str, Any]:
        chosen = int(rng.integers(len(changes)))
        fields = dict(changes[chosen])
        if randomise.rates is not None:
            fields["tenants"] = _with_rates(variants[chosen], fields.get("tenants", {}), randomise.rates, rng)
        if randomise.gpus:
            fields["gpu"] = randomise.gpus[int(rng.integers(len(randomise.gpus)))]
        if randomise.profiles > 1.0:
            fields["profiles"] = {"scatter": randomise.profiles, "seed": int(rng.integers(PROFILE_SEEDS))}
        return fields

    return sample


def _with_rates(
    variant: Scenario, changes: Mapping[str, Any], rates: tuple[float, float], rng: np.random.Generator
) -> dict[str, Any]:
    """``changes`` of tenants, with the arrivals that they have in ``variant`` faster or slower."""
    low, high = sorted(rates)
    found = {}
    for tenant in variant.tenants:
        factor = math.exp(rng.uniform(math.log(low), math.log(high)))
        arrivals = msgspec.to_builtins(tenant.arrivals)
        scaled = {name: arrivals[name] * factor for name in RATES if name in arrivals}
        scaled |= {name: arrivals[name] / factor for name in GAPS if name in arrivals}
        found[tenant.name] = {**changes.get(tenant.name, {}), "arrivals": {**arrivals, **scaled}}
    return found

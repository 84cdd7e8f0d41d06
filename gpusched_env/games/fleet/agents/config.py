"""What a training of the fleet rule is."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from gpusched_env.agents.training.config import Count, Values
from gpusched_env.agents.training.game_training import GameSettings, GameTraining


class FleetSettings(GameSettings, frozen=True, kw_only=True):
    """CMA-ES on the fleet rule (:mod:`gpusched_env.games.fleet.agents.rule`); episodes are random days."""

    population: Annotated[int, Meta(ge=4)] = 20


class FleetTraining(GameTraining, frozen=True, kw_only=True):
    """One training of the fleet rule, on random days."""

    RULE: ClassVar[str] = "fleet rule"
    SETTINGS: ClassVar[type[Values]] = FleetSettings

    scenario: Literal["Fleet"] = "Fleet"
    algo: Literal["cma-es"] = "cma-es"
    policy: Literal["fleet"] = "fleet"
    timesteps: Count = 30_000_000
    validate_every: Count = 3_000_000
    validation_seeds: Count = 32
    checkpoint_every: Count = 3_000_000

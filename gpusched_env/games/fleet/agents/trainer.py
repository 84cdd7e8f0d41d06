"""Trainings of the fleet rule: what one is, and how it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from msgspec import Meta

from gpusched_env.agents.training.config import CheckedStruct, Count
from gpusched_env.agents.training.trainer import GameSettings, GameTraining, RuleTrainer, Trainer
from gpusched_env.games.fleet.agents.rule import FleetPolicyInfo

if TYPE_CHECKING:
    from gpusched_env.games.fleet.training import FleetEvolution, FleetJudge


class FleetSettings(GameSettings, frozen=True, kw_only=True):
    """CMA-ES on the fleet rule (:mod:`gpusched_env.games.fleet.agents.rule`); episodes are random days."""

    population: Annotated[int, Meta(ge=4)] = 20


class FleetTraining(GameTraining, frozen=True, kw_only=True):
    """One training of the fleet rule, on random days."""

    RULE: ClassVar[str] = "fleet rule"
    SETTINGS: ClassVar[type[CheckedStruct]] = FleetSettings

    scenario: Literal["Fleet"] = "Fleet"
    algo: Literal["cma-es"] = "cma-es"
    policy: Literal["fleet"] = "fleet"
    timesteps: Count = 30_000_000
    validate_every: Count = 3_000_000
    validation_seeds: Count = 32
    checkpoint_every: Count = 3_000_000


def _parts() -> tuple[type[FleetJudge], type[FleetEvolution]]:
    from gpusched_env.games.fleet.training import FleetEvolution, FleetJudge

    return FleetJudge, FleetEvolution


TRAINER: Final[Trainer[FleetTraining]] = RuleTrainer(config=FleetTraining, read=FleetPolicyInfo.read, parts=_parts)

"""Trainings of the placement rule: what one is, and how it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from msgspec import Meta

from gpusched_env.agents.training.config import CheckedStruct, Count, Positive
from gpusched_env.agents.training.trainer import GameSettings, GameTraining, RuleTrainer, Trainer
from gpusched_env.games.fleet.agents.cluster.rule import PlacementPolicyInfo

if TYPE_CHECKING:
    from gpusched_env.games.fleet.cluster_training import PlacementEvolution, PlacementJudge


class PlacementSettings(GameSettings, frozen=True, kw_only=True):
    """CMA-ES on the placement rule (:mod:`gpusched_env.games.fleet.agents.cluster.rule`); episodes are drawn."""

    population: Annotated[int, Meta(ge=4)] = 32
    episodes: Count = 6
    sigma: Positive = 0.1


class PlacementTraining(GameTraining, frozen=True, kw_only=True):
    """One training of the placement rule, on drawn clusters and workloads."""

    RULE: ClassVar[str] = "placement rule"
    SETTINGS: ClassVar[type[CheckedStruct]] = PlacementSettings

    scenario: Literal["ClusterPlacement"] = "ClusterPlacement"
    algo: Literal["cma-es"] = "cma-es"
    policy: Literal["placement"] = "placement"
    timesteps: Count = 100_000_000
    """Pods placed."""
    validate_every: Count = 5_000_000
    validation_seeds: Count = 64
    checkpoint_every: Count = 5_000_000


def _parts() -> tuple[type[PlacementJudge], type[PlacementEvolution]]:
    from gpusched_env.games.fleet.cluster_training import PlacementEvolution, PlacementJudge

    return PlacementJudge, PlacementEvolution


TRAINER: Final[Trainer[PlacementTraining]] = RuleTrainer(
    config=PlacementTraining, read=PlacementPolicyInfo.read, parts=_parts
)

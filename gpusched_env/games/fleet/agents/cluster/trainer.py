"""Trainings of the placement rule: what one is, and how it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from msgspec import Meta

from gpusched_env.agents.training.config import CheckedStruct, Count, Positive
from gpusched_env.agents.training.trainer import GameTraining, RuleTrainer, Trainer
from gpusched_env.games.fleet.agents.cluster.rule import PlacementPolicyInfo

if TYPE_CHECKING:
    from gpusched_env.games.fleet.cluster_training import PlacementGradient, PlacementJudge


class PlacementSettings(CheckedStruct, frozen=True, kw_only=True):
    """Policy gradients for the placement rule (:mod:`gpusched_env.games.fleet.agents.cluster.gradient`)."""

    episodes: Annotated[int, Meta(ge=2, le=1024)] = 8
    """Episodes of the same arrivals that a step plays."""
    learning_rate: Positive = 0.02
    """Of Adam at first; it falls linearly to a twentieth."""
    temperature: Positive = 0.1
    """Of the softmax by which candidates are drawn, in units of the rule's numbers: ten points of FGD's score."""
    discount: Annotated[float, Meta(gt=0, le=1)] = 0.999
    """Of what later pods take, by the pod."""
    shaping: Annotated[float, Meta(ge=0, le=100)] = 0.5
    """Times the growth of what is unfillable, which counts as a cost at once."""


class PlacementTraining(GameTraining, frozen=True, kw_only=True):
    """One training of the placement rule, on drawn clusters and workloads."""

    RULE: ClassVar[str] = "placement rule"
    SETTINGS: ClassVar[type[CheckedStruct]] = PlacementSettings

    scenario: Literal["ClusterPlacement"] = "ClusterPlacement"
    algo: Literal["reinforce"] = "reinforce"
    policy: Literal["placement"] = "placement"
    timesteps: Count = 15_000_000
    """Pods placed."""
    validate_every: Count = 1_000_000
    validation_seeds: Count = 64
    checkpoint_every: Count = 1_000_000


def _parts() -> tuple[type[PlacementJudge], type[PlacementGradient]]:
    from gpusched_env.games.fleet.cluster_training import PlacementGradient, PlacementJudge

    return PlacementJudge, PlacementGradient


TRAINER: Final[Trainer[PlacementTraining]] = RuleTrainer(
    config=PlacementTraining, read=PlacementPolicyInfo.read, parts=_parts
)

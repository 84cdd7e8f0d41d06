"""Trainings of the agent that chooses among rules: what one is, and how it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from msgspec import Meta

from gpusched_env.agents.training.config import CheckedStruct, Count, NonNegative, Positive, Share
from gpusched_env.agents.training.trainer import GameTraining, RuleTrainer, Trainer
from gpusched_env.games.drawn.agent.policy import ChoicePolicyInfo

if TYPE_CHECKING:
    from gpusched_env.games.drawn.agent.training import ChoiceGradient, ChoiceJudge


class ChoiceSettings(CheckedStruct, frozen=True, kw_only=True):
    """Policy gradients over rules (:mod:`gpusched_env.games.drawn.agent.training`)."""

    forks: Count = 64
    """Moments in which rules are tried, in as many scenarios, a step."""
    first: Share = 0.3
    """Of them those at the beginning of an episode; in the first step all are."""
    passes: Count = 20
    """Passes over all that was tried so far, after each step."""
    batch_size: Annotated[int, Meta(ge=2)] = 256
    learning_rate: Positive = 1e-3
    weight_decay: NonNegative = 0.01
    ent_coef: NonNegative = 0.02
    """Reward for entropy, in the unit of the logarithm of costs."""


class ChoiceTraining(GameTraining, frozen=True, kw_only=True):
    """One training of the agent that chooses among rules, on drawn scenarios."""

    RULE: ClassVar[str] = "choice among rules"
    SETTINGS: ClassVar[type[CheckedStruct]] = ChoiceSettings

    scenario: Literal["Drawn"] = "Drawn"
    algo: Literal["all-actions-gradient"] = "all-actions-gradient"
    policy: Literal["choice"] = "choice"
    timesteps: Count = 10_000_000
    """Decisions, of all episodes that are played."""
    validate_every: Count = 1_000_000
    validation_seeds: Count = 64
    checkpoint_every: Count = 100_000


def _parts() -> tuple[type[ChoiceJudge], type[ChoiceGradient]]:
    from gpusched_env.games.drawn.agent.training import ChoiceGradient, ChoiceJudge

    return ChoiceJudge, ChoiceGradient


TRAINER: Final[Trainer[ChoiceTraining]] = RuleTrainer(config=ChoiceTraining, read=ChoicePolicyInfo.read, parts=_parts)

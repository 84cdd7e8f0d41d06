"""Trainings of the launch rule: what one is, and how it is run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Literal, Self

from gpusched_env.agents.training.config import CheckedStruct, Count
from gpusched_env.agents.training.trainer import GameSettings, GameTraining, RuleTrainer, Trainer
from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.agents.rule import LaunchPolicyInfo
from gpusched_env.games.child_launches.problem import Transformations

if TYPE_CHECKING:
    from gpusched_env.games.child_launches.training import LaunchEvolution, LaunchJudge


class LaunchSettings(GameSettings, frozen=True, kw_only=True):
    """CMA-ES on the launch rule (:mod:`gpusched_env.games.child_launches.agents.rule`); episodes are applications."""

    applications: Count = 192
    """Random applications that a training draws; to make one takes as long as to play it several times."""
    episodes: Count = 24
    """Applications of those drawn that each candidate plays; others in the next generation."""


class LaunchTraining(GameTraining, frozen=True, kw_only=True):
    """One training of the launch rule for dynamic parallelism, on random applications."""

    RULE: ClassVar[str] = "launch rule"
    SETTINGS: ClassVar[type[CheckedStruct]] = LaunchSettings

    scenario: Literal["DynamicParallelism"] = "DynamicParallelism"
    algo: Literal["cma-es"] = "cma-es"
    policy: Literal["launch"] = "launch"
    timesteps: Count = 100_000_000
    program: Transformations = Transformations()
    """How applications are compiled, in training and wherever the policy runs."""
    requests: Count = 60_000
    """Applications with more requests are left out: few would take most of the time."""
    validate_every: Count = 10_000_000
    validation_seeds: Count = 48
    checkpoint_every: Count = 10_000_000

    def checked(self) -> Self:
        """The settings as of :meth:`GameTraining.checked`; an episode cannot have more applications than there are."""
        valid = super().checked()
        episodes, applications = valid.settings["episodes"], valid.settings["applications"]
        if episodes > applications:
            raise InputError(f"training: {episodes} episodes of {applications} applications")
        return valid


def _parts() -> tuple[type[LaunchJudge], type[LaunchEvolution]]:
    from gpusched_env.games.child_launches.training import LaunchEvolution, LaunchJudge

    return LaunchJudge, LaunchEvolution


TRAINER: Final[Trainer[LaunchTraining]] = RuleTrainer(config=LaunchTraining, read=LaunchPolicyInfo.read, parts=_parts)

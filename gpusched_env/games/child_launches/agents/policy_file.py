"""The file of a launch rule: its weights, and where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from gpusched_env.agents.game_policy import GamePolicyInfo, RuleNow, read_game_policy
from gpusched_env.agents.policy_file import Weights
from gpusched_env.games.child_launches.agents.rule import READS, SHAPES, SpawnTerm
from gpusched_env.games.child_launches.environment.features import LaunchFeature
from gpusched_env.games.child_launches.transformations import Transformations

TERMS: Final = tuple(term.name for term in SpawnTerm)
NOW: Final = RuleNow("launch rule", TERMS, SHAPES, LaunchFeature.__members__)


class LaunchPolicyInfo(GamePolicyInfo, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a launch rule is, and where it comes from."""

    format: Literal["gpusched-launch-rule"] = "gpusched-launch-rule"
    terms: tuple[str, ...] = TERMS
    reads: tuple[str, ...] = READS
    program: Transformations = Transformations()
    """How applications were compiled in training."""

    def summary(self) -> str:
        """One line about it."""
        return self.told(f"a launch rule of {len(self.terms)} weights")


def read_launch_policy(path: str | Path) -> tuple[LaunchPolicyInfo, Weights]:
    """As :func:`~gpusched_env.agents.game_policy.read_game_policy`, of a launch rule."""
    return read_game_policy(path, LaunchPolicyInfo, NOW)

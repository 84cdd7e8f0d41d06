"""The file of a fleet rule: its weights, and where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from gpusched_env.agents.game_policy import GamePolicyInfo, RuleNow, read_game_policy
from gpusched_env.agents.policy_file import Weights
from gpusched_env.games.fleet.agents.rule import CONTROL, READS, SHAPES, MoveTerm, PlaceTerm
from gpusched_env.games.fleet.environment.features import FleetFeature

TERMS: Final = (*(term.name for term in PlaceTerm), *(f"MOVE_{term.name}" for term in MoveTerm))
NOW: Final = RuleNow("fleet rule", TERMS, SHAPES, FleetFeature.__members__)


class FleetPolicyInfo(GamePolicyInfo, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a fleet rule is, and where it comes from."""

    format: Literal["gpusched-fleet-rule"] = "gpusched-fleet-rule"
    terms: tuple[str, ...] = TERMS
    reads: tuple[str, ...] = READS
    control: str = CONTROL
    """Of each GPU."""

    def summary(self) -> str:
        """One line about it."""
        return self.told(f"a fleet rule of {len(self.terms)} terms")


def read_fleet_policy(path: str | Path) -> tuple[FleetPolicyInfo, Weights]:
    """As :func:`~gpusched_env.agents.game_policy.read_game_policy`, of a fleet rule."""
    return read_game_policy(path, FleetPolicyInfo, NOW)

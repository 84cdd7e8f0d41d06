"""The file of a rule of forms: its weights, and where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from gpusched_env.agents.game_policy import GamePolicyInfo, RuleNow, read_game_policy
from gpusched_env.agents.policy_file import Weights
from gpusched_env.games.task_queues.agents.rule import READS, SHAPES, FormTerm, GraphTerm
from gpusched_env.games.task_queues.environment.features import TaskFeature

TERMS: Final = (*(term.name for term in GraphTerm), *(f"FORM_{term.name}" for term in FormTerm))
NOW: Final = RuleNow("rule of forms", TERMS, SHAPES, TaskFeature.__members__)


class FormPolicyInfo(GamePolicyInfo, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a rule of forms is, and where it comes from."""

    format: Literal["gpusched-form-rule"] = "gpusched-form-rule"
    terms: tuple[str, ...] = TERMS
    reads: tuple[str, ...] = READS

    def summary(self) -> str:
        """One line about it."""
        return self.told(f"a rule of forms of {len(self.terms)} terms")


def read_form_policy(path: str | Path) -> tuple[FormPolicyInfo, Weights]:
    """As :func:`~gpusched_env.agents.game_policy.read_game_policy`, of a rule of forms."""
    return read_game_policy(path, FormPolicyInfo, NOW)

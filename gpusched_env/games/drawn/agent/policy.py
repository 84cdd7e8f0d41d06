"""The file of the agent's policy."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from gpusched_env.agents.policy_file import GamePolicyInfo
from gpusched_env.agents.shipped import FOLDER
from gpusched_env.envs.features import DeviceFeature, TenantFeature
from gpusched_env.games.drawn.agent.network import SHAPES, Weights
from gpusched_env.games.drawn.agent.seeing import REPERTOIRE
from gpusched_env.games.drawn.environment.env import OfferFeature

SHIPPED: Final = FOLDER / "Drawn.npz"
READS: Final = tuple(feature.name for table in (TenantFeature, DeviceFeature, OfferFeature) for feature in table)
"""Columns in the order of a row; those of tenants once for each."""


class ChoicePolicyInfo(GamePolicyInfo, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a policy over rules is, and where it comes from."""

    RULE = "choice"
    COUNTED = "rules"
    TERMS = REPERTOIRE
    SHAPES = SHAPES
    COLUMNS = READS

    format: Literal["gpusched-rule-choice"] = "gpusched-rule-choice"
    terms: tuple[str, ...] = REPERTOIRE
    reads: tuple[str, ...] = READS


def read_choice_policy(path: str | Path | None) -> tuple[ChoicePolicyInfo, Weights]:
    """A policy; ``None``: the one that is shipped.

    Raises:
        InputError: the file cannot be read, is no such policy, or was made for other rules or columns.
    """
    info, weights = ChoicePolicyInfo.read(SHIPPED if path is None else path)
    return info, weights

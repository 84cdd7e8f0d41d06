"""The file of a fleet rule: its weights, and where it comes from. As other policies', without pickles."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from gpusched_env.agents.fleet.rule import CONTROL, READS, SHAPES, MoveTerm, PlaceTerm
from gpusched_env.agents.policy_file import METADATA, Weights, checked_weights, read_members, write_members
from gpusched_env.display.words import counted
from gpusched_env.envs.fleet.features import FleetFeature
from gpusched_env.errors import InputError
from gpusched_env.reading import decoded

TERMS = (*(term.name for term in PlaceTerm), *(f"MOVE_{term.name}" for term in MoveTerm))


class FleetPolicyInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a fleet rule is, and where it comes from."""

    format: Literal["gpusched-fleet-rule"] = "gpusched-fleet-rule"
    version: Literal[1] = 1
    terms: tuple[str, ...] = TERMS
    """That the weights belong to, in order."""
    reads: tuple[str, ...] = READS
    """Columns of an observation that they are made of."""
    control: str = CONTROL
    """Of each GPU."""
    algorithm: str
    command: str = ""
    """The command that trained it."""
    seed: int | None = None
    timesteps: int = 0
    """Decisions that it was trained for."""
    versions: dict[str, str] = {}

    def summary(self) -> str:
        """One line about it."""
        return f"{self.algorithm}, a fleet rule of {len(self.terms)} terms, {counted(self.timesteps, 'decision')}"


def write_fleet_policy(path: str | Path, info: FleetPolicyInfo, weights: Weights) -> None:
    """Write the file, whole or not at all.

    Raises:
        InputError: the folder cannot be written to.
    """
    write_members(path, msgspec.json.encode(info), weights)


def read_fleet_policy(path: str | Path) -> tuple[FleetPolicyInfo, Weights]:
    """What :func:`write_fleet_policy` wrote, checked.

    Raises:
        InputError: the file cannot be read, is none of a fleet rule, or has other terms or columns than there are now.
    """
    members = read_members(Path(path))
    text = members.pop(METADATA, np.zeros(0, np.uint8)).tobytes()
    info = decoded(text, FleetPolicyInfo, f"{path}: not the file of a fleet rule, which gpusched train makes")
    if info.terms != TERMS:
        raise InputError(f"{path}: a fleet rule of other terms than there are now; train it again")
    gone = [name for name in info.reads if name not in FleetFeature.__members__]
    if gone:
        raise InputError(f"{path}: a fleet rule that reads {gone[0]}, which observations do not have; train it again")
    return info, checked_weights(members, SHAPES, str(path))

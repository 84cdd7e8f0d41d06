"""The file of a launch rule: its weights, and where it comes from. As other policies', without pickles."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from gpusched_env.agents.dynamic_parallelism.rule import READS, SHAPES, SpawnTerm
from gpusched_env.agents.policy_file import METADATA, Weights, checked_weights, read_members, write_members
from gpusched_env.display.words import counted
from gpusched_env.envs.dynamic_parallelism.features import LaunchFeature
from gpusched_env.errors import InputError
from gpusched_env.reading import decoded


class LaunchPolicyInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a launch rule is, and where it comes from."""

    format: Literal["gpusched-launch-rule"] = "gpusched-launch-rule"
    version: Literal[1] = 1
    terms: tuple[str, ...] = tuple(term.name for term in SpawnTerm)
    """That the weights belong to, in order."""
    reads: tuple[str, ...] = READS
    """Columns of an observation that they are made of."""
    algorithm: str
    command: str = ""
    """The command that trained it."""
    seed: int | None = None
    timesteps: int = 0
    """Decisions that it was trained for."""
    versions: dict[str, str] = {}

    def summary(self) -> str:
        """One line about it."""
        return f"{self.algorithm}, a launch rule of {len(self.terms)} weights, {counted(self.timesteps, 'decision')}"


def write_launch_policy(path: str | Path, info: LaunchPolicyInfo, weights: Weights) -> None:
    """Write the file, whole or not at all.

    Raises:
        InputError: the folder cannot be written to.
    """
    write_members(path, msgspec.json.encode(info), weights)


def read_launch_policy(path: str | Path) -> tuple[LaunchPolicyInfo, Weights]:
    """What :func:`write_launch_policy` wrote, checked.

    Raises:
        InputError: the file cannot be read, is none of a launch rule, or has other terms or columns than there are now.
    """
    members = read_members(Path(path))
    text = members.pop(METADATA, np.zeros(0, np.uint8)).tobytes()
    info = decoded(text, LaunchPolicyInfo, f"{path}: not the file of a launch rule, which gpusched train makes")
    if info.terms != tuple(term.name for term in SpawnTerm):
        raise InputError(f"{path}: a launch rule of other terms than there are now; train it again")
    gone = [name for name in info.reads if name not in LaunchFeature.__members__]
    if gone:
        raise InputError(f"{path}: a launch rule that reads {gone[0]}, which observations do not have; train it again")
    return info, checked_weights(members, SHAPES, str(path))

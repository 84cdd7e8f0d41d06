"""Files of rules for games that are no scenarios: weights, and where they come from. As other policies', without
pickles."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import numpy as np

from gpusched_env.agents.policies.sizes import Shapes
from gpusched_env.agents.policy_file import METADATA, Weights, checked_weights, read_members, write_members
from gpusched_env.display.words import counted
from gpusched_env.errors import InputError
from gpusched_env.reading import decoded


class GamePolicyInfo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a rule is, and where it comes from. Each game has a kind of its own, with its ``format``."""

    version: Literal[1] = 1
    terms: tuple[str, ...]
    """That the weights belong to, in order."""
    reads: tuple[str, ...]
    """Columns of an observation that they are made of."""
    algorithm: str
    command: str = ""
    """The command that trained it."""
    seed: int | None = None
    timesteps: int = 0
    """Decisions that it was trained for."""
    versions: dict[str, str] = {}

    def told(self, rule: str) -> str:
        """One line about it; ``rule``: what it is, in words."""
        return f"{self.algorithm}, {rule}, {counted(self.timesteps, 'decision')}"


@dataclass(frozen=True, slots=True)
class RuleNow:
    """A rule as it is now, which files have to fit."""

    name: str
    """In words."""
    terms: tuple[str, ...]
    shapes: Shapes
    columns: Collection[str]
    """Names of those that observations have."""


I = TypeVar("I", bound=GamePolicyInfo)  # noqa: E741


def write_game_policy(path: str | Path, info: GamePolicyInfo, weights: Weights) -> None:
    """Write the file, whole or not at all.

    Raises:
        InputError: the folder cannot be written to.
    """
    write_members(path, msgspec.json.encode(info), weights)


def read_game_policy(path: str | Path, kind: type[I], now: RuleNow) -> tuple[I, Weights]:
    """What :func:`write_game_policy` wrote, checked.

    Raises:
        InputError: the file cannot be read, is of no such rule, or has other terms or columns than there are now.
    """
    members = read_members(Path(path))
    text = members.pop(METADATA, np.zeros(0, np.uint8)).tobytes()
    info = decoded(text, kind, f"{path}: not the file of a {now.name}, which gpusched train makes")
    if info.terms != now.terms:
        raise InputError(f"{path}: a {now.name} of other terms than there are now; train it again")
    gone = [name for name in info.reads if name not in now.columns]
    if gone:
        raise InputError(f"{path}: a {now.name} that reads {gone[0]}, which observations do not have; train it again")
    return info, checked_weights(members, now.shapes, str(path))

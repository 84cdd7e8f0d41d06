"""How a trained agent came about, in the words that pages call it by."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from gpusched_env.agents.policy_file import METADATA, read_members
from gpusched_env.reading import decoded

WITHOUT_WEIGHTS: Final = "rule without weights"
ORIGINS: Final = {
    "cma-es": "searched rule",
    "every-form": "rule fitted with full information",
    "distillation": "distilled planner",
    "rollouts": "rule fitted to rollouts",
}
"""By algorithm; any other learns by reinforcement."""


class _Told(msgspec.Struct):
    """What a policy's metadata says of its training."""

    algorithm: str = ""


def origin(policy: Path) -> str:
    """What the agent in an exported policy is, of any game: ``searched rule``.

    Weights that are all zero leave the rule that they were to change as it is, whatever the training was.

    Raises:
        InputError: the file cannot be read, or is no policy.
    """
    members = read_members(policy)
    told = decoded(members.pop(METADATA, np.empty(0, np.uint8)).tobytes(), _Told, str(policy))
    if not any(np.any(weights) for weights in members.values()):
        return WITHOUT_WEIGHTS
    return ORIGINS.get(told.algorithm, f"learned by reinforcement, {told.algorithm}")

"""The trained agents that come with the package, and how pages say that each came about."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from gpusched_env.agents.policy_file import METADATA, read_members
from gpusched_env.errors import InputError
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.scenarios.knowledge import Offer
from gpusched_env.scenarios.variants import family

if TYPE_CHECKING:
    from gpusched_env.agents.exported import ExportedPolicy


FOLDER = Path(__file__).with_name("trained")
"""``<Scenario>.npz``, and ``<Scenario>.json``: where it comes from (:mod:`gpusched_env.agents.manifest`)."""


class _Besides(msgspec.Struct):
    """What is read here of a manifest."""

    also: tuple[str, ...] = ()


def shipped_names() -> list[str]:
    """Scenarios that a file of an agent is named after, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def shipped_scenarios() -> dict[str, str]:
    """The name of the file of the agent that is shipped for each scenario, sorted; a scenario's own goes first."""
    names = shipped_names()
    found = {other: name for name in names for other in _also(name)}
    return dict(sorted((found | {name: name for name in names}).items()))


def _also(name: str) -> tuple[str, ...]:
    path = FOLDER / f"{name}.json"
    return decoded(read_bytes(path), _Besides, str(path)).also if path.exists() else ()


def shipped_policy(scenario: Offer) -> ExportedPolicy:
    """The agent shipped for ``scenario``, for one with fields replaced, or for a variant of it; its name decides.

    Raises:
        InputError: there is none.
    """
    return _load(shipped_file(scenario))


def shipped_file(scenario: Offer) -> Path:
    """The file of :func:`shipped_policy`.

    Raises:
        InputError: there is none.
    """
    name = family(scenario.name)
    own = FOLDER / f"{name}.npz"
    if own.exists():
        return own
    shipped = shipped_scenarios()
    if name not in shipped:
        raise InputError(
            f"no trained agent is shipped for scenario {name}; for: {', '.join(shipped) or 'none yet'} "
            "(one's own: learned:PATH of an exported policy)"
        )
    return FOLDER / f"{shipped[name]}.npz"


def is_shipped_for(scenario: Offer) -> bool:
    """Whether there is an agent for ``scenario`` that has the actions that it offers."""
    try:
        shipped_policy(scenario).layout_for(scenario)
    except InputError:
        return False
    return True


@functools.cache
def _load(path: Path) -> ExportedPolicy:
    from gpusched_env.agents.exported import ExportedPolicy

    return ExportedPolicy.load(path)


WITHOUT_WEIGHTS: Final = "rule without weights"
ORIGINS: Final = {
    "cma-es": "searched rule",
    "every-form": "rule fitted with full information",
    "distillation": "distilled planner",
    "rollouts": "rule fitted to rollouts",
}
"""How policies are made, by algorithm; any other learns by reinforcement."""


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

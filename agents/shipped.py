"""The trained agents that come with the package: one file a scenario in the folder ``trained``."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.errors import InputError
from gpusched_env.scenarios.knowledge import Offer
from gpusched_env.scenarios.variants import family

if TYPE_CHECKING:
    from gpusched_env.agents.exported import ExportedPolicy

FOLDER = Path(__file__).with_name("trained")
"""``<Scenario>.npz``, and ``<Scenario>.json``: where it comes from (:mod:`gpusched_env.agents.manifest`)."""


def shipped_names() -> list[str]:
    """Scenarios that an agent is shipped for, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


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
    if name not in shipped_names():
        known = ", ".join(shipped_names()) or "none yet"
        raise InputError(
            f"no trained agent is shipped for scenario {name}; for: {known} "
            "(one's own: learned:PATH of an exported policy)"
        )
    return FOLDER / f"{name}.npz"


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

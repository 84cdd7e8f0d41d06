"""The trained agents that come with the package: a file for one scenario or for several in the folder ``trained``."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.reading import decoded, read_bytes
from gpusched_env.scenarios.knowledge import Offer
from gpusched_env.scenarios.variants import family

if TYPE_CHECKING:
    from gpusched_env.agents.exported import ExportedPolicy

FOLDER = Path(__file__).with_name("trained")
"""``<Scenario>.npz``, and ``<Scenario>.json``: where it comes from (:mod:`gpusched_env.agents.manifest`)."""


class _Besides(msgspec.Struct):
    """Of a manifest what is asked here."""

    also: tuple[str, ...] = ()


def shipped_names() -> list[str]:
    """Scenarios that a file of an agent is named after, sorted."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def shipped_scenarios() -> dict[str, str]:
    """By scenario that an agent is shipped for the name of its file, sorted; a scenario's own goes first."""
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

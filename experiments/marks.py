"""How schedulers that are told the truth are marked wherever results are shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable

MARK = "*"
LEGEND = f"{MARK} clairvoyant: is told the truth that no scheduler can know, a bound for the others."


def marked(name: str, clairvoyant: Collection[str]) -> str:
    """A scheduler's name as tables show it; ``clairvoyant``: names of those that are told the truth."""
    return f"{name}{MARK}" if name in clairvoyant else name


def legend(names: Iterable[str], clairvoyant: Collection[str]) -> str:
    """What the mark means; empty if none of ``names`` has it."""
    return LEGEND if any(name in clairvoyant for name in names) else ""

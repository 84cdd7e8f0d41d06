"""Where a scheduler's options are searched: ``gpusched tune`` draws them from the ranges that its class declares.

A class names them in ``ranges``, by option. An option without a range is no matter of tuning (what it stands for is
fixed by the machine or by the question that is asked).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; whole ones if both ends are whole numbers."""

    low: float
    high: float
    log: bool = False
    """Small numbers as often as large ones, by order of magnitude; ``low`` is above 0 then."""

    def holds(self, value: Any) -> bool:
        """Whether ``value`` is one of them."""
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high


@dataclass(frozen=True)
class Choice:
    """One of a few values."""

    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        """Whether ``value`` is one of them."""
        return value in self.values


Ranges = dict[str, Range | Choice]


def ranges_of(scheduler: object) -> Ranges:
    """What a scheduler (or its class) declares; empty if it has nothing to tune."""
    found: Ranges = getattr(scheduler, "ranges", {})
    return found

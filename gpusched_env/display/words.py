"""Numbers in sentences."""

from __future__ import annotations

import math


def counted(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``, ``1,000 seeds``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def printable(text: str, most: int = 80) -> str:
    """A text of a file, for a message: at most so many characters, none of which a terminal would obey."""
    return "".join(character if character.isprintable() else "?" for character in text[:most])


FEW = "~"
"""The sign before a percentile of too few values."""


def is_largest(percent: float, values: int) -> bool:
    """Whether a percentile of so many values is hardly more than their largest: below 100 of a 99th, 20 of a 95th."""
    return values * (100.0 - percent) < 100.0


def duration(seconds: float) -> str:
    """A time that something took: ``0.42 s``, ``27 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes == 0:
        return f"{rest} s"
    hours, minutes_left = divmod(minutes, 60)
    return f"{minutes} min {rest} s" if hours == 0 else f"{hours} h {minutes_left} min"


def time_text(us: float) -> str:
    """A simulated time with a fitting unit: ``12.3 µs``, ``1.234 ms``."""
    if us == math.inf:
        return "no limit"
    return f"{us / 1e3:.3f} ms" if us >= 1e3 else f"{us:.1f} µs"

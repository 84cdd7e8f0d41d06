"""A few of many combinations, drawn by names: what is added or removed leaves the draws of the others as they are."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TypeVar

First = TypeVar("First")
Second = TypeVar("Second")


def drawn(name: object, count: int) -> int:
    """One of 0 to ``count - 1``, always the same of a name."""
    return zlib.crc32(str(name).encode()) % count


def sampled_pairs(firsts: Sequence[First], seconds: Sequence[Second]) -> list[tuple[First, Second]]:
    """Pairs in which each of both occurs: one of each first, and one more of each second that none of these drew."""
    pairs = [(first, seconds[drawn(first, len(seconds))]) for first in firsts]
    met = [second for _, second in pairs]
    return pairs + [(firsts[drawn(second, len(firsts))], second) for second in seconds if second not in met]

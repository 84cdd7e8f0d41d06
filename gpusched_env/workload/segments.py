"""Which launches depend on each other: memory that one writes and another one reads or writes.

Segments belong to the operation, not to its kernel: the same kernel is launched on other addresses each time. Two
launches conflict if one writes what the other reads or writes; the newer one then waits for the older one. (Durvasula
et al., arXiv 2401.12377, section 3: their Algorithm 1 as printed compares the older one's segments with what the newer
one writes only, and so misses that the newer one reads what the older one writes, the commonest reason to wait.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.workload.workload import Segment

CHECK_US: Final = {(16, 6): 0.41, (16, 10): 0.70, (32, 6): 0.51, (32, 10): 1.64}
"""Host time to check a launch of so many segments (second) against a window of so many launches (first), microseconds:
Durvasula et al., Table II."""


class Touches(Protocol):
    """An operation and the memory that it touches; ``None``: possibly all of it."""

    @property
    def reads(self) -> tuple[Segment, ...] | None: ...
    @property
    def writes(self) -> tuple[Segment, ...] | None: ...


def overlap(one: Segment, other: Segment) -> bool:
    """Whether two segments share a byte."""
    return one.storage == other.storage and max(one.first, other.first) < min(one.end, other.end)


def conflict(older: Touches, newer: Touches) -> str:
    """Why the newer of two launches must wait for the older one; empty if it need not."""
    if None in (older.reads, older.writes, newer.reads, newer.writes):
        return "memory that is not known"
    for what, before, after in (
        ("read after write", older.writes, newer.reads),
        ("write after write", older.writes, newer.writes),
        ("write after read", older.reads, newer.writes),
    ):
        for one in before or ():
            for other in after or ():
                if overlap(one, other):
                    first, end = max(one.first, other.first), min(one.end, other.end)
                    return f"{what} of bytes {first} to {end} of storage {one.storage}"
    return ""


def conflicts(ops: Sequence[Touches]) -> list[NDArray[np.int64]]:
    """For each of some operations, in order of issue, the places of the older ones that it conflicts with.

    The same as :func:`conflict` of all pairs, in array operations.
    """
    unknown = np.array([op.reads is None or op.writes is None for op in ops], bool)
    rows = [
        (place, segment.storage, segment.first, segment.end, writes)
        for place, op in enumerate(ops)
        for writes, segments in ((False, op.reads), (True, op.writes))
        for segment in segments or ()
        if segment.first < segment.end
    ]
    place, storage, first, end, writes = (np.array(column) for column in zip(*rows, strict=True)) if rows else [
        np.empty(0, np.int64)
    ] * 5  # fmt: skip
    begins = np.searchsorted(place, np.arange(len(ops) + 1))
    found = []
    for newer in range(len(ops)):
        if unknown[newer]:
            found.append(np.arange(newer))
            continue
        old, own = slice(0, begins[newer]), slice(begins[newer], begins[newer + 1])
        hit = (
            (storage[old, None] == storage[own])
            & (first[old, None] < end[own])
            & (first[own] < end[old, None])
            & (writes[old, None] | writes[own]).astype(bool)
        ).any(axis=1)
        found.append(np.unique(np.concatenate([place[old][hit], np.flatnonzero(unknown[:newer])])))
    return found


def dependencies(ops: Sequence[Touches]) -> list[tuple[int, ...]]:
    """For each operation the places of those that it waits for, without those that these wait for themselves."""
    found: list[tuple[int, ...]] = []
    behind: list[int] = []
    """By operation, a set of bits: all that must have ended before it starts."""
    for older in conflicts(ops):
        needed: list[int] = []
        covered = 0
        for place in reversed(older.tolist()):
            if not covered >> place & 1:
                needed.append(place)
                covered |= behind[place] | 1 << place
        found.append(tuple(reversed(needed)))
        behind.append(covered)
    return found


def check_us(window: int, segments: int) -> float:
    """Host time to check a launch against a window: the four figures that are published, and power laws through them
    elsewhere, microseconds. More of either never takes less.

    Args:
        window: launches that the window has room for, from 1.
        segments: that the launch reads and writes together; those of unknown memory count as 2.
    """
    doublings, steps = math.log2(max(1, window) / 16), math.log(max(2, segments) / 6) / math.log(10 / 6)
    small = CHECK_US[16, 6]
    by_window, by_segments = CHECK_US[32, 6] / small, CHECK_US[16, 10] / small
    # What is more than the product of both was measured upwards of 16 and 6 only.
    by_both = CHECK_US[32, 10] / (small * by_window * by_segments)
    beyond = max(0.0, doublings) * max(0.0, steps)
    return math.prod((small, by_window**doublings, by_segments**steps, by_both**beyond))

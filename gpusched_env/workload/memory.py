"""The memory that launches touch: who depends on whom, what that looks like as a graph, and programs without reuse."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.workload.workload import Op, OpKind, Segment, Workload

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
    """Places of the older operations that each one conflicts with, for operations in order of issue.

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
    """Places of the operations that each one waits for, without those that these wait for themselves."""
    found: list[tuple[int, ...]] = []
    behind: list[int] = []
    """Operations that must all have ended before one starts, as a set of bits for each one."""
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


SMALL_BLOCKS = 40
"""Kernels of at most so many blocks are small: they leave most of a large GPU's SMs to others."""


@dataclass(frozen=True, slots=True)
class GraphFigures:
    """Figures of one iteration; copies and what the host waits for are left out."""

    kernels: int
    levels: int
    """Kernels of the longest chain."""
    parallelism: float
    """Sum of durations over that of the critical path: the most that running side by side can gain."""
    small: float
    """Share of kernels of at most :data:`SMALL_BLOCKS` blocks, 0 to 1."""
    blocks: float
    """Median number of blocks of a kernel."""
    duration_us: float
    """Median duration of a kernel."""
    long_us: float
    """95th percentile of the durations of kernels."""
    segments: float
    """Mean number of segments that a kernel reads and writes."""

    @property
    def depth(self) -> float:
        """Share of kernels in the longest chain, 0 to 1."""
        return self.levels / self.kernels


def graph_figures(workload: Workload, variant: int = 0) -> GraphFigures:
    """Figures of a variant of ``workload``. A kernel of unknown memory waits for all before it, and has no segments."""
    kernels = [op for op in workload.variants[variant].all_ops if op.kind is OpKind.KERNEL]
    levels: list[int] = []
    ends_us: list[float] = []
    for op, before in zip(kernels, dependencies(kernels), strict=True):
        levels.append(1 + max((levels[place] for place in before), default=0))
        ends_us.append(op.duration_us + max((ends_us[place] for place in before), default=0.0))
    durations_us = np.array([op.duration_us for op in kernels])
    blocks = np.array([workload.kernels[op.index].blocks for op in kernels])
    return GraphFigures(
        kernels=len(kernels),
        levels=max(levels),
        parallelism=float(durations_us.sum()) / max(ends_us),
        small=float(np.mean(blocks <= SMALL_BLOCKS)),
        blocks=float(np.median(blocks)),
        duration_us=float(np.median(durations_us)),
        long_us=float(np.percentile(durations_us, 95)),
        segments=float(np.mean([len(op.reads or ()) + len(op.writes or ()) for op in kernels])),
    )


Memory = tuple[tuple[Segment, ...], tuple[Segment, ...]]
"""Memory that is read, and memory that is written."""


def with_own_storage(workload: Workload) -> Workload:
    """The workload, each result of whose kernels has storage of its own.

    Recordings in which nothing was freed within an iteration have the same longest chains, where every kernel is an
    operator's own (physics steps, BERT, MobileNet). Of NASNet, whose convolutions allocate within, a recording can hold
    only what operators return: it lies between the workload and this. Copies, and kernels whose memory is not known,
    stay as they are.
    """
    variants = tuple(
        msgspec.structs.replace(variant, ops=tuple(_renamed(variant.ops))) for variant in workload.variants
    )
    return msgspec.structs.replace(workload, variants=variants)


def _renamed(ops: Sequence[Op]) -> Iterator[Op]:
    used = {segment.storage for op in ops for segment in (*(op.reads or ()), *(op.writes or ()))}
    fresh = itertools.count(max(used, default=0) + 1)
    names: dict[int, int] = {}
    before: Memory | None = None
    for op in ops:
        if op.kind is not OpKind.KERNEL or op.reads is None or op.writes is None:
            before = None
            yield op
            continue
        reads = tuple(_of(segment, names) for segment in op.reads)
        read = {segment.storage for segment in op.reads}
        if (op.reads, op.writes) != before:
            names |= {segment.storage: next(fresh) for segment in op.writes if segment.storage not in read}
        before = op.reads, op.writes
        yield msgspec.structs.replace(op, reads=reads, writes=tuple(_of(segment, names) for segment in op.writes))


def _of(segment: Segment, names: dict[int, int]) -> Segment:
    return msgspec.structs.replace(segment, storage=names.get(segment.storage, segment.storage))

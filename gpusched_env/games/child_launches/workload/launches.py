"""Kernels whose threads may launch kernels: per thread, the work that it must do and the work that it may hand over;
and what a turn of each application's loop does.

Work is counted in *serial iterations*: turns of the loop that a thread takes if it launches nothing. How often L2 has
the data is given by benchmark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.child_launches.hardware.warp_machine import LoopBody
from gpusched_env.hardware.occupancy import WARP_THREADS

Counts = NDArray[np.int64]


def sums_between(values: NDArray[np.generic], bounds: Counts) -> NDArray[np.generic]:
    """``values[bounds[i]:bounds[i + 1]].sum()`` for each i; shape (bounds - 1,), empty parts give 0."""
    running = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values, dtype=values.dtype)])
    return np.asarray(running[bounds[1:]] - running[bounds[:-1]])


@dataclass(frozen=True, slots=True)
class BlockShape:
    """A thread block (CTA) and what it occupies."""

    threads: int
    """Threads a block: whole warps, 32 to 1024."""
    registers: int
    """32-bit registers a thread."""
    shared_bytes: int = 0
    """Shared memory a block, bytes."""

    def __post_init__(self) -> None:
        if not WARP_THREADS <= self.threads <= 1024 or self.threads % WARP_THREADS:
            raise InputError(f"block of {self.threads} threads: must be whole warps of 32, 32 to 1024 threads")


@dataclass(frozen=True, eq=False)
class LaunchRequests:
    """Launch requests: loops that a thread either runs itself or hands to a child kernel, one child thread an item.

    A thread that runs the loop itself takes :attr:`work` iterations, those of nested requests included.
    A child kernel has ``ceil(items / block threads)`` blocks; its threads follow the order of the items.
    """

    thread: Counts
    """(requests,) the thread that makes it, ascending; equal ones are made one after another."""
    items: Counts
    """(requests,) child threads with something to do, at least 1."""
    iterations: Counts | None = None
    """(requests,) iterations of each child thread, where those of a request are equal."""
    children: Threads | None = None
    """Every child thread, where ``iterations`` is not given: those of request 0 first, then of request 1 and so on."""

    def __post_init__(self) -> None:
        if (self.iterations is None) == (self.children is None):
            raise InputError("launch requests need either iterations or children, not both")

    def __len__(self) -> int:
        return len(self.thread)

    @cached_property
    def first_child(self) -> Counts:
        """(requests + 1,) where each request's child threads start in :attr:`children`."""
        return np.concatenate([[0], np.cumsum(self.items)])

    @cached_property
    def work(self) -> Counts:
        """(requests,) serial iterations: the ``local_workload`` that a threshold or a controller looks at."""
        if self.iterations is not None:
            return self.items * self.iterations
        assert self.children is not None
        return np.asarray(sums_between(self.children.work, self.first_child), np.int64)

    def launches(self, threshold: int) -> int:
        """Child kernels if every request above ``threshold`` is launched, nested ones included.

        A nested request has less work than the one that it is part of, so it is never above alone.
        """
        nested = self.children.requests if self.children is not None else None
        return int((self.work > threshold).sum()) + (nested.launches(threshold) if nested is not None else 0)


@dataclass(frozen=True, eq=False)
class Threads:
    """The threads of a grid, in order."""

    base: Counts
    """(threads,) iterations that the thread takes whatever it launches."""
    requests: LaunchRequests | None = None

    @cached_property
    def first_request(self) -> Counts:
        """(threads + 1,) where each thread's requests start in :attr:`requests`."""
        made = self.requests.thread if self.requests is not None else np.zeros(0, np.int64)
        return np.searchsorted(made, np.arange(len(self.base) + 1))

    @cached_property
    def work(self) -> Counts:
        """(threads,) serial iterations of each thread if nothing is launched."""
        if self.requests is None:
            return self.base
        return self.base + np.asarray(sums_between(self.requests.work, self.first_request), np.int64)


def threads_with_loops(work: Counts, base: int = 0) -> Threads:
    """Threads of one loop each: ``work`` (threads,) iterations that one child thread each could take.

    ``base``: iterations that each thread takes besides, whatever it launches.
    """
    thread = np.flatnonzero(work)
    items = work[thread].astype(np.int64)
    return Threads(np.full(len(work), base), LaunchRequests(thread, items, np.ones_like(items)))


@dataclass(frozen=True, eq=False)
class ParentKernel:
    """A kernel that the host launches, after the one before it has ended, and that may launch children."""

    name: str
    block: BlockShape
    child_block: BlockShape
    """The shape of blocks of its children, and of theirs."""
    threads: Threads

    @property
    def blocks(self) -> int:
        """Thread blocks of the grid; the last may have threads without work."""
        return -(-len(self.threads.base) // self.block.threads)


Kernels = tuple[ParentKernel, ...]
"""What the host launches one after another."""


@dataclass(frozen=True, eq=False)
class Benchmark:
    """An application on an input: kernels that the host launches one after another."""

    name: str
    kernels: Kernels
    threshold: int
    """The application's own: requests of more work are launched."""

    @cached_property
    def total_work(self) -> int:
        """Serial iterations of all threads."""
        return int(sum(kernel.threads.work.sum() for kernel in self.kernels))

    @cached_property
    def request_work(self) -> Counts:
        """Work of every request of the parents (nested ones are part of it), ascending."""
        requests = [kernel.threads.requests for kernel in self.kernels]
        return np.sort(np.concatenate([made.work for made in requests if made is not None]))

    @cached_property
    def offloadable(self) -> float:
        """Share of all iterations (0 to 1) that runs in children at threshold 0: the most that can be offloaded."""
        return float(self.request_work.sum() / self.total_work)

    def offload_share(self, threshold: int) -> float:
        """Share of all iterations (0 to 1) that runs in children if every request above ``threshold`` is launched."""
        work = self.request_work
        return float(work[np.searchsorted(work, threshold, side="right") :].sum() / self.total_work)

    def child_launches(self, threshold: int) -> int:
        """Child kernels if every request above ``threshold`` is launched, nested ones included."""
        requests = [kernel.threads.requests for kernel in self.kernels]
        return sum(made.launches(threshold) for made in requests if made is not None)

    def threshold_of(self, share: float) -> int:
        """The threshold whose offloaded share is nearest to ``share`` (0 to 1)."""
        work = self.request_work
        values, starts = np.unique(work, return_index=True)
        above = work.sum() - np.concatenate([[0], np.cumsum(work)])[np.append(starts, len(work))]
        thresholds = np.concatenate([[0], values])
        return int(thresholds[np.argmin(np.abs(above / self.total_work - share))])


BODIES: Final[dict[str, LoopBody]] = {
    # The mark of the neighbour is anywhere in memory, for parents and children alike.
    "BFS": LoopBody(chain=1, dependent=4, instructions=12, parent_lines=1, child_lines=1),
    # The edge and its weight, from lists that lie side by side for a child's lanes; the neighbour's distance; then,
    # where the way is shorter, an atomic minimum: one edge in five, on average over the benchmarks' inputs (9 and
    # 27 %). So in dragon_li, the suite of DTBL's authors.
    "SSSP": LoopBody(chain=2.2, dependent=8, instructions=20, parent_lines=3.2, child_lines=1.2 + 2 / 32),
    # The edge, and the neighbour's colour and number.
    "GC": LoopBody(chain=2, dependent=8, instructions=24, parent_lines=2, child_lines=1 + 1 / 32),
    # A lane of a parent reads a bucket of its own, children share one.
    "JOIN": LoopBody(chain=1, dependent=4, instructions=12, parent_lines=1, child_lines=1 / 16),
    # A stencil on the cells of a refined grid, streamed.
    "AMR": LoopBody(chain=1, dependent=10, instructions=30, parent_lines=0.5, child_lines=0.25),
    # Arithmetic alone: z² + c.
    "Mandel": LoopBody(chain=0, dependent=8, instructions=12, parent_lines=0, child_lines=0),
    # An element of a row of B: its neighbours are in the same lane's row, or in the neighbouring lanes.
    "MM": LoopBody(chain=1, dependent=4, instructions=10, parent_lines=0.25, child_lines=1 / 32),
    # A row of a banded recurrence; its cells lie in shared memory.
    "SA": LoopBody(chain=0, dependent=10, instructions=60, parent_lines=0.1, child_lines=0.1),
}
"""Loop bodies by application, the first part of a benchmark's name.

A parent's lane walks through lists of its own. Whether L1, of 128 lines, keeps them between two turns is seen by L2's
hits (Figure 17): it has 31 of 32 turns of a list that L1 does not keep. On graph500 it hits 92 and 97 % of SSSP's and
GC's lines, but 74 % of BFS's, whose list is one and is not counted."""
L2_HITS: Final[dict[str, float]] = {
    "AMR": 0.036, "BFS-citation": 0.813, "BFS-graph500": 0.739, "SSSP-citation": 0.802, "SSSP-graph500": 0.923,
    "JOIN-uniform": 0.743, "JOIN-gaussian": 0.785, "Mandel": 0.290, "GC-citation": 0.747, "GC-graph500": 0.968,
    "MM-small": 0.998, "MM-large": 0.998, "SA-thaliana": 0.886, "SA-elegans": 0.886,
}  # fmt: skip
"""Share of lines that L2 has: the mean over the schemes of SPAWN's Figure 17 (elegans: as thaliana)."""


def body_of(benchmark: str) -> LoopBody:
    """The loop of a benchmark, by its name; random ones have the mean hit rate of their application.

    Raises:
        InputError: no such application.
    """
    application = benchmark.partition("-")[0]
    if application not in BODIES:
        raise InputError(f"no loop is known of {benchmark!r}; {did_you_mean(application, BODIES)}")
    rates = [rate for name, rate in L2_HITS.items() if name.partition("-")[0] == application]
    return replace(BODIES[application], miss=1.0 - L2_HITS.get(benchmark, sum(rates) / len(rates)))

"""Kernels whose threads may launch kernels: per thread, the work that it must do and the work that it may hand over.

Work is counted in *serial iterations*: turns of the loop that a thread takes if it launches nothing. What an
iteration costs in time or traffic is a matter of the device and the application, not of these types.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
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
class Requests:
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
    """Otherwise every child thread: those of request 0 first, then those of request 1 and so on."""

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
    requests: Requests | None = None

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


def looping(work: Counts, base: int = 0) -> Threads:
    """Threads of one loop each: ``work`` (threads,) iterations that one child thread each could take.

    ``base``: iterations that each thread takes besides, whatever it launches.
    """
    thread = np.flatnonzero(work)
    items = work[thread].astype(np.int64)
    return Threads(np.full(len(work), base), Requests(thread, items, np.ones_like(items)))


@dataclass(frozen=True, eq=False)
class ParentKernel:
    """A kernel that the host launches, after the one before it has ended, and that may launch children."""

    name: str
    block: BlockShape
    child_block: BlockShape
    """Of its children, and of theirs."""
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

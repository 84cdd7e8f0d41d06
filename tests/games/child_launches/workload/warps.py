"""Warps of a grid whose lanes carry equal work, grouped, so that a simulator handles each kind of warp once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.child_launches.workload.launches import Counts, LaunchRequests, Threads, sums_between
from gpusched_env.hardware.occupancy import WARP_THREADS

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class WarpClasses:
    """Kinds of warps; two warps are of one kind if the same lanes' works occur in both, in whatever order."""

    example: Counts
    """(kinds,) a warp of each kind."""
    count: Counts
    """(kinds,) warps of the kind."""
    kind: Counts
    """(warps,) the kind of each warp, in the order of the grid."""


def warp_classes(threads: Threads) -> WarpClasses:
    """The kinds of warps among ``threads``; compared by 64-bit hashes of everything that the lanes carry."""
    _, example, kind, count = np.unique(
        _sums(_mixed(_of_threads(threads)), _warp_bounds(len(threads.base))),
        return_index=True,
        return_inverse=True,
        return_counts=True,
    )
    return WarpClasses(example, count, kind)


def _warp_bounds(threads: int) -> Counts:
    return np.append(np.arange(0, threads, WARP_THREADS), threads)


def _sums(hashes: Hashes, bounds: Counts) -> Hashes:
    return np.asarray(sums_between(hashes, bounds), np.uint64)


def _mixed(values: NDArray[np.integer]) -> Hashes:
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014) after its increment, so that 0 does not stay 0."""
    x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _of_threads(threads: Threads) -> Hashes:
    own = _mixed(threads.base)
    if threads.requests is None:
        return own
    requests, first = threads.requests, threads.first_request
    turn = np.arange(len(requests)) - first[requests.thread]
    return _mixed(own + _sums(_mixed(_mixed(turn) ^ _of_requests(requests)), first))


def _of_requests(requests: LaunchRequests) -> Hashes:
    shape = _mixed(requests.items)
    if requests.iterations is not None:
        return _mixed(shape ^ requests.iterations.astype(np.uint64))
    assert requests.children is not None
    first = requests.first_child
    warp = (np.arange(first[-1]) - np.repeat(first[:-1], requests.items)) // WARP_THREADS
    return _mixed(shape + _sums(_mixed(_mixed(warp) ^ _of_threads(requests.children)), first))

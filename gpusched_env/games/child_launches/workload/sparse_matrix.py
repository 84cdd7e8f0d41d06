"""Sparse matrix times matrix: a parent thread a row or a few of one, a child thread a column of the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpusched_env.games.child_launches.workload.launches import (
    BlockShape,
    Counts,
    Kernels,
    ParentKernel,
    Requests,
    Threads,
    sums_between,
)

PARENT: Final = BlockShape(32, 32)
"""One queue a parent block instead of one a child costs the paper 2 % (Figure 8): of 1,024 threads there are then more
blocks than the 31 queues for children."""
CHILD: Final = BlockShape(32, 32)


@dataclass(frozen=True, eq=False)
class SparsePattern:
    """Where a matrix has its nonzeros, as compressed rows."""

    first: Counts
    """(rows + 1,) where each row's nonzeros start."""
    column: Counts
    """(nonzeros,)."""


def random_pattern(rows: int, columns: int, density: float, *, seed: int) -> SparsePattern:
    """Each element is nonzero with probability ``density``, independently."""
    rng = np.random.default_rng(seed)
    counts, parts = np.zeros(rows, np.int64), []
    for row in range(rows):
        nonzeros = np.flatnonzero(rng.random(columns, np.float32) < density)
        counts[row] = nonzeros.size
        parts.append(nonzeros)
    return SparsePattern(np.concatenate([[0], np.cumsum(counts)]), np.concatenate(parts))


def multiply(multiplicand: SparsePattern, columns: int, rows_a_thread: int = 1, own_share: float = 0.0) -> Kernels:
    """One kernel: the multiplicand times a multiplier of ``columns`` columns, stored as a dense matrix.

    A thread forms ``rows_a_thread`` whole rows of the product, a request each. An iteration is a multiply-add: each
    column takes as many as the row has nonzeros, so that a child thread has as many iterations, whatever its column.
    ``own_share`` (0 to below 1) of a thread's work is its own, whatever it launches.
    """
    nonzeros = np.diff(multiplicand.first)
    rows = np.flatnonzero(nonzeros)
    requests = Requests(rows // rows_a_thread, np.full(len(rows), columns), nonzeros[rows])
    bounds = np.append(np.arange(0, len(nonzeros), rows_a_thread), len(nonzeros))
    products = np.asarray(sums_between(nonzeros * columns, bounds))
    base = np.rint(products * own_share / (1 - own_share)).astype(np.int64)
    return (ParentKernel("rows", PARENT, CHILD, Threads(base, requests)),)

"""Relational hash join: a thread takes tuples of the probing relation and scans the bucket of each one's key."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from gpusched_env.games.child_launches.workload.launches import (
    BlockShape,
    Counts,
    Kernels,
    ParentKernel,
    Requests,
    Threads,
    looping,
)

PARENT: Final = BlockShape(64, 24)
"""One queue a parent block instead of one a child costs the paper nothing (Figure 8: 0.85 and 0.96), so there are many
more blocks than the 31 queues for children; with one warp each, the 208 block slots would hold less than the 26.8 % of
all warps that run (Figure 16)."""
CHILD: Final = BlockShape(32, 24)

Distribution = Literal["uniform", "gaussian"]


def keys(distribution: Distribution, tuples: int, buckets: int, rng: np.random.Generator) -> Counts:
    """(tuples,) keys from 0 to ``buckets`` - 1: uniform, or normal around the middle with buckets / 8 as deviation."""
    if distribution == "uniform":
        return rng.integers(0, buckets, tuples)
    return np.clip(rng.normal(buckets / 2, buckets / 8, tuples), 0, buckets - 1).astype(np.int64)


def hash_join(probing: Counts, building: Counts, buckets: int, sampled: int = 0, tuples_a_thread: int = 1) -> Kernels:
    """Each thread compares each of its tuples, a request each, with all tuples of the bucket, one an iteration.

    Keys of both relations ((tuples,) each) are hashed by their own value modulo ``buckets``. The first ``sampled``
    tuples are probed by a kernel of their own, as joins do that estimate the size of the result from a sample
    before they make room for it; a thread has one of them, and ``tuples_a_thread`` consecutive ones of the others.
    """
    sizes = np.bincount(building % buckets, minlength=buckets)
    sample = looping(sizes[probing[:sampled] % buckets])
    work = sizes[probing[sampled:] % buckets]
    found = np.flatnonzero(work)
    requests = Requests(found // tuples_a_thread, work[found], np.ones_like(found))
    rest = Threads(np.zeros(-(-len(work) // tuples_a_thread), np.int64), requests)
    parts = {"sample": sample, "probe": rest}
    return tuple(ParentKernel(name, PARENT, CHILD, part) for name, part in parts.items() if part.base.size)


def random_join(
    distribution: Distribution,
    probing: int,
    building: int,
    buckets: int,
    sampled: int = 0,
    tuples_a_thread: int = 1,
    *,
    seed: int,
) -> Kernels:
    """The join of two relations of so many tuples whose keys have the same distribution.

    Apart from the sample, the probing tuples are in the order of their keys, as an index has them.
    """
    rng = np.random.default_rng(seed)
    relations = [keys(distribution, tuples, buckets, rng) for tuples in (probing, building)]
    relations[0][sampled:].sort()
    return hash_join(relations[0], relations[1], buckets, sampled, tuples_a_thread)

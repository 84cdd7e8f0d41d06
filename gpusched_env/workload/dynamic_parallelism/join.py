"""Relational hash join: a thread a tuple of the probing relation, which scans the bucket of its key."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from gpusched_env.workload.dynamic_parallelism.launches import BlockShape, Counts, Kernels, ParentKernel, looping

PARENT: Final = BlockShape(256, 24)
CHILD: Final = BlockShape(32, 24)

Distribution = Literal["uniform", "gaussian"]


def keys(distribution: Distribution, tuples: int, buckets: int, rng: np.random.Generator) -> Counts:
    """(tuples,) keys from 0 to ``buckets`` - 1: uniform, or normal around the middle with buckets / 8 as deviation."""
    if distribution == "uniform":
        return rng.integers(0, buckets, tuples)
    return np.clip(rng.normal(buckets / 2, buckets / 8, tuples), 0, buckets - 1).astype(np.int64)


def hash_join(probing: Counts, building: Counts, buckets: int, sampled: int = 0) -> Kernels:
    """Each thread compares its tuple with all tuples of the bucket, one an iteration.

    Keys of both relations ((tuples,) each) are hashed by their own value modulo ``buckets``. The first ``sampled``
    tuples are probed by a kernel of their own, as joins do that estimate the size of the result from a sample
    before they make room for it.
    """
    sizes = np.bincount(building % buckets, minlength=buckets)
    work = sizes[probing % buckets]
    parts = {"sample": work[:sampled], "probe": work[sampled:]}
    return tuple(ParentKernel(name, PARENT, CHILD, looping(part)) for name, part in parts.items() if part.size)


def random_join(
    distribution: Distribution, probing: int, building: int, buckets: int, sampled: int = 0, *, seed: int
) -> Kernels:
    """The join of two relations of so many tuples whose keys have the same distribution."""
    rng = np.random.default_rng(seed)
    relations = [keys(distribution, tuples, buckets, rng) for tuples in (probing, building)]
    return hash_join(relations[0], relations[1], buckets, sampled)

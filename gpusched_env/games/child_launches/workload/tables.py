"""Applications whose threads take rows of a table: sequence alignment by seed and extend, relational hash join, and
sparse matrix times matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.child_launches.workload.launches import (
    BlockShape,
    Counts,
    Kernels,
    LaunchRequests,
    ParentKernel,
    Threads,
    sums_between,
    threads_with_loops,
)

ALIGNMENT_PARENT: Final = BlockShape(32, 40)
ALIGNMENT_CHILD: Final = BlockShape(32, 40)

Bases = NDArray[np.uint8]
"""Letters A, T, C and G as 0 to 3."""


@dataclass(frozen=True)
class Species:
    """A genome in small: independent letters with families of repeats strewn in."""

    bases: int
    """Length of the genome, bases."""
    gc_content: float
    """Share of G and C among the letters outside of repeats, 0 to 1."""
    repeat_share: float = 0.0
    """Share of the genome that is repeats, 0 to 1."""
    families: int = 1
    """Families of repeats; their numbers of copies fall off like 1 / rank."""
    unit: int = 100
    """Length of a copy."""
    divergence: float = 0.0
    """Chance that a letter of a copy differs from its family's."""


def genome(species: Species, *, seed: int) -> Bases:
    """(bases,) a random genome; copies lie at random multiples of the unit's length."""
    rng = np.random.default_rng(seed)
    strong = rng.random(species.bases, np.float32) < species.gc_content
    letters: Bases = 2 * strong.astype(np.uint8) + rng.integers(0, 2, species.bases, np.uint8)
    weights = 1 / np.arange(1, species.families + 1)
    copies = np.rint(species.repeat_share * species.bases / species.unit * weights / weights.sum()).astype(np.int64)
    consensus = rng.integers(0, 4, (species.families, species.unit), np.uint8)
    placed = consensus[np.repeat(np.arange(species.families), copies)]
    changed = rng.random(placed.shape, np.float32) < species.divergence
    placed = (placed + changed * rng.integers(1, 4, placed.shape, np.uint8)) % 4
    slots = rng.permutation(species.bases // species.unit)[: len(placed)]
    letters[(slots[:, None] * species.unit + np.arange(species.unit)).ravel()] = placed.ravel()
    return letters


def seed_codes(letters: Bases, length: int) -> Counts:
    """(bases - length + 1,) each run of ``length`` letters as a number in base 4."""
    places = len(letters) - length + 1
    codes = np.zeros(places, np.int64)
    for letter in range(length):
        codes = codes * 4 + letters[letter : letter + places]
    return codes


def candidates(letters: Bases, starts: Counts, seed_length: int) -> Counts:
    """(reads,) places of the genome that share the first ``seed_length`` letters of the read from each start."""
    codes = seed_codes(letters, seed_length)
    return np.bincount(codes)[codes[starts]]


def align(lists: Counts, section: int, read_length: int) -> Kernels:
    """One kernel: each thread takes ``section`` consecutive reads of ``read_length`` letters, a request each.

    ``lists``: (reads,) candidate places of each. An iteration is a row of the banded dynamic programme that
    compares a read with one place; a child thread takes one place, so ``read_length`` iterations.
    """
    reads = np.arange(len(lists))
    requests = LaunchRequests(reads // section, lists, np.full(len(lists), read_length))
    threads = Threads(np.zeros(-(-len(lists) // section), np.int64), requests)
    return (ParentKernel("sections", ALIGNMENT_PARENT, ALIGNMENT_CHILD, threads),)


def align_species(
    species: Species, reads: int, section: int, read_length: int = 100, seed_length: int = 9, *, seed: int
) -> Kernels:
    """The alignment of reads from random places of a random genome."""
    letters = genome(species, seed=seed)
    starts = np.random.default_rng([seed, 1]).integers(0, len(letters) - read_length, reads)
    return align(candidates(letters, starts, seed_length), section, read_length)


JOIN_PARENT: Final = BlockShape(64, 24)
"""One queue a parent block instead of one a child costs the paper nothing (Figure 8: 0.85 and 0.96), so there are many
more blocks than the 31 queues for children; with one warp each, the 208 block slots would hold less than the 26.8 % of
all warps that run (Figure 16)."""
JOIN_CHILD: Final = BlockShape(32, 24)

Distribution = Literal["uniform", "gaussian"]


def keys(
    distribution: Distribution, tuples: int, buckets: int, rng: np.random.Generator, deviation: float = 1 / 8
) -> Counts:
    """(tuples,) keys from 0 to ``buckets`` - 1: uniform, or normal around the middle with ``deviation`` in units of
    ``buckets``, where what lies outside is at the ends."""
    if distribution == "uniform":
        return rng.integers(0, buckets, tuples)
    return np.clip(rng.normal(buckets / 2, buckets * deviation, tuples), 0, buckets - 1).astype(np.int64)


def hash_join(probing: Counts, building: Counts, buckets: int, sampled: int = 0, tuples_a_thread: int = 1) -> Kernels:
    """Each thread compares each of its tuples, a request each, with all tuples of the bucket, one an iteration.

    Keys of both relations ((tuples,) each) are hashed by their own value modulo ``buckets``. The first ``sampled``
    tuples are probed by a kernel of their own, as joins do that estimate the size of the result from a sample
    before they make room for it; a thread has one of them, and ``tuples_a_thread`` of the others, which lie as far
    apart as there are threads.
    """
    sizes = np.bincount(building % buckets, minlength=buckets)
    sample = threads_with_loops(sizes[probing[:sampled] % buckets])
    work = sizes[probing[sampled:] % buckets]
    threads = -(-len(work) // tuples_a_thread)
    found = np.flatnonzero(work)
    found = found[np.argsort(found % max(threads, 1), kind="stable")]
    requests = LaunchRequests(found % max(threads, 1), work[found], np.ones_like(found))
    rest = Threads(np.zeros(threads, np.int64), requests)
    parts = {"sample": sample, "probe": rest}
    return tuple(ParentKernel(name, JOIN_PARENT, JOIN_CHILD, part) for name, part in parts.items() if part.base.size)


def random_join(
    distribution: Distribution,
    probing: int,
    building: int,
    buckets: int,
    sampled: int = 0,
    tuples_a_thread: int = 1,
    deviation: float = 1 / 8,
    *,
    seed: int,
) -> Kernels:
    """The join of two relations of so many tuples whose keys have the same distribution.

    Apart from the sample, the probing tuples are in the order of their keys, as an index has them.
    """
    rng = np.random.default_rng(seed)
    relations = [keys(distribution, tuples, buckets, rng, deviation) for tuples in (probing, building)]
    relations[0][sampled:].sort()
    return hash_join(relations[0], relations[1], buckets, sampled, tuples_a_thread)


PRODUCT_PARENT: Final = BlockShape(32, 32)
"""One queue a parent block instead of one a child costs the paper 2 % (Figure 8): of 1,024 threads there are then more
blocks than the 31 queues for children."""
PRODUCT_CHILD: Final = BlockShape(32, 32)


@dataclass(frozen=True, eq=False)
class SparsePattern:
    """Where a matrix has its nonzeros, as compressed rows."""

    first: Counts
    """(rows + 1,) where each row's nonzeros start."""
    column: Counts
    """(nonzeros,) the column of each nonzero."""


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
    requests = LaunchRequests(rows // rows_a_thread, np.full(len(rows), columns), nonzeros[rows])
    bounds = np.append(np.arange(0, len(nonzeros), rows_a_thread), len(nonzeros))
    products = np.asarray(sums_between(nonzeros * columns, bounds))
    base = np.rint(products * own_share / (1 - own_share)).astype(np.int64)
    return (ParentKernel("rows", PRODUCT_PARENT, PRODUCT_CHILD, Threads(base, requests)),)

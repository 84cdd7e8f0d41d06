"""Sequence alignment by seed and extend: a parent thread a section of the reads, a child thread a candidate place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.child_launches.workload.launches import (
    BlockShape,
    Counts,
    Kernels,
    ParentKernel,
    Requests,
    Threads,
)

PARENT: Final = BlockShape(32, 40)
CHILD: Final = BlockShape(32, 40)

Bases = NDArray[np.uint8]
"""Letters A, T, C and G as 0 to 3."""


@dataclass(frozen=True)
class Species:
    """A genome in small: independent letters with families of repeats strewn in."""

    bases: int
    """Length."""
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
    requests = Requests(reads // section, lists, np.full(len(lists), read_length))
    threads = Threads(np.zeros(-(-len(lists) // section), np.int64), requests)
    return (ParentKernel("sections", PARENT, CHILD, threads),)


def align_species(
    species: Species, reads: int, section: int, read_length: int = 100, seed_length: int = 9, *, seed: int
) -> Kernels:
    """The alignment of reads from random places of a random genome."""
    letters = genome(species, seed=seed)
    starts = np.random.default_rng([seed, 1]).integers(0, len(letters) - read_length, reads)
    return align(candidates(letters, starts, seed_length), section, read_length)

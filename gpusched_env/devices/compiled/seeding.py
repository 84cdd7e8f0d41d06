"""Generators as NumPy seeds them, so that a reset need not ask NumPy: ``default_rng([*words, tenant, stream])``.

NumPy's ``SeedSequence`` hashes words of 32 bits into a pool of four and draws from that what PCG64 starts with
(M. E. O'Neill, *Developing a seed_seq Alternative*, 2015). Its own takes as long as a short episode.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import problem, randoms
from gpusched_env.devices.compiled.hosting import U1, U32, U63, step
from gpusched_env.workload.host import RANDOM_STREAMS

POOL: Final = 4
"""Words of the pool."""
FIRST_IN, FACTOR_IN = np.uint64(0x43B0D7E5), np.uint64(0x931E8875)
"""The multiplier of the hash on the way into the pool, and what it is multiplied with each time."""
FIRST_OUT, FACTOR_OUT = np.uint64(0x8B51F9DD), np.uint64(0x58F38DED)
"""The same on the way out of it."""
LEFT, RIGHT = np.uint64(0xCA01F9DD), np.uint64(0x4973F715)
U16, WORD = np.uint64(16), np.uint64(0xFFFFFFFF)


SCRATCH: Final = 2 * POOL
"""Words that a generator is seeded in."""


def key_of(seed: int, *more: int) -> NDArray[np.uint64]:
    """A seed (>= 0) in words of 32 bits, the lowest first, and ``more`` words behind it."""
    words = [seed >> low & 0xFFFFFFFF for low in range(0, max(1, seed.bit_length()), 32)]
    return np.array([*words, *more], np.uint64)


@inlined
def hashed(word, multiplier, factor):
    """A word, hashed; the multiplier is the one before."""
    word = ((word ^ multiplier) * (multiplier * factor & WORD)) & WORD
    return word ^ (word >> U16)


@inlined
def mixed(left, right):
    """Two words in one."""
    word = (LEFT * left - RIGHT * right) & WORD
    return word ^ (word >> U16)


@called
def seed_generator(random, words, scratch):
    """Set a generator (:data:`.layout.RANDOM`) to the start of ``numpy.random.default_rng(words)``.

    Args:
        words: uint64 ``(n,)``.
        scratch: uint64 ``(SCRATCH,)``, written.
    """
    pool, drawn = scratch[:POOL], scratch[POOL:]
    multiplier = FIRST_IN
    for k in range(POOL):
        pool[k] = hashed(words[k] if k < words.size else np.uint64(0), multiplier, FACTOR_IN)
        multiplier = multiplier * FACTOR_IN & WORD
    for source in range(max(POOL, words.size)):
        for k in range(POOL):
            if source != k:
                word = pool[source] if source < POOL else words[source]
                pool[k] = mixed(pool[k], hashed(word, multiplier, FACTOR_IN))
                multiplier = multiplier * FACTOR_IN & WORD
    multiplier = FIRST_OUT
    for k in range(POOL):
        low = hashed(pool[2 * k % POOL], multiplier, FACTOR_OUT)
        multiplier = multiplier * FACTOR_OUT & WORD
        drawn[k] = low | (hashed(pool[(2 * k + 1) % POOL], multiplier, FACTOR_OUT) << U32)
        multiplier = multiplier * FACTOR_OUT & WORD
    random.increment_high = (drawn[2] << U1) | (drawn[3] >> U63)
    random.increment_low = (drawn[3] << U1) | U1
    random.high = random.low = np.uint64(0)
    step(random)
    random.high += drawn[0]
    random.low += drawn[1]
    if random.low < drawn[1]:
        random.high += U1
    step(random)


@called
def seed_tenants(w, words, scratch):
    """Seed the generators of all tenants.

    Args:
        words: of the episode's seed, and room for two more, uint64; written.
        scratch: uint64 ``(SCRATCH,)``, written.
    """
    for tenant in range(problem(w).tenants):
        for stream in range(len(RANDOM_STREAMS)):
            words[-2], words[-1] = np.uint64(tenant), np.uint64(RANDOM_STREAMS[stream])
            seed_generator(randoms(w, tenant, stream), words, scratch)

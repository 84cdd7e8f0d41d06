"""Sets of SMs as bits: bit ``rank % 64`` of word ``rank // 64`` says whether the SM of that rank is in.

A set is given by its address and its number of words, 3 for 132 SMs. Ranks are those of the placement order
(:func:`~gpusched_env.hardware.placement.sm_order`).
"""

from __future__ import annotations

import numpy as np

from gpusched_env.compiling import inlined
from gpusched_env.devices.compiled.access import word
from gpusched_env.devices.compiled.intrinsics import lowest, popcount

BITS = 64
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
NONE = np.uint64(0)
ONE = np.uint64(1)


def words_for(sms: int) -> int:
    """Words of a set over ``sms`` SMs."""
    return -(-sms // BITS)


@inlined
def size(at, words):
    """Number of SMs in a set."""
    total = 0
    for k in range(words):
        total += popcount(word(at, k).bits)
    return total


@inlined
def common(a, b, words):
    """Number of SMs that are in both sets."""
    total = 0
    for k in range(words):
        total += popcount(word(a, k).bits & word(b, k).bits)
    return total


@inlined
def first(at, words):
    """Lowest rank in a set; -1 if it is empty."""
    for k in range(words):
        if word(at, k).bits != NONE:
            return k * BITS + lowest(word(at, k).bits)
    return -1


@inlined
def contains(at, rank):
    """Whether an SM is in a set."""
    return (word(at, rank // BITS).bits >> np.uint64(rank % BITS)) & ONE != NONE


@inlined
def clear(at, words):
    """Make a set empty."""
    for k in range(words):
        word(at, k).bits = NONE


@inlined
def only(at, words, rank):
    """Make a set that of one SM."""
    clear(at, words)
    word(at, rank // BITS).bits = ONE << np.uint64(rank % BITS)


@inlined
def copy(source, target, words):
    """Make ``target`` equal to ``source``."""
    for k in range(words):
        word(target, k).bits = word(source, k).bits


@inlined
def add(target, other, words):
    """Put the SMs of another set in."""
    for k in range(words):
        word(target, k).bits |= word(other, k).bits


@inlined
def drop(target, other, words):
    """Take the SMs of another set out."""
    for k in range(words):
        word(target, k).bits &= ~word(other, k).bits


@inlined
def keep(target, other, words):
    """Keep only the SMs that are in another set too."""
    for k in range(words):
        word(target, k).bits &= word(other, k).bits


@inlined
def ring(at, words, start, count, sms):
    """Make a set that of ``count`` ranks from ``start`` on, wrapping around at ``sms``."""
    end = start + count
    for k in range(words):
        bits = upto(k, min(end, sms)) & ~upto(k, start)
        if end > sms:
            bits |= upto(k, end - sms)
        word(at, k).bits = bits


@inlined
def upto(k, rank):
    """Word ``k`` of the set of all ranks below ``rank``."""
    if rank >= (k + 1) * BITS:
        return ALL
    if rank <= k * BITS:
        return NONE
    return (ONE << np.uint64(rank - k * BITS)) - ONE


@inlined
def keep_first(at, words, count):
    """Drop all but the ``count`` lowest ranks of a set."""
    left = count
    for k in range(words):
        bits = word(at, k).bits
        inside = popcount(bits)
        if inside <= left:
            left -= inside
            continue
        kept = NONE
        for _ in range(left):
            bit = bits & (~bits + ONE)
            kept |= bit
            bits ^= bit
        word(at, k).bits = kept
        left = 0

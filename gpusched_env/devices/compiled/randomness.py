"""NumPy's PCG64 generator on plain state, so that draws equal those of ``numpy.random.Generator``.

A record :data:`~gpusched_env.devices.compiled.layout.RANDOM` holds the words of the 128-bit state and increment
(O'Neill, *PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms*, 2014: XSL-RR output).
"""

from __future__ import annotations

import numpy as np

from gpusched_env.compiling import inlined

MULTIPLIER_HIGH = np.uint64(2549297995355413924)
MULTIPLIER_LOW = np.uint64(4865540595714422341)
MASK_32 = np.uint64(0xFFFFFFFF)
U0, U1, U11, U32, U58, U63 = (np.uint64(n) for n in (0, 1, 11, 32, 58, 63))
TO_UNIT = 1.0 / 9007199254740992.0


def generator_state(key: list[int]) -> tuple[int, int, int, int]:
    """The words with which ``numpy.random.default_rng(key)`` starts."""
    state = np.random.PCG64(key).state["state"]
    low = (1 << 64) - 1
    return (state["state"] >> 64, state["state"] & low, state["inc"] >> 64, state["inc"] & low)


@inlined
def high_product(a, b):
    """Upper 64 bits of a product of two uint64."""
    a_high = a >> U32
    a_low = a & MASK_32
    b_high = b >> U32
    b_low = b & MASK_32
    middle = a_high * b_low + ((a_low * b_low) >> U32)
    carried = (middle & MASK_32) + a_low * b_high
    return a_high * b_high + (middle >> U32) + (carried >> U32)


@inlined
def uniform(random):
    """The next draw of ``Generator.random()``: 53 bits, 0 <= u < 1."""
    low = random.low * MULTIPLIER_LOW
    high = high_product(random.low, MULTIPLIER_LOW) + random.high * MULTIPLIER_LOW + random.low * MULTIPLIER_HIGH
    new_low = low + random.increment_low
    carry = U1 if new_low < low else U0
    new_high = high + random.increment_high + carry
    random.high = new_high
    random.low = new_low
    mixed = new_high ^ new_low
    turn = new_high >> U58
    mixed = (mixed >> turn) | (mixed << ((U63 - turn + U1) & U63))
    return np.float64(mixed >> U11) * TO_UNIT

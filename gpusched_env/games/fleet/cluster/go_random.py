"""The random numbers of Go's ``math/rand``, of which the published simulator shuffles pods and nodes.

It is an additive lagged Fibonacci generator, ``x[n] = x[n - 607] + x[n - 273]`` modulo 2^64 (D. P. Mitchell and J. A.
Reeds). Seeds stir a fixed table: the state after 7.8e12 steps from seed 1. That many steps are one power of the step,
taken by squaring polynomials.
"""

from __future__ import annotations

import functools
from collections.abc import MutableSequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

LAG, TAP = 607, 273
WORD: Final = 2**64
SHIFTS, TABLE_SHIFTS = (40, 20, 0), (20, 10, 0)
"""Bits by which the three numbers that make up a value of the state are moved: of a seed, and of the table's."""
STEPS: Final = 7_800_000_000_000
"""Steps between the state of seed 1 and the table."""
STIRRED: Final = 20
"""Numbers of a seed that are not used."""
MULTIPLIER, MODULUS = 48271, 2**31 - 1
"""Of the congruential generator (Park and Miller) that makes a state of a seed."""
SEED_OF_ZERO: Final = 89_482_311


class GoRandom:
    """As ``rand.New(rand.NewSource(seed))``."""

    def __init__(self, seed: int) -> None:
        """
        Args:
            seed: at least 0.
        """
        self._state = [one ^ other for one, other in zip(_seeded(seed, SHIFTS), _table(), strict=True)]
        self._feed, self._tap = LAG - TAP, 0

    def next63(self) -> int:
        """63 random bits (``Int63``)."""
        self._tap, self._feed = (self._tap - 1) % LAG, (self._feed - 1) % LAG
        found = self._state[self._feed] = (self._state[self._feed] + self._state[self._tap]) % WORD
        return found % (WORD // 2)

    def below(self, end: int) -> int:
        """A whole number from 0 to below ``end``, 1 to 2^31 - 1 (``Intn``)."""
        if end & (end - 1) == 0:
            return (self.next63() >> 32) & (end - 1)
        most = 2**31 - 1 - 2**31 % end
        found = self.next63() >> 32
        while found > most:
            found = self.next63() >> 32
        return found % end

    def shuffle(self, values: MutableSequence[Any]) -> None:
        """Bring values into a random order (``Shuffle``: Fisher and Yates, with Lemire's multiplication)."""
        for last in range(len(values) - 1, 0, -1):
            end = last + 1
            product = (self.next63() >> 31) * end
            if product % 2**32 < end:
                least = 2**32 % end
                while product % 2**32 < least:
                    product = (self.next63() >> 31) * end
            other = product >> 32
            values[last], values[other] = values[other], values[last]

    def permutation(self, count: int) -> NDArray[np.int64]:
        """The numbers below ``count`` in a random order (``Perm``)."""
        found: list[int] = []
        for number in range(count):
            place = self.below(number + 1)
            found.append(number)
            found[number], found[place] = found[place], number
        return np.array(found, np.int64)


def _seeded(seed: int, shifts: tuple[int, ...]) -> list[int]:
    """The state that a seed makes, before it is stirred."""
    number, found = seed % MODULUS or SEED_OF_ZERO, []
    for _ in range(STIRRED):
        number = number * MULTIPLIER % MODULUS
    for _ in range(LAG):
        value = 0
        for shift in shifts:
            number = number * MULTIPLIER % MODULUS
            value ^= number << shift
        found.append(value % WORD)
    return found


@functools.cache
def _table() -> tuple[int, ...]:
    """The state of seed 1 after :data:`STEPS` steps, as it lies in memory."""
    feed = LAG - TAP
    state = _seeded(1, TABLE_SHIFTS)
    values = [state[(feed - 1 - place) % LAG] for place in range(LAG)]
    """In the order in which steps come to them."""
    for place in range(LAG):
        values.append((values[place] + values[place + feed]) % WORD)
    factors, sequence = _power_of_step(STEPS), np.array(values, np.uint64)
    table = [0] * LAG
    for place in range(LAG):
        step = STEPS - LAG + place
        table[(feed - 1 - step) % LAG] = int((factors * sequence[place : place + LAG]).sum(dtype=np.uint64))
    return tuple(table)


def _power_of_step(steps: int) -> NDArray[np.uint64]:
    """The factors by which so many steps take a value from the :data:`LAG` values before it."""
    found, step = np.zeros(LAG, np.uint64), np.zeros(LAG, np.uint64)
    found[0] = step[1] = 1
    for bit in f"{steps:b}":
        found = _reduced(np.convolve(found, found))
        if bit == "1":
            found = _reduced(np.convolve(found, step))
    return found


def _reduced(factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A polynomial modulo that of the generator, ``x^607 = x^334 + 1``."""
    while len(factors) > LAG:
        above = factors[LAG:]
        factors = np.pad(factors[:LAG], (0, max(0, len(above) - TAP)))
        factors[: len(above)] += above
        factors[LAG - TAP : LAG - TAP + len(above)] += above
    return factors

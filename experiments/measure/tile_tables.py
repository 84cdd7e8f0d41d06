"""What blocks of a consumer and its producer do under a policy, as tables that a kernel reads.

They are made by the laws of :mod:`gpusched_env.hardware.tiles`, which both simulated devices call.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.hardware import tiles as laws
from gpusched_env.hardware.tiles import Pair

STREAM: Final = "stream"
"""Stream order: nothing is posted."""
UNGUARDED: Final = "unguarded"
"""Beside each other, and nothing waits: the control, whose consumer reads tiles that are not there."""
POLICIES: Final = {"row": laws.ROW, "tile": laws.TILE}


@dataclass(frozen=True, eq=False)
class TileTables:
    """Of two products, the tiles of the first one of which are the steps of the second one's blocks."""

    post: NDArray[np.int32]
    """(tiles,) semaphore that a tile of the producer posts."""
    awaited: NDArray[np.int32]
    """(blocks, waits) semaphore of each wait of a block of the consumer."""
    before: NDArray[np.int32]
    """(blocks, waits) step before which it waits, ascending."""
    value: int
    """Posts of a semaphore that a wait needs."""
    semaphores: int

    @property
    def waits(self) -> int:
        """Of a block."""
        return int(self.awaited.shape[1])


def tables_of(policy: str, producer: tuple[int, int], consumer: tuple[int, int]) -> TileTables:
    """The tables of a policy: ``stream``, ``unguarded``, ``row`` or ``tile``.

    Args:
        policy: its name.
        producer: rows and columns of tiles.
        consumer: the same; as many rows.

    Raises:
        InputError: there is no such policy, or the rows differ.
    """
    if policy not in (STREAM, UNGUARDED, *POLICIES) or producer[0] != consumer[0]:
        raise InputError(
            f"policy {policy!r} for {producer[0]} and {consumer[0]} rows of tiles: must be one of "
            f"{', '.join((STREAM, UNGUARDED, *POLICIES))}, for as many rows"
        )
    pair = Pair(
        POLICIES.get(policy, laws.KERNEL), 1, *producer, *consumer, consumer_slices=1, needs=laws.NEEDS_ROW, fold=1,
        lead=0.0,
    )  # fmt: skip
    blocks = range(consumer[0] * consumer[1])
    waits = [range(laws.waits_of(pair, block)) for block in blocks]
    steps = [laws.steps_of(pair, block) for block in blocks]
    awaited = [[laws.awaited_semaphore(pair, block, number) for number in waits[block]] for block in blocks]
    before = [[round(laws.work_before(pair, block, n) * steps[block]) for n in waits[block]] for block in blocks]
    shape = (len(blocks), len(waits[0]))
    return TileTables(
        np.array([laws.semaphore_of(pair, tile) for tile in range(producer[0] * producer[1])], np.int32),
        np.array(awaited, np.int32).reshape(shape),
        np.array(before, np.int32).reshape(shape),
        laws.awaited_value(pair, 0),
        laws.semaphores(pair),
    )

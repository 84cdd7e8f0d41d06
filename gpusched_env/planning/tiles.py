"""How long two kernels take whose tiles are synchronised: a list of block slots, filled in order.

Blocks last as long as profiles say, wherever they are. Those of the producer go first; a block of the consumer takes
the slot that is free first, and holds it while it waits. Schedulers ask it, and observations show what it says
(:mod:`gpusched_env.envs.extra_columns`).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached, called, law
from gpusched_env.hardware import tiles as laws
from gpusched_env.hardware.specs import TileCosts
from gpusched_env.hardware.tiles import Pair

Floats = NDArray[np.float64]

MOST: Final = 16_384
"""Slots, or tiles or blocks of a kernel, of a pair that can be predicted."""
WORKED_IN: Final = 3
"""Rows of scratch: when slots are free, when tiles have ended, when semaphores are posted."""
KEY: Final = 20
"""Numbers that a prediction follows from."""
ENTRY: Final = 32
"""Numbers of a remembered prediction: whether there is one, what it follows from, and the time."""
SCRATCH: Final = (WORKED_IN + 8, MOST)
"""Shape of what :func:`pair_us` works in, and remembers what it found; zeros at first. More rows remember more."""
BATCH_SCRATCH: Final = (WORKED_IN + 128, MOST)
"""Shape of scratch for many environments, each with pairs of its own."""


class KernelBlocks(NamedTuple):
    """The blocks of a kernel on a GPU."""

    number: int
    slots: int
    """Blocks that run at once."""
    block_us: float


class Charges(NamedTuple):
    """What a block pays: of :class:`~gpusched_env.hardware.specs.TileCosts`."""

    post_us: float
    wait_us: float
    order_us: float


FREE: Final = Charges(0.0, 0.0, 0.0)


def charges_of(costs: TileCosts) -> Charges:
    """What synchronising costs on a GPU."""
    return Charges(costs.post_us, costs.wait_us, costs.order_us)


@law
def blocks_of(number: int, slots: int, duration_us: float) -> KernelBlocks:
    """The blocks of a kernel that takes ``duration_us`` alone."""
    return KernelBlocks(number, slots, duration_us / -(-number // slots))


@law
def is_predictable(pair: Pair, producer: KernelBlocks, consumer: KernelBlocks) -> bool:
    """Whether a pair is small enough for :data:`SCRATCH`, and for the time of a decision."""
    tiles = max(pair.rows * pair.columns, pair.consumer_rows * pair.consumer_columns)
    return max(min(producer.slots, consumer.slots), tiles, producer.number, consumer.number) <= MOST


@cached()
def pair_us(
    pair: Pair, producer: KernelBlocks, consumer: KernelBlocks, charges: Charges, order: int, scratch: Floats
) -> float:
    """Time from the start of the producer to the end of the consumer.

    The same pairs are asked for at every decision of an episode: what was found is remembered.

    Args:
        pair: under a policy; :data:`~gpusched_env.hardware.tiles.KERNEL`: the consumer starts behind the producer.
        producer, consumer: their blocks; of a pair that :func:`is_predictable`.
        charges: of synchronising.
        order: in which blocks take their tiles.
        scratch: of shape :data:`SCRATCH` or with more rows, zeros at first, written.
    """
    key = (
        float(pair.policy), float(pair.stride), float(pair.rows), float(pair.columns), float(pair.consumer_rows),
        float(pair.consumer_columns), float(pair.consumer_slices), float(pair.needs), float(pair.fold), pair.lead,
        float(producer.number), float(producer.slots), producer.block_us,
        float(consumer.number), float(consumer.slots), consumer.block_us,
        charges.post_us, charges.wait_us, charges.order_us, float(order),
    )  # fmt: skip
    place = _place_of(key, (scratch.shape[0] - WORKED_IN) * (MOST // ENTRY))
    entry = scratch[WORKED_IN + place // MOST, place % MOST : place % MOST + ENTRY]
    known = entry[0] == 1.0
    for number in range(KEY):
        known = known and entry[1 + number] == key[number]
    if not known:
        for number in range(KEY):
            entry[1 + number] = key[number]
        entry[1 + KEY] = _simulated_us(pair, producer, consumer, charges, order, scratch)
        entry[0] = 1.0
    found_us: float = entry[1 + KEY]
    return found_us


@called
def _place_of(key: tuple[float, ...], places: int) -> int:
    """Where a prediction is remembered, or another one that it replaces."""
    mixed = 0.0
    for number in range(KEY):
        # A fraction that every number changes.
        mixed = mixed * 31.4159 + key[number] * 0.618034
        mixed -= math.floor(mixed)
    return int(mixed * places) * ENTRY


@called
def _simulated_us(
    pair: Pair, producer: KernelBlocks, consumer: KernelBlocks, charges: Charges, order: int, scratch: Floats
) -> float:
    """The time of :func:`pair_us`, simulated block by block."""
    ordered = order != laws.NATIVE and pair.policy != laws.KERNEL
    taking_us = charges.order_us if ordered else 0.0
    slots = scratch[0, : min(producer.slots, consumer.slots)]
    there, posted = scratch[1], scratch[2]
    end_us = _run_producer(pair, producer, slots, there, taking_us, charges.post_us, order)
    _collect_posts(pair, there, posted)
    if pair.policy == laws.KERNEL:
        slots[:] = end_us
    tiles = pair.consumer_rows * pair.consumer_columns
    ended = there
    ended[:tiles] = 0.0
    for position in range(consumer.number):
        block = laws.tile_at(order, pair.consumer_columns, pair.consumer_rows, pair.consumer_columns, position)
        now_us = _through(pair, block, slots[0] + taking_us, consumer.block_us, posted, charges.wait_us)
        now_us = max(now_us, ended[block % tiles])
        ended[block % tiles] = now_us
        _take(slots, now_us)
        end_us = max(end_us, now_us)
    return end_us


@called
def _take(slots: Floats, until_us: float) -> None:
    """The slot that was free first, of a heap, is taken until later."""
    place = 0
    while True:
        child = 2 * place + 1
        if child >= slots.size:
            break
        if child + 1 < slots.size and slots[child + 1] < slots[child]:
            child += 1
        if slots[child] >= until_us:
            break
        slots[place] = slots[child]
        place = child
    slots[place] = until_us


@called
def _run_producer(
    pair: Pair, producer: KernelBlocks, slots: Floats, there: Floats, taking_us: float, post_us: float, order: int
) -> float:
    """Fill ``slots`` with the producer's blocks, and write when each tile is there; gives when the last one is."""
    tiles = pair.rows * pair.columns
    slots[:] = 0.0
    there[:tiles] = 0.0
    last_us = 0.0
    for position in range(producer.number):
        block = laws.tile_at(order, pair.columns // pair.fold, pair.rows, pair.columns, position)
        posts = pair.policy != laws.KERNEL and block >= producer.number - tiles
        # The slices of a tile end in order, as those of the consumer do.
        end_us = max(slots[0] + taking_us + producer.block_us + (post_us if posts else 0.0), there[block % tiles])
        there[block % tiles] = end_us
        _take(slots, end_us)
        last_us = max(last_us, end_us)
    return last_us


@called
def _collect_posts(pair: Pair, there: Floats, posted: Floats) -> None:
    """Write when all posts of each semaphore have come; of a share of the tiles, when each post has."""
    tiles = pair.rows * pair.columns
    if pair.policy == laws.SHARE:
        for tile in range(tiles):
            place = tile
            while place > 0 and posted[place - 1] > there[tile]:
                posted[place] = posted[place - 1]
                place -= 1
            posted[place] = there[tile]
        return
    posted[: laws.semaphores(pair)] = 0.0
    for tile in range(tiles):
        semaphore = laws.semaphore_of(pair, tile)
        posted[semaphore] = max(posted[semaphore], there[tile])


@called
def _through(pair: Pair, block: int, now_us: float, block_us: float, posted: Floats, wait_us: float) -> float:
    """When a block of the consumer that starts now has gone through its work and its waits."""
    done = 0.0
    waits = laws.waits_of(pair, block)
    work_us = block_us + waits * wait_us
    for number in range(waits):
        before = laws.work_before(pair, block, number)
        now_us += (before - done) * work_us
        done = before
        semaphore = laws.awaited_semaphore(pair, block, number)
        if pair.policy == laws.SHARE:
            semaphore = laws.awaited_value(pair, block) - 1
        now_us = max(now_us, posted[semaphore])
    return now_us + (1.0 - done) * work_us

"""How long two kernels take whose tiles are synchronised: a list of block slots, filled in order.

Blocks last as long as profiles say, wherever they are. Those of the producer go first; a block of the consumer takes
the slot that is free first, and holds it while it waits.
"""

from __future__ import annotations

import heapq
from typing import NamedTuple

from gpusched_env.hardware import tiles as laws
from gpusched_env.hardware.specs import TileCosts
from gpusched_env.hardware.tiles import Pair


class Blocks(NamedTuple):
    """The blocks of a kernel on a GPU."""

    number: int
    slots: int
    """How many run at once."""
    block_us: float

    @classmethod
    def of(cls, number: int, slots: int, duration_us: float) -> Blocks:
        """Of a kernel that takes ``duration_us`` alone."""
        return cls(number, slots, duration_us / -(-number // slots))


def pair_us(pair: Pair, producer: Blocks, consumer: Blocks, costs: TileCosts, order: int) -> float:
    """From the start of the producer to the end of the consumer.

    Args:
        pair: under a policy; :data:`~gpusched_env.hardware.tiles.KERNEL`: the consumer starts behind the producer.
        producer, consumer: their blocks.
        costs: of synchronising.
        order: in which blocks take their tiles.
    """
    ordered = order != laws.NATIVE and pair.policy != laws.KERNEL
    taking_us = costs.order_us if ordered else 0.0
    slots = [0.0] * min(producer.slots, consumer.slots)
    posted = _run_producer(pair, producer, slots, taking_us, costs, order)
    if pair.policy == laws.KERNEL:
        slots = [max(slots)] * len(slots)
    end_us = max(slots)
    for position in range(consumer.number):
        block = laws.tile_at(order, pair.consumer_columns, pair.consumer_rows, pair.consumer_columns, position)
        now_us = heapq.heappop(slots) + taking_us
        now_us = _through(pair, block, now_us, consumer.block_us, posted, costs)
        heapq.heappush(slots, now_us)
        end_us = max(end_us, now_us)
    return end_us


def _run_producer(
    pair: Pair, producer: Blocks, slots: list[float], taking_us: float, costs: TileCosts, order: int
) -> dict[int, list[float]]:
    """Fill ``slots`` with the producer's blocks; gives when each semaphore is posted, in order of time."""
    tiles = pair.rows * pair.columns
    there = [0.0] * tiles
    for position in range(producer.number):
        block = laws.tile_at(order, pair.columns // pair.fold, pair.rows, pair.columns, position)
        posts = pair.policy != laws.KERNEL and block >= producer.number - tiles
        end_us = heapq.heappop(slots) + taking_us + producer.block_us + (costs.post_us if posts else 0.0)
        # The slices of a tile end in order.
        there[block % tiles] = end_us = max(end_us, there[block % tiles])
        heapq.heappush(slots, end_us)
    posted: dict[int, list[float]] = {}
    for tile in range(tiles):
        posted.setdefault(laws.semaphore_of(pair, tile), []).append(there[tile])
    return {semaphore: sorted(times_us) for semaphore, times_us in posted.items()}


def _through(
    pair: Pair, block: int, now_us: float, block_us: float, posted: dict[int, list[float]], costs: TileCosts
) -> float:
    """When a block of the consumer that starts now has gone through its work and its waits."""
    done = 0.0
    waits = laws.waits_of(pair, block)
    work_us = block_us + waits * costs.wait_us
    for number in range(waits):
        before = laws.work_before(pair, block, number)
        now_us += (before - done) * work_us
        done = before
        times_us = posted[laws.awaited_semaphore(pair, block, number)]
        now_us = max(now_us, times_us[laws.awaited_value(pair, block) - 1])
    return now_us + (1.0 - done) * work_us

"""Kernels that are synchronised tile by tile: what their blocks wait for and post (:mod:`gpusched_env.hardware.tiles`).

Blocks that need and post the same are told apart by nothing: each is known by the number of one that stands for them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpusched_env.hardware import tiles as laws
from gpusched_env.hardware.specs import TileCosts
from gpusched_env.hardware.tiles import Pair
from gpusched_env.scheduling.commands import ORDERS, TileOrder

if TYPE_CHECKING:
    from gpusched_env.devices.reference.launch import Launch


class TilePair:
    """The semaphores between two launches."""

    def __init__(self, numbers: Pair, producer: Launch, consumer: Launch) -> None:
        self.numbers, self.producer, self.consumer = numbers, producer, consumer
        self._posts = [0] * laws.semaphores(numbers)
        self.over = False
        """Whether the producer has finished, or has vanished: nothing is waited for any more."""

    def post(self, tile: int) -> None:
        """A tile of the producer is there."""
        self._posts[laws.semaphore_of(self.numbers, tile)] += 1

    def has(self, block: int, number: int) -> bool:
        """Whether what a block of the consumer waits for the ``number``-th time is there."""
        semaphore = laws.awaited_semaphore(self.numbers, block, number)
        return self.over or self._posts[semaphore] >= laws.awaited_value(self.numbers, block)


@dataclass
class Tiling:
    """The tiles of one launch."""

    grid: tuple[int, int, int]
    """Columns, rows and slices of tiles."""
    costs: TileCosts
    awaits: TilePair | None = None
    posts: TilePair | None = None
    order: TileOrder = "native"
    stride: int = 1
    """Stride of the order ``grouped``."""
    ended: list[int] = field(default_factory=list)
    """How many slices of each tile have ended."""
    saved: list[tuple[int, float]] = field(default_factory=list)
    """Blocks that a preemption saved, in this order, and what is left of each."""

    def __post_init__(self) -> None:
        self.start_over()

    def start_over(self) -> None:
        """Start over: a reset has killed all blocks."""
        self.ended = [0] * (self.grid[0] * self.grid[1])
        self.saved.clear()

    def block_at(self, position: int) -> int:
        """The number for the block that takes its tile at a position in the order."""
        columns, rows, slices = self.grid
        block = laws.tile_at(ORDERS.index(self.order), self.stride, rows, columns, position)
        waits = self.awaits and laws.waits_by_column(self.awaits.numbers.policy, self.awaits.numbers.needs)
        posts = self.posts and laws.posts_by_column(self.posts.numbers.policy)
        return laws.likeness(block, columns, slices, int(bool(waits or posts)))

    def work(self, block: int, latency_us: float) -> float:
        """The work of a block that takes ``latency_us`` without synchronising, in such blocks; without its order."""
        waits = 0 if self.awaits is None else laws.waits_of(self.awaits.numbers, block)
        posts = int(self.posts is not None and self._is_last(block))
        return laws.work_of(latency_us, waits, self.costs.wait_us, posts, self.costs.post_us)

    def order_work(self, latency_us: float) -> float:
        """What taking its tile from a counter adds to a block's work."""
        return 0.0 if self.order == "native" else self.costs.order_us / latency_us

    def _is_last(self, block: int) -> bool:
        """Whether a block is the last slice of its tile."""
        return self._slice(block) == self.grid[2] - 1

    def _slice(self, block: int) -> int:
        return block // (self.grid[0] * self.grid[1])

    def waits(self, block: int) -> int:
        """How many times a block waits: for tiles, and as a slice for the one before it."""
        waits = 0 if self.awaits is None else laws.waits_of(self.awaits.numbers, block)
        return waits + (self._slice(block) > 0)

    def may_pass(self, block: int, number: int) -> bool:
        """Whether what a block waits for the ``number``-th time is there."""
        if self.awaits is not None and number < laws.waits_of(self.awaits.numbers, block):
            return self.awaits.has(block, number)
        return self.ended[block % len(self.ended)] >= self._slice(block)

    def left_at(self, block: int, number: int, latency_us: float) -> float:
        """What is left of a block's work when it waits the ``number``-th time."""
        if self.awaits is not None and number < laws.waits_of(self.awaits.numbers, block):
            before = laws.work_before(self.awaits.numbers, block, number)
            return laws.work_left(self.work(block, latency_us), before)
        posts = self.posts is not None and self._is_last(block)
        return self.costs.post_us / latency_us if posts else 0.0

    def end(self, block: int) -> None:
        """A block has ended; the last slice of a tile posts it."""
        self.ended[block % len(self.ended)] += 1
        if self.posts is not None and self._is_last(block):
            self.posts.post(block % len(self.ended))

    def keep(self, blocks: list[tuple[int, float]]) -> None:
        """Blocks were saved, each with what is left of it."""
        self.saved = sorted(self.saved + blocks)


def synchronise(pair: TilePair, posting: Tiling, waiting: Tiling, order: TileOrder, *, wait_kernel: bool) -> None:
    """Let the tiles of a launch wait for those of its producer, and the launch no longer for the whole of that.

    Args:
        posting, waiting: the tiles of the producer and of the launch.
        wait_kernel: whether a kernel before the launch waits for the start of its producer.
    """
    producer, launch, numbers = pair.producer, pair.consumer, pair.numbers
    posting.posts = waiting.awaits = pair
    posting.order = waiting.order = order
    posting.stride, waiting.stride = numbers.columns // numbers.fold, numbers.consumer_columns
    producer.tiling, launch.tiling = posting, waiting
    if producer.grid is not None:
        producer.grid.tiling = posting
    if wait_kernel:
        producer.gate, launch.gated = launch, True
    else:
        launch.waits.discard(producer)
        producer.waiters.discard(launch)

"""Pairs of kernels that a scheduler synchronises tile by tile, and the policies for that.

A policy says for which tiles of its producer a kernel waits.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from gpusched_env.hardware import tiles as laws
from gpusched_env.hardware.tiles import Pair
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import TileNeeds

PolicyKind = Literal["share", "row", "tile", "strided", "matrix"]
POLICIES: Final = ("kernel", "share", "row", "tile", "strided", "matrix")
"""Policies by code (:mod:`gpusched_env.hardware.tiles`); ``kernel`` is stream order, which needs no command."""
TileOrder = Literal["native", "row-major", "grouped", "column-major"]
ORDERS: Final[tuple[TileOrder, ...]] = ("native", "row-major", "grouped", "column-major")
"""Orders of tiles, by code."""


@dataclass(frozen=True, slots=True)
class TilePolicy:
    """Which posts of its producer a block waits for."""

    kind: PolicyKind
    """``row``: for all tiles of its row, once; ``tile``: before each step for the tiles that this reads; ``strided``:
    for all tiles of the row that are ``stride`` apart, group by group; ``matrix``: for all tiles of its row of each
    matrix that it reads, of those that the producer has side by side; ``share``: for so many tiles, whichever they
    are."""
    stride: int = 1
    """Stride of ``strided``: divides the steps through a row."""
    steps: int = 1
    """Steps of the consumer's inner loop that read one tile, for ``tile`` (see :func:`conv2d`)."""
    reorder: bool = False
    """Whether a block first does what needs nothing of the producer, such as loads of its other operand."""

    def numbers(self) -> tuple[int, int, int]:
        """Place in :data:`POLICIES`; steps of ``tile``, or else the stride; 1 where it reorders."""
        return POLICIES.index(self.kind), self.steps if self.kind == "tile" else self.stride, int(self.reorder)

    @classmethod
    def of(cls, policy: int, policy_size: int, reorder: int) -> TilePolicy:
        """The inverse of :meth:`numbers`."""
        kind: Any = POLICIES[policy]
        size = {"strided": {"stride": policy_size}, "tile": {"steps": policy_size}}.get(kind, {})
        return cls(kind, **size, reorder=reorder == 1)

    def __str__(self) -> str:
        size = {"strided": f"({self.stride})", "tile": f"({self.steps} steps)" if self.steps > 1 else ""}
        return self.kind + size.get(self.kind, "") + (", loads reordered" if self.reorder else "")


def conv2d(rows: int, columns: int, *, reorder: bool = False) -> TilePolicy:
    """The policy by tiles of a convolution as a matrix product: ``rows * columns`` steps read a tile, and the first of
    them waits (cuSync's Conv2DTileSync)."""
    return TilePolicy("tile", steps=rows * columns, reorder=reorder)


NEEDS = ("row", "tile", "share", "product")
"""Kinds of :class:`~gpusched_env.workload.workload.TileNeeds` by code."""


def pair_of(policy: TilePolicy, producer: Kernel, consumer: Kernel, needs: TileNeeds) -> Pair:
    """Two kernels under a policy, in numbers."""
    return Pair(
        policy=POLICIES.index(policy.kind),
        stride=policy.stride,
        rows=producer.grid[1],
        columns=producer.grid[0],
        consumer_rows=consumer.grid[1],
        consumer_columns=consumer.grid[0],
        consumer_slices=consumer.grid[2],
        needs=NEEDS.index(needs.kind),
        fold=needs.fold,
        lead=needs.lead if policy.reorder else 0.0,
    )


class UnguardedTile(NamedTuple):
    """A tile of a consumer, and one of its producer's that it would read before that is there."""

    tile: tuple[int, int]
    """Row and column of the consumer's tile."""
    step: int
    """Step of the tile's work."""
    read: tuple[int, int]


def policy_misfit(policy: TilePolicy, pair: Pair, needs: TileNeeds) -> str:
    """Why a policy has no meaning for a pair; empty: it has one."""
    if needs.kind == "share" and policy.kind != "share":
        return f"policy {policy.kind} goes by rows; a consumer of a share of the tiles can only be given policy share"
    if policy.kind == "strided":
        steps = pair.columns // pair.fold
        if needs.kind in ("row", "product") and not (1 <= policy.stride <= steps and steps % policy.stride == 0):
            return f"stride {policy.stride} does not divide the {steps} steps of a row of {pair.columns} tiles"
        if not (1 <= policy.stride <= pair.columns and pair.columns % policy.stride == 0):
            return f"stride {policy.stride} does not divide the {pair.columns} tiles of a row"
    if policy.kind == "tile" and policy.steps < needs.steps:
        return (
            f"with {policy.steps} steps a tile its waits run beyond the last of {pair.columns} tiles of a row: the "
            f"consumer has {needs.steps} steps a tile"
        )
    return ""


@functools.lru_cache(maxsize=1024)
def first_unguarded_tile(pair: Pair, steps: int, policy_steps: int) -> UnguardedTile | None:
    """The first tile that a consumer under a policy would read too early; ``None``: the policy is strong enough.

    Args:
        pair: in numbers.
        steps: of the consumer's loop a column of the producer's.
        policy_steps: how many a policy by tiles takes it to have.
    """
    if pair.policy == laws.TILE and pair.needs in (laws.NEEDS_ROW, laws.NEEDS_PRODUCT) and policy_steps > steps:
        # It waits for tile s / policy_steps before step s, and the step reads tile s / steps.
        return UnguardedTile((0, 0), steps, (0, 1 % pair.columns)) if pair.columns > 1 else None
    if pair.needs == laws.NEEDS_SHARE:
        return None
    posted = Counter(laws.semaphore_of(pair, tile) for tile in range(pair.rows * pair.columns))
    tiles = pair.consumer_rows * pair.consumer_columns
    # Blocks of a row read the same where they go through it.
    apart = pair.consumer_columns if pair.needs == laws.NEEDS_ROW else 1
    for block in range(0, tiles * pair.consumer_slices, apart):
        promised = _promised(pair, block, posted)
        for step, before, tile in _read(pair, block):
            if promised.get(laws.semaphore_of(pair, tile), math.inf) > before:
                return UnguardedTile(divmod(block % tiles, pair.consumer_columns), step, divmod(tile, pair.columns))
    return None


def _promised(pair: Pair, block: int, posted: Mapping[int, int]) -> dict[int, float]:
    """Semaphores for all whose posts (``posted``) a block of the consumer waits, and the share of its work before."""
    promised: dict[int, float] = {}
    for number in range(laws.waits_of(pair, block)):
        semaphore = laws.awaited_semaphore(pair, block, number)
        if laws.awaited_value(pair, block) >= posted[semaphore]:
            promised.setdefault(semaphore, laws.work_before(pair, block, number))
    return promised


def _read(pair: Pair, block: int) -> Iterator[tuple[int, float, int]]:
    """What a block of the consumer reads: step, the share of its work before it, and a tile of the producer's."""
    place = block % (pair.consumer_rows * pair.consumer_columns)
    if pair.needs == laws.NEEDS_TILE:
        yield 0, pair.lead, place
        return
    steps, own = pair.columns // pair.fold, laws.steps_of(pair, block)
    first = laws.first_step(pair, block // (pair.consumer_rows * pair.consumer_columns))
    bands = laws.bands(pair)
    read: list[tuple[int, range]] = [(laws.own_band(pair, place), range(pair.fold))]
    if pair.needs == laws.NEEDS_PRODUCT:
        read = [(laws.own_band(pair, place), range(1)), (laws.other_band(pair, place), range(1, 2))]
    for band, matrices in read:
        for row in (row for row in range(pair.rows) if row * bands // pair.rows == band):
            for step, matrix in itertools.product(range(own), matrices):
                tile = row * pair.columns + first + step + matrix * steps
                yield first + step, max(pair.lead, step / own), tile


def held_slots(consumer: int, producer: int, grid: tuple[int, int, int], blocks: Mapping[int, int]) -> str:
    """Whose blocks hold their slots while they wait for tiles of another, for the report of a deadlock.

    Args:
        consumer, producer: ids of the launches.
        grid: of the consumer: columns, rows, slices.
        blocks: how many blocks wait, by the number of one that stands for them (:func:`.hardware.tiles.likeness`).
    """
    columns, rows, _ = grid
    held: Counter[str] = Counter()
    for block, count in sorted(blocks.items()):
        part, (row, column) = block // (rows * columns), divmod(block % (rows * columns), columns)
        whole = count > 1 and column == 0
        held[f"row {row}" if whole else f"({row}, {column})" + (f" slice {part}" if grid[2] > 1 else "")] += count
    named = ", ".join(f"{count} of {name}" if count > 1 else name for name, count in list(held.items())[:6])
    return (
        f"launch {consumer} holds {sum(held.values())} block slots while it waits for tiles of launch {producer}: "
        f"{named}"
    )

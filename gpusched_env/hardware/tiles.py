"""Tiles of dependent kernels: who posts which semaphore, who waits for which, and in which order blocks take tiles.

Jangda et al., *A Framework for Fine-Grained Synchronization of Dependent GPU Kernels* (cuSync, CGO 2024), and its
released code. A grid has rows and columns of tiles, and ``slices`` that share the work of a tile along its inner
dimension (split-K); one block a slice. Blocks are numbered with columns fastest, then rows, slices slowest (CUDA's own
order of a grid of columns, rows and slices). The slices of a tile end in order, and the last one posts the tile.

What a consumer's tile *needs* is a fact of the program; a *policy* says for what it waits:

* :data:`NEEDS_ROW`: it goes through the producer's tiles of its row, step by step; ``fold`` of them, ``columns / fold``
  apart, in a step (a producer of several matrices side by side). Its slices share the steps.
* :data:`NEEDS_TILE`: the producer's tile at its own place.
* :data:`NEEDS_PRODUCT`: it goes through two of the ``fold`` matrices that the producer has side by side, step by step:
  the first one in its own row, the second one in the row that its column is (queries times keys: a tile of the scores
  needs two bands).
* :data:`NEEDS_SHARE`: of ``n`` blocks the one numbered ``i`` needs a share ``(i + 1) / n`` of the producer's tiles,
  whichever they are.

Where one grid has more rows than the other, several of its rows are one of the other's: a *band*.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from gpusched_env.compiling import law

# Policies.
KERNEL: Final = 0
"""Stream order: the consumer starts when its producer has ended."""
SHARE: Final = 1
"""One semaphore counts the producer's tiles."""
ROW: Final = 2
"""A semaphore a row: a block waits once (RowSync)."""
TILE: Final = 3
"""A semaphore a tile: a block waits before each step (TileSync; Conv2DTileSync, where a step is that of a column)."""
STRIDED: Final = 4
"""Tiles of a row that are a stride apart share a semaphore (StridedSync)."""
MATRIX: Final = 5
"""A semaphore a row and matrix of the producer: a block waits once for each that it reads (StridedSync of attention, as
released)."""

NEEDS_ROW: Final = 0
NEEDS_TILE: Final = 1
NEEDS_SHARE: Final = 2
NEEDS_PRODUCT: Final = 3

# Orders in which blocks take their tiles.
NATIVE: Final = 0
"""Tiles in order of their numbers, as the GPU hands out blocks."""
ROW_MAJOR: Final = 1
"""Tiles in order of their numbers, taken from a counter."""
GROUPED: Final = 2
"""Tiles of a row that are a stride apart, one after the other."""
COLUMN_MAJOR: Final = 3
"""Tiles with rows fastest, then columns, slices slowest."""


class Pair(NamedTuple):
    """A consumer that is synchronised with its producer, in numbers."""

    policy: int
    stride: int
    """Stride of the policy :data:`STRIDED`; otherwise 1."""
    rows: int
    columns: int
    """Columns of the producer's tiles; ``rows`` are their rows."""
    consumer_rows: int
    consumer_columns: int
    consumer_slices: int
    needs: int
    fold: int
    lead: float
    """Share of a consumer block's work that it does before its first wait."""


@law
def bands(pair: Pair) -> int:
    """How many bands of rows a pair has."""
    few = min(pair.rows, pair.consumer_rows)
    return min(few, pair.consumer_columns) if pair.needs == NEEDS_PRODUCT else few


@law
def semaphores_a_band(pair: Pair) -> int:
    """How many semaphores a band has (of :data:`SHARE`: all bands together)."""
    if pair.policy == TILE:
        return pair.columns
    if pair.policy == MATRIX:
        return pair.fold
    return pair.stride if pair.policy == STRIDED else 1


@law
def semaphore_in_band(pair: Pair, column: int) -> int:
    """The semaphore of its band that the producer's tiles in a column post."""
    if pair.policy == MATRIX:
        return column // (pair.columns // pair.fold)
    return column % semaphores_a_band(pair)


@law
def semaphores(pair: Pair) -> int:
    """How many semaphores a pair has."""
    return 1 if pair.policy == SHARE else bands(pair) * semaphores_a_band(pair)


@law
def semaphore_of(pair: Pair, tile: int) -> int:
    """The semaphore that the producer's tile of a number (below rows times columns) posts, once."""
    if pair.policy == SHARE:
        return 0
    band = tile // pair.columns * bands(pair) // pair.rows
    return band * semaphores_a_band(pair) + semaphore_in_band(pair, tile % pair.columns)


@law
def first_step(pair: Pair, part: int) -> int:
    """The first of the steps of a slice of the consumer; those before the first one of the next slice are its own."""
    return -(-part * (pair.columns // pair.fold) // pair.consumer_slices)


@law
def steps_of(pair: Pair, block: int) -> int:
    """How many steps a block of the consumer goes through."""
    part = block // (pair.consumer_rows * pair.consumer_columns)
    return first_step(pair, part + 1) - first_step(pair, part)


@law
def own_band(pair: Pair, tile: int) -> int:
    """The band of the row of a consumer's tile."""
    return tile // pair.consumer_columns * bands(pair) // pair.consumer_rows


@law
def other_band(pair: Pair, tile: int) -> int:
    """The band of the row that the column of a consumer's tile is (of :data:`NEEDS_PRODUCT`)."""
    return tile % pair.consumer_columns * bands(pair) // pair.consumer_columns


@law
def waits_a_step(pair: Pair, block: int) -> int:
    """How many semaphores a block of the consumer that goes through steps waits for in each."""
    if pair.needs == NEEDS_PRODUCT:
        tile = block % (pair.consumer_rows * pair.consumer_columns)
        one = (pair.policy == ROW or pair.policy == STRIDED) and own_band(pair, tile) == other_band(pair, tile)
        return 1 if one else 2
    return 1 if pair.policy == ROW or pair.policy == STRIDED else pair.fold


@law
def waits_of(pair: Pair, block: int) -> int:
    """How many times a block of the consumer waits."""
    if pair.policy == KERNEL:
        return 0
    if pair.needs == NEEDS_TILE or pair.needs == NEEDS_SHARE or pair.policy == SHARE:
        return 1
    each = waits_a_step(pair, block)
    if pair.policy == ROW or pair.policy == MATRIX:
        return each
    steps = steps_of(pair, block)
    return each * (min(steps, pair.stride) if pair.policy == STRIDED else steps)


@law
def awaited_semaphore(pair: Pair, block: int, number: int) -> int:
    """The semaphore that a block of the consumer waits for the ``number``-th time (from 0)."""
    if pair.policy == SHARE:
        return 0
    tile = block % (pair.consumer_rows * pair.consumer_columns)
    if pair.needs == NEEDS_TILE:
        column = tile % pair.consumer_columns
        return own_band(pair, tile) * semaphores_a_band(pair) + semaphore_in_band(pair, column)
    each = waits_a_step(pair, block)
    matrix = number % each
    band = other_band(pair, tile) if pair.needs == NEEDS_PRODUCT and matrix == 1 else own_band(pair, tile)
    column = matrix * (pair.columns // pair.fold)
    if pair.policy == TILE or pair.policy == STRIDED:
        column += number // each + first_step(pair, block // (pair.consumer_rows * pair.consumer_columns))
    return band * semaphores_a_band(pair) + semaphore_in_band(pair, column)


@law
def awaited_value(pair: Pair, block: int) -> int:
    """How many posts of a semaphore a block of the consumer waits for."""
    if pair.policy == SHARE:
        blocks = pair.consumer_rows * pair.consumer_columns * pair.consumer_slices
        return -(-(block + 1) * pair.rows * pair.columns // blocks)
    return pair.rows // bands(pair) * (pair.columns // semaphores_a_band(pair))


@law
def work_before(pair: Pair, block: int, number: int) -> float:
    """The share of its work that a block of the consumer may do before it waits the ``number``-th time (from 0)."""
    if pair.needs == NEEDS_TILE or pair.needs == NEEDS_SHARE or pair.policy == SHARE:
        return pair.lead
    if pair.policy == ROW or pair.policy == MATRIX:
        return pair.lead
    return max(pair.lead, number // waits_a_step(pair, block) / steps_of(pair, block))


@law
def work_of(latency_us: float, waits: int, wait_us: float, posts: int, post_us: float) -> float:
    """The work of a block that waits and posts, in blocks that do not, of ``latency_us`` each."""
    return 1.0 + (waits * wait_us + posts * post_us) / latency_us


@law
def work_left(work: float, before: float) -> float:
    """What is left of a block's work when it has done a share ``before``."""
    return work * (1.0 - before)


@law
def tile_at(order: int, stride: int, rows: int, columns: int, position: int) -> int:
    """The number of the block that takes its tile at a position (from 0) in an order."""
    tiles = rows * columns
    part = position // tiles
    place = position % tiles
    if order == GROUPED:
        group = columns // stride
        column = place % columns
        place += column // group + column % group * stride - column
    elif order == COLUMN_MAJOR:
        place = place % rows * columns + place // rows
    return part * tiles + place


@law
def likeness(block: int, columns: int, slices: int, by_column: int) -> int:
    """A block that stands for all that need and post the same as this one: its row's first.

    Args:
        by_column: 1 if blocks of a row differ.
    """
    return block if by_column == 1 or slices > 1 else block - block % columns


@law
def posts_by_column(policy: int) -> int:
    """Whether a producer's tiles of a row post different semaphores: 0 or 1."""
    return 1 if policy in (TILE, STRIDED, MATRIX) else 0


@law
def waits_by_column(policy: int, needs: int) -> int:
    """Whether a consumer's tiles of a row wait for different posts: 0 or 1."""
    return 1 if policy == SHARE or needs == NEEDS_PRODUCT or (needs != NEEDS_ROW and policy != ROW) else 0

"""The laws of tiles: how many synchronisations there are, and that no step is passed before what it needs is there."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.hardware import tiles
from gpusched_env.hardware.tiles import (
    COLUMN_MAJOR,
    GROUPED,
    MATRIX,
    NATIVE,
    NEEDS_PRODUCT,
    NEEDS_ROW,
    NEEDS_SHARE,
    NEEDS_TILE,
    ROW,
    ROW_MAJOR,
    SHARE,
    STRIDED,
    TILE,
    Pair,
)

TOY = Pair(
    ROW, 1, rows=3, columns=2, consumer_rows=3, consumer_columns=2, consumer_slices=1, needs=NEEDS_ROW, fold=1, lead=0.0
)
"""Two products of 3 x 2 tiles."""


@pytest.mark.parametrize(("policy", "waits"), [(TILE, 12), (ROW, 6), (SHARE, 6)])
def test_the_toy_synchronises_twelve_times_by_tiles_and_six_by_rows(policy: int, waits: int) -> None:
    pair = TOY._replace(policy=policy)
    assert sum(tiles.waits_of(pair, block) for block in range(6)) == waits


def test_a_fused_product_has_a_semaphore_for_the_tiles_that_a_step_reads() -> None:
    """LLaMA's first product on a V100: 22 columns, of which columns j and j + 11 are read together."""
    pair = Pair(STRIDED, 11, 4, 22, 4, 32, 1, NEEDS_ROW, 2, 0.0)
    assert tiles.semaphores(pair) == 44
    assert {tiles.semaphore_of(pair, 22 + column) for column in (3, 14)} == {11 + 3}
    assert tiles.awaited_value(pair, 32) == 2
    assert [tiles.awaited_semaphore(pair, 32, number) for number in range(tiles.waits_of(pair, 32))] == list(
        range(11, 22)
    )


def test_a_tile_of_queries_times_keys_waits_for_two_bands() -> None:
    """GPT-3's attention of 512 tokens on a V100: 2 rows of 18 columns, 6 a matrix; scores of 4 x 4 tiles."""
    pair = Pair(MATRIX, 1, 2, 18, 4, 4, 1, NEEDS_PRODUCT, 3, 0.0)

    def waits(policy: int, block: int, stride: int = 1) -> list[int]:
        one = pair._replace(policy=policy, stride=stride)
        return [tiles.awaited_semaphore(one, block, number) for number in range(tiles.waits_of(one, block))]

    # Tile (0, 3): queries of row 0, keys of row 1. A row has three semaphores, of queries, keys and values.
    assert waits(MATRIX, 3) == [0, 3 + 1]
    assert waits(ROW, 3) == [0, 1]
    assert waits(TILE, 3) == [0, 18 + 6, 1, 18 + 7, 2, 18 + 8, 3, 18 + 9, 4, 18 + 10, 5, 18 + 11]
    assert waits(STRIDED, 3, stride=6) == [0, 6, 1, 7, 2, 8, 3, 9, 4, 10, 5, 11]
    # Tile (1, 0): both in row 0, which one semaphore a row, or a step, says.
    assert (waits(MATRIX, 4), waits(ROW, 4), waits(STRIDED, 4, stride=6)) == ([0, 1], [0], [0, 1, 2, 3, 4, 5])
    assert tiles.awaited_value(pair, 3) == 6
    assert tiles.awaited_value(pair._replace(policy=STRIDED, stride=6), 3) == 3


def order_of(order: int, stride: int, rows: int, columns: int, slices: int) -> list[int]:
    return [tiles.tile_at(order, stride, rows, columns, place) for place in range(rows * columns * slices)]


def test_orders() -> None:
    assert order_of(NATIVE, 1, 2, 3, 2) == order_of(ROW_MAJOR, 1, 2, 3, 2) == list(range(12))
    assert order_of(COLUMN_MAJOR, 1, 2, 3, 2) == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]
    # Of six columns, those three apart.
    assert order_of(GROUPED, 3, 2, 6, 1) == [0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11]


few = st.integers(1, 4)


@given(st.sampled_from([NATIVE, ROW_MAJOR, GROUPED, COLUMN_MAJOR]), few, few, few, few)
def test_orders_are_permutations_slice_by_slice(order: int, stride: int, rows: int, groups: int, slices: int) -> None:
    columns = stride * groups
    found = order_of(order, stride, rows, columns, slices)
    for part in range(slices):
        mine = found[part * rows * columns : (part + 1) * rows * columns]
        assert sorted(mine) == list(range(part * rows * columns, (part + 1) * rows * columns))


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """A pair under a policy that covers what it needs."""
    needs = draw(st.sampled_from([NEEDS_ROW, NEEDS_TILE, NEEDS_PRODUCT]))
    rows, more, swap = draw(few), draw(few), draw(st.booleans())
    least = {NEEDS_ROW: 1, NEEDS_PRODUCT: 2}
    fold, steps = draw(st.integers(least[needs], 4)) if needs in least else 1, draw(few)
    stride = draw(st.sampled_from([stride for stride in range(1, steps + 1) if steps % stride == 0]))
    policy = draw(st.sampled_from([ROW, TILE, STRIDED, MATRIX]))
    columns, taller = fold * steps, rows * (1 if needs == NEEDS_TILE else more)
    read = {NEEDS_ROW: few, NEEDS_TILE: st.just(columns), NEEDS_PRODUCT: few.map(lambda times: times * rows)}
    return Pair(
        policy=policy,
        stride=stride if policy == STRIDED else 1,
        rows=taller if swap else rows,
        columns=columns,
        consumer_rows=rows if swap else taller,
        consumer_columns=draw(read[needs]),
        consumer_slices=draw(few),
        needs=needs,
        fold=fold,
        lead=draw(st.sampled_from([0.0, 0.3])),
    )


def read(pair: Pair, block: int, work: float) -> set[int]:
    """The producer's tiles that a block of the consumer reads within a share of its work, said anew."""
    tiles_of_consumer = pair.consumer_rows * pair.consumer_columns
    row, column = divmod(block % tiles_of_consumer, pair.consumer_columns)
    if pair.needs == NEEDS_TILE:
        return {row * pair.columns + column} if work > pair.lead else set()
    steps = pair.columns // pair.fold
    own = [step for step in range(steps) if step * pair.consumer_slices // steps == block // tiles_of_consumer]
    begun = [step for place, step in enumerate(own) if work > max(pair.lead, place / len(own))]
    if pair.needs == NEEDS_ROW:
        places = [(other, matrix) for other in beside(pair, row, pair.consumer_rows) for matrix in range(pair.fold)]
    else:
        places = [(other, 0) for other in beside(pair, row, pair.consumer_rows)]
        places += [(other, 1) for other in beside(pair, column, pair.consumer_columns)]
    return {other * pair.columns + step + matrix * steps for other, matrix in places for step in begun}


def beside(pair: Pair, place: int, places: int) -> list[int]:
    """The producer's rows that are the same share of its rows as one of some places, or share it with others."""
    few = min(pair.rows, places) if pair.needs == NEEDS_ROW else tiles.bands(pair)
    return [row for row in range(pair.rows) if row // (pair.rows // few) == place // (places // few)]


@settings(deadline=None)
@given(pairs(), st.data())
def test_no_step_is_passed_before_the_tiles_that_it_reads_are_there(pair: Pair, data: st.DataObject) -> None:
    tiles_there = data.draw(st.sets(st.integers(0, pair.rows * pair.columns - 1)))
    posted = Counter(tiles.semaphore_of(pair, tile) for tile in tiles_there)
    for block in range(pair.consumer_rows * pair.consumer_columns * pair.consumer_slices):
        work = 1.0
        for number in range(tiles.waits_of(pair, block)):
            if posted[tiles.awaited_semaphore(pair, block, number)] < tiles.awaited_value(pair, block):
                work = tiles.work_before(pair, block, number)
                break
        assert read(pair, block, work) <= tiles_there


@given(pairs())
def test_all_waits_are_over_when_all_tiles_are_posted(pair: Pair) -> None:
    posted = Counter(tiles.semaphore_of(pair, tile) for tile in range(pair.rows * pair.columns))
    assert set(posted) == set(range(tiles.semaphores(pair)))
    for block in range(pair.consumer_rows * pair.consumer_columns * pair.consumer_slices):
        for number in range(tiles.waits_of(pair, block)):
            assert posted[tiles.awaited_semaphore(pair, block, number)] == tiles.awaited_value(pair, block)


def test_a_share_counts_tiles_whichever_they_are() -> None:
    pair = Pair(SHARE, 1, 2, 3, 1, 4, 1, NEEDS_SHARE, 1, 0.0)
    assert [tiles.awaited_value(pair, block) for block in range(4)] == [2, 3, 5, 6]


@settings(deadline=None)
@given(pairs())
def test_blocks_that_one_stands_for_wait_alike(pair: Pair) -> None:
    by_column = tiles.waits_by_column(pair.policy, pair.needs)
    for block in range(pair.consumer_rows * pair.consumer_columns * pair.consumer_slices):
        other = tiles.likeness(block, pair.consumer_columns, pair.consumer_slices, by_column)
        waits = tiles.waits_of(pair, block)
        assert waits == tiles.waits_of(pair, other)
        for number in range(waits):
            assert tiles.awaited_semaphore(pair, block, number) == tiles.awaited_semaphore(pair, other, number)

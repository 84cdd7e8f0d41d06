"""Predicted times of pairs against those of a device on which blocks have constant rates and SMs hold one each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.episodes.session import run_episode
from gpusched_env.hardware.specs import TileCosts
from gpusched_env.hardware.tiles import ROW, STRIDED, TILE, Pair
from gpusched_env.planning.tiles import (
    ENTRY,
    MOST,
    SCRATCH,
    WORKED_IN,
    KernelBlocks,
    blocks_of,
    charges_of,
    is_predictable,
    pair_us,
)
from gpusched_env.scheduling.commands import ORDERS, WAIT, Launch, Synchronise, TilePolicy
from gpusched_env.scheduling.synchronising import pair_of
from gpusched_env.workload.workload import TileNeeds
from tests.devices.problems import Script, new_device
from tests.devices.programs import chain

few = st.integers(1, 3)
FREE, COSTLY = TileCosts(), TileCosts(post_us=1.0, wait_us=0.5, order_us=2.0)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_list_of_slots_predicts_what_a_device_does(data: st.DataObject) -> None:
    rows, fold, steps = data.draw(few), data.draw(st.sampled_from([1, 2])), data.draw(few)
    producer, consumer = (fold * steps, rows, data.draw(few)), (data.draw(few), rows, data.draw(few))
    needs = TileNeeds(fold=fold)
    if fold == 2 and data.draw(st.booleans()):
        needs, consumer = TileNeeds("product", fold=2), (rows, rows, consumer[2])
    kinds = "row", "tile", "strided", "matrix"
    policies = [TilePolicy(kind, stride=steps if kind == "strided" else 1) for kind in kinds]
    policy = data.draw(st.sampled_from(policies))
    order, costs = data.draw(st.sampled_from(ORDERS)), data.draw(st.sampled_from([FREE, COSTLY]))
    times_us = data.draw(st.sampled_from([(10.0, 10.0), (10.0, 7.0), (3.0, 11.0)]))
    built = chain(producer, consumer, us=times_us, needs=needs, costs=costs)
    commands = [Synchronise(1, policy, order), Launch(0), Launch(1)]
    found = run_episode(Script(lambda view: commands.pop(0) if commands else WAIT), built, new_device(), 0).end_us
    first, second = (
        KernelBlocks(columns * height * slices, 4, block_us)
        for (columns, height, slices), block_us in zip((producer, consumer), times_us, strict=True)
    )
    made, used = (profile.kernel for profile in built.kernels)
    pair = pair_of(policy, made, used, needs)
    took_us = pair_us(pair, first, second, charges_of(costs), ORDERS.index(order), np.zeros(SCRATCH))
    assert took_us == pytest.approx(found, abs=1e-4)


def test_in_stream_order_one_follows_the_other() -> None:
    built = chain((2, 3, 1), (2, 3, 1))
    made, used = (profile.kernel for profile in built.kernels)
    stream = pair_of(TilePolicy("row"), made, used, TileNeeds())._replace(policy=0)
    blocks, scratch = blocks_of(6, 4, 20.0), np.zeros(SCRATCH)
    assert blocks.block_us == 10.0
    assert pair_us(stream, blocks, blocks, charges_of(COSTLY), 0, scratch) == 40.0
    assert pair_us(stream._replace(policy=2), blocks, blocks, charges_of(FREE), 0, scratch) == 30.0
    # Of six blocks the first two need a third of the tiles, which are there at 10; the last one all, at 20.
    assert pair_us(stream._replace(policy=1, needs=2), blocks, blocks, charges_of(FREE), 0, scratch) == 30.0


def test_pairs_beyond_the_memory_are_not_predicted() -> None:
    built = chain((2, 3, 1), (2, 3, 1))
    made, used = (profile.kernel for profile in built.kernels)
    pair = pair_of(TilePolicy("row"), made, used, TileNeeds())
    blocks = blocks_of(6, 4, 20.0)
    assert is_predictable(pair, blocks, blocks)
    assert not is_predictable(pair._replace(rows=SCRATCH[1]), blocks, blocks)
    assert not is_predictable(pair, blocks, blocks._replace(number=SCRATCH[1] + 1))
    assert not is_predictable(pair, blocks._replace(slots=SCRATCH[1] + 1), blocks._replace(slots=SCRATCH[1] + 1))


def test_what_is_remembered_is_what_was_found() -> None:
    """Of many more pairs than there are places, each asked for again and again."""
    rng, few_places, found_us = np.random.default_rng(1), np.zeros((WORKED_IN + 1, MOST)), {}
    for _ in range(4_000):
        rows, columns, others = (int(number) for number in rng.integers(1, 7, 3))
        policy, order = int(rng.choice([ROW, TILE, STRIDED])), int(rng.integers(len(ORDERS)))
        pair = Pair(policy, 1, rows, columns, rows, others, 1, 0, 1, 0.0)
        first, second = (
            KernelBlocks(rows * columns, 4, 10.0),
            KernelBlocks(rows * others, 4, float(rng.choice([7.0, 10.0]))),
        )
        key = pair, second, order
        took_us = pair_us(pair, first, second, charges_of(COSTLY), order, few_places)
        if key not in found_us:
            found_us[key] = pair_us(pair, first, second, charges_of(COSTLY), order, np.zeros(SCRATCH))
        assert took_us == found_us[key]
    assert len(found_us) > 2 * MOST // ENTRY

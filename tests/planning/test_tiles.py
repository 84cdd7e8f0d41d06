"""Predicted times of pairs against those of a device on which blocks have constant rates and SMs hold one each."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.episodes.session import run_episode
from gpusched_env.hardware.specs import TileCosts
from gpusched_env.planning.tiles import Blocks, pair_us
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
        Blocks(columns * height * slices, 4, block_us)
        for (columns, height, slices), block_us in zip((producer, consumer), times_us, strict=True)
    )
    made, used = (profile.kernel for profile in built.kernels)
    pair = pair_of(policy, made, used, needs)
    assert pair_us(pair, first, second, costs, ORDERS.index(order)) == pytest.approx(found, abs=1e-4)


def test_in_stream_order_one_follows_the_other() -> None:
    built = chain((2, 3, 1), (2, 3, 1))
    made, used = (profile.kernel for profile in built.kernels)
    stream = pair_of(TilePolicy("row"), made, used, TileNeeds())._replace(policy=0)
    blocks = Blocks.of(6, 4, 20.0)
    assert blocks.block_us == 10.0
    assert pair_us(stream, blocks, blocks, COSTLY, 0) == 40.0
    assert pair_us(stream._replace(policy=2), blocks, blocks, FREE, 0) == 30.0

"""Dependent kernels whose tiles are synchronised: literal logs worked out by hand, and what holds for any pair.

On the teaching GPU (4 SMs of one block) without latencies. Launch 0 is the producer, launch 1 the consumer.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.devices import make_device
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import DeadlockError, IllegalCommand, InputError
from gpusched_env.hardware.specs import TileCosts
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import (
    ORDERS,
    WAIT,
    Command,
    Launch,
    Partition,
    Preempt,
    Synchronise,
    TilePolicy,
    Wait,
    conv2d,
)
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import Op, TileNeeds
from tests.devices.problems import Script, new_device, run
from tests.devices.programs import ITS_ROW, RECORD, SYNC, Grid, Kernels, build, chain
from tests.refusals import refused

TILE, ROW = TilePolicy("tile"), TilePolicy("row")
LEFT, RIGHT = Partition(0, 2), Partition(2, 2)
each_device = pytest.mark.usefixtures("each_device")


def in_turn(*commands: Command) -> Callable[[View], Command]:
    """Give commands one after the other, then wait."""
    left = list(commands)
    return lambda view: left.pop(0) if left else WAIT


def played(built: Problem, *commands: Command) -> Episode:
    return run(built, in_turn(*commands))


def blocks(episode: Episode) -> list[tuple[int, int, int, int]]:
    """(launch, SM, start, end) of blocks, in whole microseconds, by launch, start and SM."""
    rows = [
        (int(launch), int(sm), start // 10**6, end // 10**6)
        for sm, launch, _, start, end in episode.timeline.blocks.exact.tolist()
    ]
    return sorted(rows, key=lambda row: (row[0], row[2], row[1]))


def waves(launch: int, *runs: tuple[range, int, int]) -> list[tuple[int, int, int, int]]:
    """What :func:`blocks` says of SMs that ran a block of a launch each from one time to another."""
    return [(launch, sm, start, end) for sms, start, end in runs for sm in sms]


PRODUCER = waves(0, (range(4), 0, 10), (range(2), 10, 20))


# ---- the toy of the paper: two products of 3 x 2 tiles ----------------------------------------------------------


@each_device
def test_in_stream_order_two_products_take_four_waves() -> None:
    episode = played(chain((2, 3, 1), (2, 3, 1)), Launch(0), Launch(1))
    assert blocks(episode) == PRODUCER + waves(1, (range(4), 20, 30), (range(2), 30, 40))


@each_device
@pytest.mark.parametrize("policy", [TILE, ROW])
def test_synchronised_by_tiles_they_take_three(policy: TilePolicy) -> None:
    episode = played(chain((2, 3, 1), (2, 3, 1)), Synchronise(1, policy), Launch(0), Launch(1))
    assert blocks(episode) == PRODUCER + waves(1, (range(2, 4), 10, 20), (range(4), 20, 30))


@each_device
def test_a_consumer_that_takes_all_slots_first_is_a_deadlock_that_names_its_blocks() -> None:
    built = chain((2, 3, 1), (2, 3, 1))
    said = "launch 1 holds 4 block slots while it waits for tiles of launch 0: 2 of row 0, 2 of row 1"
    with pytest.raises(DeadlockError, match=said):
        played(built, Synchronise(1, ROW), Launch(1), Wait(1.0), Launch(0))
    # Where blocks of a row differ, each has its name.
    by_tile = chain((2, 3, 1), (2, 3, 1), needs=TileNeeds("tile"))
    with pytest.raises(DeadlockError, match=r"\(0, 0\), \(0, 1\), \(1, 0\), \(1, 1\)"):
        played(by_tile, Synchronise(1, TILE), Launch(1), Wait(1.0), Launch(0))


@each_device
def test_a_wait_kernel_keeps_a_consumer_back_until_its_producer_has_started() -> None:
    costs = TileCosts(wait_kernel_us=3.0)
    built = chain((2, 2, 1), (2, 1, 1), needs=TileNeeds("share"), costs=costs)
    device = new_device()
    view = device.reset(built, 0)
    device.apply(Synchronise(1, TilePolicy("share"), wait_kernel=True))
    view = device.advance()
    assert view is not None
    # Like any launch it waits for: the consumer may be launched behind its producer.
    assert view.pending.launchable.tolist() == [1.0, 0.0]
    assert view.dependencies.array.tolist() == [[1.0, 0.0]]
    share = Synchronise(1, TilePolicy("share"), wait_kernel=True)
    halves = chain((2, 1, 1), (2, 1, 1), needs=TileNeeds("share"), costs=costs)
    episode = played(halves, share, Launch(0, partition=LEFT), Launch(1, partition=RIGHT))
    assert blocks(episode) == waves(0, (range(2), 0, 10)) + waves(1, (range(2, 4), 3, 20))


@each_device
def test_no_wait_kernel_is_needed_in_the_stream_of_the_producer() -> None:
    """There a consumer waits for the end of it anyway. Another kernel has the SMs until 20, the producer until 30; the
    wait kernel takes 40 us from the launch at 0 on, and not from when the producer starts."""
    k = Kernels()
    other, producer = k.op(20.0, 4), k.op(10.0, 4, stream=1)
    consumer = k.op(10.0, 4, stream=2, tiles=0, needs=TileNeeds("share"))
    ops = [other, producer, Op(RECORD, index=0, stream=1), consumer, SYNC]
    built = build(k, ops, program_streams=3, timing={}, commands=["launch", "synchronise"], streams=1)
    built = dataclasses.replace(built, gpu=msgspec.structs.replace(built.gpu, tiles=TileCosts(wait_kernel_us=40.0)))
    share = Synchronise(2, TilePolicy("share"), wait_kernel=True)
    apart = played(built, share, Launch(0), Launch(1), Launch(2))
    together = played(built, share, Launch(0), Launch(1, stream=3), Launch(2, stream=3))
    assert [blocks(episode)[-1][2] for episode in (apart, together)] == [60, 40]


# ---- limits ------------------------------------------------------------------------------------------------------


def walk(policy: TilePolicy, needs: TileNeeds = ITS_ROW, **fields: Any) -> Episode:
    """A producer of four tiles on two SMs, and beside it a block of 8 us that goes through them."""
    built = chain((4, 1, 1), (1, 1, 1), us=(10.0, 8.0), needs=needs, **fields)
    return played(built, Synchronise(1, policy), Launch(0, partition=LEFT), Launch(1, partition=RIGHT))


@each_device
@pytest.mark.parametrize(
    ("policy", "needs", "end_us"),
    [
        # Two steps of 2 us from 10 on, two from 20 on.
        (TILE, TileNeeds(), 24),
        (ROW, TileNeeds(), 28),
        # It needs tiles 0 and 2 for its first step, 1 and 3 for its second one.
        (TILE, TileNeeds(fold=2), 28),
        (TilePolicy("strided", stride=2), TileNeeds(fold=2), 28),
        # Tiles 0 and 2 share a semaphore.
        (TilePolicy("strided", stride=2), TileNeeds(), 28),
        (TilePolicy("strided", stride=4), TileNeeds(), 24),
        # Half of the work first, in the time in which it would wait.
        (TilePolicy("row", reorder=True), TileNeeds(lead=0.5), 24),
        (TilePolicy("row"), TileNeeds(lead=0.5), 28),
        (conv2d(3, 3), TileNeeds(steps=9), 24),
    ],
)
def test_a_block_works_up_to_the_first_step_whose_tiles_are_missing(
    policy: TilePolicy, needs: TileNeeds, end_us: int
) -> None:
    assert blocks(walk(policy, needs))[-1] == (1, 2, 0, end_us)


@each_device
@pytest.mark.parametrize("wait_kernel", [False, True])
def test_a_producer_that_was_launched_may_be_synchronised_until_its_first_block_starts(wait_kernel: bool) -> None:
    """A launch is on its way for 5 us; then the producer waits for the SMs, which another kernel has until 20."""
    first, late = Synchronise(1, TILE, "row-major", wait_kernel), {"launch_latency_us": 5.0}
    costs = TileCosts(order_us=1.0, post_us=1.0, wait_kernel_us=2.0)
    pair = chain((2, 3, 1), (2, 3, 1), costs=costs, timing=late)
    before = blocks(played(pair, first, Launch(0), Launch(1)))
    assert before[0] == (0, 0, 5, 17)
    assert blocks(played(pair, Launch(0), first, Launch(1))) == before
    assert blocks(played(pair, Launch(0), Wait(4.0), first, Launch(1)))[:6] == before[:6]
    k = Kernels()
    other, producer = k.op(20.0, 4), k.op(10.0, 6, stream=1)
    consumer = k.op(10.0, 6, stream=2, tiles=0, needs=TileNeeds("tile"))
    ops = [other, producer, Op(RECORD, index=0, stream=1), consumer, SYNC]
    queued = build(k, ops, program_streams=3, timing={}, commands=["launch", "synchronise"])
    second = Synchronise(2, TILE, wait_kernel=wait_kernel)
    early = played(queued, second, Launch(0), Launch(1), Launch(2))
    assert blocks(early)[-1][-1] == 50
    assert blocks(played(queued, Launch(0), Launch(1), Wait(7.0), second, Launch(2))) == blocks(early)


@each_device
def test_posts_waits_and_orders_cost_blocks_time() -> None:
    costs = TileCosts(post_us=1.0, wait_us=0.5, order_us=2.0)
    assert blocks(walk(TILE, costs=costs)) == [
        (0, 0, 0, 11), (0, 1, 0, 11), (0, 0, 11, 22), (0, 1, 11, 22), (1, 2, 0, 27)
    ]  # fmt: skip
    built = chain((4, 1, 1), (1, 1, 1), us=(10.0, 8.0), costs=costs)
    there = Launch(0, partition=LEFT), Launch(1, partition=RIGHT)
    # Each block takes 2 us to find its tile; the consumer does that before it waits.
    slower = blocks(played(built, Synchronise(1, ROW, order="row-major"), *there))
    assert slower[-2:] == [(0, 1, 13, 26), (1, 2, 0, 34)]


@each_device
def test_a_tile_of_several_slices_is_posted_once_when_the_last_one_has_ended() -> None:
    built = chain((2, 1, 2), (2, 1, 1))
    episode = played(built, Synchronise(1, ROW), Launch(0, partition=LEFT), Launch(1, partition=RIGHT))
    # Slice 0 of both tiles ends at 10, slice 1 at 20. Two posts are what the consumer waits for.
    assert blocks(episode)[-2:] == waves(1, (range(2, 4), 0, 30))
    # A slice of the consumer goes through its own steps only.
    built = chain((4, 1, 1), (1, 1, 2), us=(10.0, 8.0))
    episode = played(built, Synchronise(1, TILE), Launch(0, partition=LEFT), Launch(1, partition=RIGHT))
    assert blocks(episode)[-2:] == [(1, 2, 0, 18), (1, 3, 0, 28)]


@each_device
def test_orders_decide_which_tiles_are_there_first() -> None:
    def ends(order: Any, needs: TileNeeds) -> list[int]:
        built = chain((4, 2, 1), (1, 2, 1), us=(10.0, 8.0), needs=needs)
        where = Launch(0, partition=LEFT), Launch(1, partition=RIGHT)
        return [row[-1] for row in blocks(played(built, Synchronise(1, ROW, order), *where))][-2:]

    # Row 0 is there at 20, row 1 at 40; by columns both with the last one.
    assert ends("native", TileNeeds()) == ends("row-major", TileNeeds()) == [28, 48]
    assert ends("column-major", TileNeeds()) == [48, 48]
    halves = chain((4, 1, 1), (1, 1, 1), us=(10.0, 8.0), needs=TileNeeds(fold=2))
    where = Launch(0, partition=LEFT), Launch(1, partition=RIGHT)
    # Tiles 0 and 2, which a step reads together, are there at 10, not at 20.
    episode = played(halves, Synchronise(1, TILE, "grouped"), *where)
    assert blocks(episode)[-1] == (1, 2, 0, 24)


@each_device
def test_a_kernel_in_the_middle_of_a_chain_waits_and_posts() -> None:
    built = chain((2, 1, 1), (2, 1, 1), (2, 1, 1))
    commands = [Synchronise(1, TILE), Synchronise(2, TILE), Launch(0), Launch(1), Launch(2)]
    episode = played(built, *commands)
    # Both tiles of a row end together; the third kernel takes the slots of the first one.
    assert blocks(episode) == (
        waves(0, (range(2), 0, 10)) + waves(1, (range(2, 4), 0, 20)) + waves(2, (range(2), 10, 30))
    )


@each_device
@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        # Tile (0, 1) needs the queries of row 0 and the keys of row 1, which are there at 30.
        (TILE, [(2, 18), (2, 28), (2, 38), (3, 38)]),
        (TilePolicy("matrix"), [(2, 18), (2, 28), (2, 38), (3, 38)]),
        # Row 0 is there at 20, row 1 at 30.
        (ROW, [(2, 28), (2, 38), (2, 46), (3, 38)]),
        (TilePolicy("strided", stride=1), [(2, 28), (2, 38), (2, 46), (3, 38)]),
    ],
)
def test_queries_times_keys_need_two_bands_of_one_producer(policy: TilePolicy, ends: list[tuple[int, int]]) -> None:
    """Queries, keys and values of two rows, a tile each, on two SMs; beside them 2 x 2 scores."""
    built = chain((3, 2, 1), (2, 2, 1), us=(10.0, 8.0), needs=TileNeeds("product", fold=3))
    episode = played(built, Synchronise(1, policy), Launch(0, partition=LEFT), Launch(1, partition=RIGHT))
    assert sorted((sm, end) for launch, sm, _, end in blocks(episode) if launch == 1) == ends


# ---- preemption --------------------------------------------------------------------------------------------------


@each_device
def test_blocks_that_wait_can_be_killed_or_saved_to_let_their_producer_run() -> None:
    built = chain((2, 2, 1), (2, 2, 1))
    first = Synchronise(1, ROW), Launch(1), Wait(1.0)
    episode = played(built, *first, Preempt(1, "reset"), Launch(0), Launch(1))
    assert blocks(episode)[-4:] == waves(1, (range(4), 11, 21))
    saved = played(built, *first, Preempt(1, "save"), Launch(0), Launch(1))
    kernels = saved.timeline.kernels
    assert kernels.column("preemptions").tolist() == [0.0, 1.0]
    assert round(kernels.column("ended_us")[1] - kernels.column("ended_us")[0], 6) == 10.0


@each_device
def test_saved_blocks_keep_their_own_work() -> None:
    """One block has passed its first step, the other waits for it: their mean would be a step too far for one."""
    built = chain((1, 2, 1), (1, 2, 1), us=(10.0, 8.0))
    commands = [
        Synchronise(1, ROW), Launch(0, partition=Partition(0, 1)), Launch(1, partition=RIGHT), Wait(14.0),
        Preempt(1, "save"), Wait(), Launch(1, partition=RIGHT),
    ]  # fmt: skip
    kernels = played(built, *commands).timeline.kernels
    # The second row is there at 20: its block has all of its 8 us left.
    assert kernels.column("ended_us").tolist() == [20.0, 28.0]


@each_device
def test_a_producer_that_posts_cannot_be_reset() -> None:
    device = new_device()
    device.reset(chain((2, 2, 1), (2, 2, 1)), 0)
    for command in (Synchronise(1, ROW), Launch(0), Wait(1.0)):
        device.apply(command)
        view = device.advance()
    assert view is not None
    assert view.running.idempotent.tolist() == [0.0]
    with refused(IllegalCommand, "idempotent"):
        device.apply(Preempt(0, "reset"))


# ---- what is refused ---------------------------------------------------------------------------------------------


def told(built: Problem, *commands: Command) -> str:
    """What the last of some commands is told."""
    device = new_device()
    device.reset(built, 0)
    for command in commands[:-1]:
        device.apply(command)
        device.advance()
    before = device.view()
    with pytest.raises(IllegalCommand) as refusal:
        device.apply(commands[-1])
    assert device.view().pending.array.tolist() == before.pending.array.tolist()
    return str(refusal.value)


@each_device
def test_a_policy_that_is_weaker_than_the_program_is_refused_with_both_launches_and_the_tile() -> None:
    two = chain((4, 2, 1), (2, 2, 1))
    said = told(two, Synchronise(1, TilePolicy("share")))
    assert "tile (0, 0) of launch 1 would read tile (0, 0) of launch 0 in its step 0" in said
    scores = chain((6, 2, 1), (2, 2, 1), needs=TileNeeds("product", fold=3))
    said = told(scores, Synchronise(1, TilePolicy("tile", steps=2)))
    assert "is too weak: tile (0, 0) of launch 1 would read tile (0, 1) of launch 0 in its step 1" in said
    # It waits for tile 1 before step 9, and reads it in step 3.
    said = told(chain((4, 1, 1), (1, 1, 1), needs=TileNeeds(steps=3)), Synchronise(1, conv2d(3, 3)))
    assert "tile (0, 0) of launch 1 would read tile (0, 1) of launch 0 in its step 3" in said


@each_device
@pytest.mark.parametrize(
    ("needs", "policy", "said"),
    [
        (TileNeeds(), TilePolicy("strided", stride=3), "stride 3 does not divide the 4 steps of a row of 4 tiles"),
        (TileNeeds(fold=2), TilePolicy("strided", stride=4), "stride 4 does not divide the 2 steps"),
        (TileNeeds(), TilePolicy("strided", stride=0), "whole numbers from 1 on"),
        (TileNeeds(steps=9), TILE, "its waits run beyond the last of 4 tiles"),
        (TileNeeds("share"), ROW, "can only be given policy share"),
        (TileNeeds(), TilePolicy("columns"), "kind share, row, tile, strided"),  # type: ignore[arg-type]
    ],
)
def test_a_policy_that_does_not_fit_is_refused(needs: TileNeeds, policy: TilePolicy, said: str) -> None:
    assert said in told(chain((4, 1, 1), (4, 1, 1), needs=needs), Synchronise(1, policy))


@each_device
def test_pairs_are_synchronised_once_and_before_the_producer_starts() -> None:
    built = chain((2, 2, 1), (2, 2, 1), (2, 2, 1))
    assert "synchronisable now: [1, 2]" in told(built, Synchronise(0, ROW))
    assert "synchronisable now: [2]" in told(built, Synchronise(1, ROW), Synchronise(1, ROW))
    said = told(built, Launch(0), Wait(1.0), Synchronise(1, ROW))
    assert "launch 0, whose tiles launch 1 needs, has started; synchronisable now: [2]" in said
    assert "launch 7 is not pending" in told(built, Synchronise(7, ROW))


@pytest.mark.parametrize(
    ("grids", "needs", "said"),
    [
        (((2, 3, 1), (2, 2, 1)), TileNeeds(), "kernel k1 has 2 x 2 tiles, k0 3 x 2: the rows of one grid"),
        (((3, 2, 1), (2, 2, 1)), TileNeeds(fold=2), "multiple of the 2 matrices"),
        (((2, 2, 1), (3, 2, 1)), TileNeeds("tile"), "both grids must be equal"),
        (((2, 2, 1), (3, 2, 1)), TileNeeds("product", fold=2), "the least of both rows and its columns divides them"),
        (((2, 2, 1), (2, 2, 1)), TileNeeds("product"), r"two of the producer's matrices, which has 1 \(fold\)"),
    ],
)
def test_grids_that_do_not_match_are_refused(grids: tuple[Grid, ...], needs: TileNeeds, said: str) -> None:
    with pytest.raises(InputError, match=said):
        chain(*grids, needs=needs)


def test_a_consumer_comes_after_its_producer() -> None:
    k = Kernels()
    first, second = k.op(1.0, tiles=0), k.op(1.0, stream=1)
    with refused(InputError, "operation 1", "after"):
        build(k, [first, second, Op(RECORD, index=0, stream=1), SYNC], program_streams=2)
    with refused(InputError, "event 3", "kernel"):
        build(k, [k.op(1.0), k.op(1.0, stream=1, tiles=3), SYNC], program_streams=2)


# ---- what holds for any pair -------------------------------------------------------------------------------------

ROUNDED = 1e-5
"""Microseconds: slices that end together do so a picosecond after each other."""
few = st.integers(1, 3)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Grid, Grid, TileNeeds, TilePolicy]:
    """Two grids of one or several rows, what the second one needs of the first, and a stride."""
    rows, more, product = draw(few), draw(st.sampled_from([1, 2])), draw(st.booleans())
    fold, steps = draw(st.sampled_from([2, 3] if product else [1, 2])), draw(few)
    columns = rows if product else draw(few)
    producer, consumer = (fold * steps, rows, draw(few)), (columns, rows * more, draw(few))
    stride = draw(st.sampled_from([stride for stride in range(1, steps + 1) if steps % stride == 0]))
    needs = TileNeeds("product" if product else "row", fold=fold)
    return producer, consumer, needs, TilePolicy("strided", stride=stride)


def end_us(built: Problem, *commands: Command) -> float:
    return run(built, in_turn(*commands)).end_us


@settings(deadline=None, max_examples=40)
@given(pairs())
def test_a_stronger_policy_is_never_quicker(pair: tuple[Grid, Grid, TileNeeds, TilePolicy]) -> None:
    producer, consumer, needs, strided = pair
    built = chain(producer, consumer, needs=needs)
    launches = Launch(0), Launch(1)
    in_stream_order = end_us(built, *launches)
    for group in (strided, TilePolicy("matrix")):
        times = [end_us(built, Synchronise(1, policy), *launches) for policy in (TILE, group, ROW)]
        times.append(in_stream_order)
        assert all(weak <= strong + ROUNDED for weak, strong in itertools.pairwise(times)), times


@settings(deadline=None, max_examples=30)
@given(pairs(), st.booleans())
def test_each_order_finishes_behind_the_producer(
    pair: tuple[Grid, Grid, TileNeeds, TilePolicy], wait_kernel: bool
) -> None:
    producer, consumer, needs, strided = pair
    built = chain(producer, consumer, needs=needs)
    alone_us = -(-producer[0] * producer[1] * producer[2] // 4) * 10.0
    for policy, order in itertools.product((TILE, strided, ROW, TilePolicy("matrix")), ORDERS):
        end = end_us(built, Synchronise(1, policy, order, wait_kernel), Launch(0), Launch(1))
        assert alone_us <= end <= alone_us + -(-consumer[0] * consumer[1] * consumer[2] // 4) * 10.0 + ROUNDED


def handed_out(episode: Episode, launch: int) -> list[tuple[int, int]]:
    """Start and end (ps) of the blocks of a launch that takes its tiles by number, by these: SM after SM."""
    rows = [row for row in episode.timeline.blocks.exact.tolist() if row[1] == launch]
    return [(start, end) for sm, _, _, start, end in sorted(rows, key=lambda row: (row[3], row[0]))]


@settings(deadline=None, max_examples=60)
@given(pairs(), st.sampled_from(["reference", "compiled"]), st.data())
def test_no_step_begins_before_the_tiles_that_it_reads_are_there(
    pair: tuple[Grid, Grid, TileNeeds, TilePolicy], device: str, data: st.DataObject
) -> None:
    """Each block of the consumer has ended no earlier than what it does behind a tile takes."""
    (columns, rows, slices), (others, height, parts), needs, strided = pair
    policy = data.draw(st.sampled_from([TILE, strided, ROW, TilePolicy("matrix")]))
    built = chain((columns, rows, slices), (others, height, parts), us=(10.0, 7.0), needs=needs)
    script = Script(in_turn(Synchronise(1, policy), Launch(0), Launch(1)))
    episode = run_episode(script, built, make_device(device), 0, record="blocks")
    there = [end for _, end in handed_out(episode, 0)[-rows * columns :]]
    steps = columns // needs.fold
    for block, (start, end) in enumerate(handed_out(episode, 1)):
        row, column = divmod(block % (others * height), others)
        own = [step for step in range(steps) if step * parts // steps == block // (others * height)]
        for place, step in enumerate(own):
            left_ps = (1.0 - place / len(own)) * 7e6
            for matrix in range(2 if needs.kind == "product" else needs.fold):
                keys = needs.kind == "product" and matrix == 1
                band = column * rows // others if keys else row * rows // height
                read = there[band * columns + matrix * steps + step]
                assert end >= max(start, read) + left_ps - 10 * slices, (block, step, matrix)


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 3), st.integers(1, 3), st.sampled_from([TILE, ROW]))
def test_integral_waves_gain_nothing(columns: int, others: int, policy: TilePolicy) -> None:
    built = chain((columns, 4, 1), (others, 4, 1))
    launches = Launch(0), Launch(1)
    assert end_us(built, Synchronise(1, policy), *launches) == end_us(built, *launches) == 10.0 * (columns + others)


def test_a_scheduler_sees_which_launches_are_pairs() -> None:
    device = new_device()
    view = device.reset(chain((2, 2, 1), (2, 2, 1), (2, 2, 1)), 0)
    assert view is not None
    assert view.pending.producer.tolist() == [-1.0, 0.0, 1.0]
    assert view.pending.synchronisable.tolist() == [0.0, 1.0, 1.0]
    assert Script(None).decide(view) == Launch(0)

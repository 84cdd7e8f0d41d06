"""Launches: stalls, queues, dispatch, nesting. Times in cycles, solved by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpusched_env.errors import DeadlockError
from gpusched_env.games.child_launches.device import LaunchDevice
from gpusched_env.games.child_launches.experiments.fuzz_cases import Request
from gpusched_env.games.child_launches.hardware.warp_machine import FREE
from tests.games.child_launches.devices.toys import MACHINE, PS, column, gpu, kernel, run, thread, toy
from tests.refusals import refused

THREE = kernel(thread(0, 1), thread(0, 2), thread(0, 3))
"""A warp whose first three lanes may launch a child of 1, 2 and 3 iterations: asked at 150."""


def test_a_child_starts_after_the_stall_and_the_dispatch(device: LaunchDevice) -> None:
    views = run(device, toy(kernel(thread(0, 2))))
    assert [(v.now_ps, v.work, v.items, v.blocks, v.nesting, v.queues) for v in views] == [(150 * PS, 2, 1, 1, 0, 1)]
    # The parent ends after 25 cycles of stall; the child takes 50 to dispatch, 100 of prologue and 20.
    assert device.launches.tolist() == [
        (-1, -1, 1, 0, 0, 50 * PS, 175 * PS, 345 * PS),
        (0, 0, 1, 150 * PS, 175 * PS, 225 * PS, 345 * PS, 345 * PS),
    ]
    assert device.time_ps == 345 * PS
    assert device.totals["warp_ps"] == (125 + 120) * PS


def test_a_warp_stalls_for_all_its_children_and_then_does_the_rest(device: LaunchDevice) -> None:
    views = run(device, toy(THREE), [True, False, True])
    assert [(v.spawned, v.serial_work, v.inside, v.waiting) for v in views] == [
        (0, 0, 0, 0),
        (1, 0, 1, 1),
        (1, 2, 1, 1),
    ]
    # 2 x 5 + 20 of stall; then the second lane's 2 iterations, which the queue does not wait for.
    assert column(device, "queued") == [0, 180, 180]
    assert column(device, "ended") == [200, 340, 360]
    assert (device.totals["decisions"], device.totals["spawned"]) == (3, 2)


def test_other_warps_go_on_while_one_stalls(device: LaunchDevice) -> None:
    run(device, toy(kernel(thread(0, 1), *[thread()] * 31, thread(2), block=64)))
    assert column(device, "ended") == [175, 335]
    run(device, toy(kernel(thread(0, 1), *[thread()] * 31, thread(4), block=64)))
    assert column(device, "ended") == [190, 335]


def test_requests_after_a_launch_wait_for_its_stall(device: LaunchDevice) -> None:
    views = run(device, toy(kernel(thread(0, 1, 1))), [True, False])
    assert [v.now_ps for v in views] == [150 * PS, 175 * PS]
    assert column(device, "ended")[0] == 185


def test_children_wait_for_hardware_queues(device: LaunchDevice) -> None:
    run(device, toy(THREE, hardware_queues=2))
    # All end their call at 185, when the parent gives its queue back. The third has the first one's.
    assert column(device, "queued") == [0, 185, 185, 345]
    assert column(device, "started") == [50, 235, 235, 395]
    assert device.time_ps == 525 * PS


def test_at_most_32_kernels_have_a_queue(device: LaunchDevice) -> None:
    run(device, toy(kernel(*[thread(0, 1)] * 64, block=64), machine=replace(MACHINE, gpu=gpu(sms=4))))
    # Two warps of 32 lanes: 32 x 5 + 20. The first takes the 31 queues that the parent leaves, which then ends.
    assert column(device, "queued") == [0, *[330] * 32, *[490] * 32]
    assert device.time_ps == (490 + 50 + 110) * PS


def test_children_take_the_room_that_is_too_small_for_their_parents(device: LaunchDevice) -> None:
    # 96 threads: a parent's block of 64, and room for one of a child, which is ready at 225. Its parent's other blocks
    # follow one another: 50, 175, 275.
    parent = kernel(thread(0, 1), *[thread()] * 191, block=64)
    run(device, toy(parent, machine=replace(MACHINE, gpu=gpu(threads=96))))
    assert column(device, "queued") == [0, 175]
    assert column(device, "started") == [50, 225]
    assert column(device, "ended") == [375, 335]


def test_parents_go_before_children(device: LaunchDevice) -> None:
    # 64 threads: when the first block leaves at 175, its child is not ready, at 275 it is, but the last block is first.
    parent = kernel(thread(0, 1), *[thread()] * 191, block=64)
    run(device, toy(parent, machine=replace(MACHINE, gpu=gpu(threads=64))))
    assert column(device, "started") == [50, 375]
    assert column(device, "ended") == [375, 485]


def test_children_of_a_block_run_one_after_another_in_its_queue(device: LaunchDevice) -> None:
    run(device, toy(THREE, queue_of="block"), [True, True, False])
    assert column(device, "queued") == [0, 180, 340]
    assert column(device, "started") == [50, 230, 390]
    two_blocks = kernel(*[thread(0, 1), *[thread()] * 31] * 2)
    run(device, toy(two_blocks, queue_of="block"))
    assert column(device, "queued") == [0, 175, 175]


def test_a_shared_queue_waits_for_grandchildren(device: LaunchDevice) -> None:
    nested = Request(threads=(thread(0, 1),))
    run(device, toy(kernel(thread(0, nested), thread(0, 1)), queue_of="block"))
    # The first child ends at 355; its own one is queued then and finishes at 515, which the second waits for.
    assert column(device, "queued") == [0, 180, 515, 355]
    assert column(device, "finished") == [675, 515, 675, 515]


def test_nested_children(device: LaunchDevice) -> None:
    inner = Request(threads=(thread(1, 2), thread(2)))
    views = run(device, toy(kernel(thread(0, inner)), threshold=0))
    assert [(v.now_ps / PS, v.nesting, v.request, v.work, v.items) for v in views] == [
        (150, 0, 0, 5, 2),
        (345, 1, 1, 2, 1),
    ]
    assert device.launches["parent"].tolist() == [-1, 0, 1]
    assert column(device, "started") == [50, 225, 420]
    assert column(device, "ended") == [175, 370, 540]
    assert column(device, "finished") == [540, 540, 540]
    # Not launched, it is its 5 iterations.
    run(device, toy(kernel(thread(0, inner))), [])
    assert device.time_ps == 200 * PS


def test_blocks_that_wait_for_their_children_hold_their_sms(device: LaunchDevice) -> None:
    run(device, toy(kernel(thread(0, 2)), parents="wait"))
    assert column(device, "ended") == [345, 345]
    assert device.totals["warp_ps"] == (125 + 120) * PS
    with pytest.raises(DeadlockError) as error:
        run(device, toy(kernel(thread(0, 2)), parents="wait", machine=replace(MACHINE, gpu=gpu(threads=32))))
    assert str(error.value) == (
        "fuzz: nothing can happen any more after 0.225 us: 0 launches wait for one of 32 hardware queues, of which 2 "
        "are in use; the blocks of launch 1, next in order, have no room on any SM; 1 blocks, with 0 warps left, hold "
        "their SMs until their children finish"
    )


def test_kernels_that_hold_their_queues_until_children_finish(device: LaunchDevice) -> None:
    nested = kernel(thread(0, Request(threads=(thread(0, 1),))))
    run(device, toy(nested, held_until="children", hardware_queues=3))
    assert column(device, "queued") == [0, 175, 350]
    with pytest.raises(DeadlockError) as error:
        run(device, toy(nested, held_until="children", hardware_queues=2))
    assert str(error.value) == (
        "fuzz: nothing can happen any more after 0.35 us: 1 launches wait for one of 2 hardware queues, of which 2 are "
        "in use until children have finished"
    )
    run(device, toy(nested, hardware_queues=2))
    assert column(device, "queued") == [0, 175, 350]


def test_a_queue_that_is_held_until_children_finish_is_free_then(device: LaunchDevice) -> None:
    run(device, toy(THREE, held_until="children", hardware_queues=2))
    assert column(device, "queued") == [0, 185, 345, 515]


def test_a_deadlock_is_told_again(device: LaunchDevice) -> None:
    problem = toy(kernel(thread(0, 2)), parents="wait", machine=replace(MACHINE, gpu=gpu(threads=32)))
    with pytest.raises(DeadlockError):
        run(device, problem)
    with refused(DeadlockError, "launch 1", "order"):
        device.advance()
    run(device, toy(kernel(thread(3))))
    assert device.time_ps == 180 * PS


def test_a_full_pool_makes_launches_fail(device: LaunchDevice) -> None:
    views = run(device, toy(THREE, pool=1, overflow="fail"))
    assert [(v.room, v.spawned, v.serial_work) for v in views] == [(1, 0, 0), (0, 1, 0), (0, 1, 2)]
    assert (device.totals["spawned"], device.totals["refused"], device.totals["spilled"]) == (1, 2, 0)
    # A stall of one child, then the longer of 2 and 3 iterations.
    assert column(device, "ended") == [205, 335]


def test_a_full_pool_makes_launches_take_longer(device: LaunchDevice) -> None:
    run(device, toy(THREE, pool=1, overflow="spill", spill_cycles=40))
    assert (device.totals["spawned"], device.totals["refused"], device.totals["spilled"]) == (3, 0, 2)
    assert column(device, "queued") == [0, *[150 + 35 + 2 * 40] * 3]


def test_a_pool_is_free_again_when_children_get_queues(device: LaunchDevice) -> None:
    views = run(device, toy(kernel(thread(0, 1, 1)), pool=1, overflow="fail"))
    # The first has no queue before 175, when its call is over; it is asked first, and has one by dispatch.
    assert [v.room for v in views] == [1, 0]
    views = run(device, toy(kernel(thread(0, 1, 2, 1)), pool=1, overflow="fail"), [True, False, True])
    assert [v.room for v in views] == [1, 0, 1]


def test_aggregated_children_are_one_launch(device: LaunchDevice) -> None:
    views = run(device, toy(kernel(thread(0, 1, 1), thread(0, 2), thread(0, 3)), aggregated=True, hardware_queues=2))
    # One child's stall for all three; one queue for all three.
    assert column(device, "queued") == [0, 175, 175, 175, 200]
    assert column(device, "started") == [50, 225, 225, 225, 250]
    assert column(device, "ended") == [200, 335, 345, 355, 360]
    assert views[3].spawned == 0
    # With the parent still there a second launch of three has to wait until all of the first have ended.
    held = kernel(thread(0, 1, 1, 40), thread(0, 3))
    run(device, toy(held, aggregated=True, hardware_queues=2), [True, True, True, False])
    assert column(device, "queued") == [0, 175, 175, 355]


def test_free_launches_start_at_once(device: LaunchDevice) -> None:
    run(device, toy(THREE, machine=replace(MACHINE, launches=FREE)))
    assert device.launches["created_ps"].tolist() == [0, *[100 * PS] * 3]
    assert device.launches["started_ps"].tolist() == [0, *[100 * PS] * 3]
    assert device.time_ps == 230 * PS


def test_children_become_ready_at_intervals(device: LaunchDevice) -> None:
    run(device, toy(THREE, interval_cycles=30))
    assert column(device, "queued") == [0, 185, 185, 185]
    assert column(device, "started") == [50, 235, 265, 295]


def test_the_host_s_kernels_run_one_after_another(device: LaunchDevice) -> None:
    views = run(device, toy(kernel(thread(0, 2)), kernel(thread(1, 3))), [True, False])
    # The second is launched when the first one's child has finished, at 345.
    assert [(v.now_ps / PS, v.kernel, v.blocks_ended) for v in views] == [(150, 0, 0), (505, 1, 1)]
    assert device.launches["parent"].tolist() == [-1, 0, -1]
    assert column(device, "created") == [0, 150, 345]
    assert device.time_ps == 535 * PS


def test_a_child_of_several_blocks(device: LaunchDevice) -> None:
    child: dict[str, Any] = {"items": 70, "iterations": 1}
    machine = replace(MACHINE, gpu=gpu(blocks=2))
    views = run(device, toy(kernel(thread(0, Request(**child)), child_block=32), machine=machine))
    assert [(v.work, v.items, v.blocks) for v in views] == [(70, 70, 3)]
    assert device.launches[1].tolist()[2:] == (3, *(PS * t for t in (150, 175, 225, 445, 445)))

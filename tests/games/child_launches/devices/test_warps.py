"""Warps and SMs: how long phases take, alone and beside others. Times in cycles, solved by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpusched_env.games.child_launches.device import LaunchDevice
from gpusched_env.games.child_launches.hardware.warp_machine import LoopBody
from tests.games.child_launches.devices.toys import MACHINE, PS, column, gpu, kernel, run, thread, toy


def test_a_warp_takes_its_prologue_and_its_longest_lane(device: LaunchDevice) -> None:
    assert run(device, toy(kernel(thread(3), thread(1)))) == []
    # 50 to dispatch, 100 of prologue, 3 turns of 10.
    assert device.time_ps == 180 * PS
    assert device.totals["warp_ps"] == 130 * PS
    assert device.totals["peak_blocks"] == 1
    assert device.launches.tolist() == [(-1, -1, 1, 0, 0, 50 * PS, 180 * PS, 180 * PS)]


def test_a_block_ends_with_its_last_warp(device: LaunchDevice) -> None:
    long_warp = [thread(1)] * 32 + [thread(4)] * 32
    run(device, toy(kernel(*long_warp, block=64)))
    assert device.time_ps == 190 * PS
    assert device.totals["warp_ps"] == (110 + 140) * PS


def test_blocks_wait_for_room(device: LaunchDevice) -> None:
    one_at_a_time = replace(MACHINE, gpu=gpu(blocks=1))
    run(device, toy(kernel(*[thread(1)] * 70), machine=one_at_a_time))
    assert device.time_ps == (50 + 3 * 110) * PS


def test_lanes_take_their_turns_together(device: LaunchDevice) -> None:
    # Turn 0: 2 and 3 iterations, turn 1: 5. Nothing is launched.
    views = run(device, toy(kernel(thread(0, 2, 5), thread(0, 3))), [])
    assert [(v.now_ps / PS, v.calls, v.position, v.work, v.serial_work, v.largest_work) for v in views] == [
        (150, 2, 0, 2, 0, 3),
        (150, 2, 1, 3, 2, 3),
        (180, 1, 0, 5, 0, 5),
    ]
    assert device.time_ps == 230 * PS


def test_requests_below_the_threshold_are_not_asked(device: LaunchDevice) -> None:
    views = run(device, toy(kernel(thread(0, 4), thread(0, 3)), threshold=3))
    # The lane that does not ask works after the launch call of the other: 150 + 25 + 30.
    assert [(v.work, v.calls, v.serial_work, v.largest_work) for v in views] == [(4, 1, 3, 4)]
    assert column(device, "ended")[0] == 205


def test_work_of_nothing_takes_no_time(device: LaunchDevice) -> None:
    run(device, toy(kernel(thread(0, 0), thread(0, 0)), threshold=-1), [])
    assert device.time_ps == 150 * PS


SHARING = replace(MACHINE, gpu_lines=1, sm_lines=1, dram_lines=1, prologue_cycles=10)
HALF = LoopBody(chain=0, dependent=1, instructions=5e12, parent_lines=5, child_lines=0)
"""A loop of one lane asks for half of an SM's lines, of the GPU's, and of an SM's schedulers; prologues for nothing."""


def test_two_warps_of_an_sm_slow_each_other(device: LaunchDevice) -> None:
    both = [thread(0, 20), *[thread()] * 31, thread(0, 10)]
    run(device, toy(kernel(*both, block=64), machine=SHARING, body=HALF), [])
    # From 60 on both, at half the rate: sqrt(1 + 1 + 1 + 1) = 2. The shorter ends at 260, the longer is half done; its
    # other 100 cycles take sqrt(1 + 3 / 4) = 1.3228757 times as long, rounded up to a picosecond.
    assert device.time_ps == 260 * PS + 132_288
    assert device.totals["warp_ps"] == 2 * 210 * PS + 132_288


def test_equal_warps_of_a_block_count_as_many(device: LaunchDevice) -> None:
    # 2 warps without requests that are simulated as one: prologues of 100 cycles that ask for half of everything.
    machine = replace(SHARING, prologue_cycles=100, prologue_lines=50, issue_width=0.2)
    body = replace(HALF, instructions=0, parent_lines=0)
    run(device, toy(kernel(*[thread()] * 64, block=64), machine=machine, body=body))
    assert device.time_ps == 250 * PS
    assert device.totals["warp_ps"] == 400 * PS


def test_blocks_go_to_the_sm_with_most_room_and_share_the_gpu_s_lines(device: LaunchDevice) -> None:
    blocks = kernel(thread(0, 20), *[thread()] * 31, thread(0, 10))
    run(device, toy(blocks, machine=replace(SHARING, gpu=gpu(sms=2)), body=HALF), [])
    # One on each: sqrt(1 + 1 + 1/4 + 1/4) = 1.5811388 until 60 + 158.114; then as above.
    assert device.time_ps == 60 * PS + 158_114 + 132_288


@pytest.mark.parametrize("clock_mhz", [1400.0, 706.0])
def test_times_are_whole_picoseconds(device: LaunchDevice, clock_mhz: float) -> None:
    machine = replace(MACHINE, clock_mhz=clock_mhz)
    run(device, toy(kernel(thread(3)), machine=machine))
    # Dispatch is rounded to the nearest, ends of phases are rounded up.
    assert device.time_ps == {1400.0: 35_714 + 92_858, 706.0: 70_822 + 184_136}[clock_mhz]

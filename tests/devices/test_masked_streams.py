"""Streams with masks, and more queues than the hardware holds: literal logs worked out by hand.

On the teaching GPU (4 SMs of one block), with these latencies in us: launch 2, stream gap 1, event 1.5, change of a
partition 7.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import SetUp, set_up
from gpusched_env.scheduling.commands import WAIT, Launch, Partition, Preempt, SetPartition, Wait
from gpusched_env.workload.workload import Op
from tests.devices.problems import Script, new_device, run
from tests.devices.programs import SYNC, TIMING, Kernels, build
from tests.devices.test_entities import in_turn, log, us

pytestmark = pytest.mark.usefixtures("each_device")

LOWER, UPPER, DEFAULT = 1, 2, 3
"""Rows of the scheduler's own streams: SMs 0 and 1, SMs 2 and 3, the tenant's."""


def masked(*ops: Op, kernels: Kernels, **fields: object) -> Problem:
    timing = TIMING | {"partition_change_us": 7.0}
    built = build(kernels, [*ops, SYNC], timing=timing, **fields)
    return set_up(built, SetUp(streams=lambda scenario, gpu: [(0, 2), (2, 2), None]))


def launched_us(episode: Episode) -> list[float]:
    """By id."""
    kernels = episode.timeline.kernels
    return [us for _, us in sorted(zip(kernels.column("id"), kernels.column("launched_us"), strict=True))]


def sms_of(episode: Episode) -> dict[int, set[int]]:
    """By launch, where its blocks were."""
    blocks = episode.timeline.blocks
    found: dict[int, set[int]] = {}
    for sm, launch in zip(blocks.column("sm").tolist(), blocks.column("kernel").tolist(), strict=True):
        found.setdefault(int(launch), set()).add(int(sm))
    return found


def test_a_mask_costs_no_host_time_and_a_hop_between_queues_an_event() -> None:
    k = Kernels()
    built = masked(k.op(10.0, 8), k.op(10.0, 4), k.op(10.0), k.op(10.0, 4), kernels=k)
    episode = run(built, in_turn(Launch(0, stream=LOWER), *(Launch(i, stream=UPPER) for i in (1, 2)), Launch(3)))
    # Four waves on two SMs; a hop; two waves on the other two; behind it in the same queue; a hop back to all SMs.
    assert log(episode) == us((0, 2, 42), (1, 43.5, 63.5), (2, 64.5, 74.5), (3, 76, 86))
    assert launched_us(episode) == [0.0, 0.0, 0.0, 0.0]
    found = sms_of(episode)
    assert (found[0], found[1], found[3]) == ({0, 1}, {2, 3}, {0, 1, 2, 3})


def test_a_hop_behind_what_has_ended_costs_nothing() -> None:
    k = Kernels()
    built = masked(k.op(10.0, 2), k.op(10.0, 2), kernels=k)
    episode = run(built, in_turn(Launch(0, stream=LOWER), WAIT, Launch(1, stream=UPPER)))
    assert log(episode) == us((0, 2, 12), (1, 14, 24))


def test_a_launch_that_names_other_sms_than_its_stream_s_pays_for_them() -> None:
    k = Kernels()
    built = masked(k.op(10.0, 2), k.op(10.0, 2), k.op(10.0, 4), k.op(10.0, 4), kernels=k)
    same, other = Launch(1, stream=UPPER, partition=Partition(2, 2)), Launch(2, stream=UPPER, partition=Partition(0, 4))
    episode = run(built, in_turn(Launch(0, stream=LOWER), same, other, Launch(3, stream=UPPER)))
    assert launched_us(episode) == [0.0, 0.0, 7.0, 7.0]
    assert log(episode) == us((0, 2, 12), (1, 13.5, 23.5), (2, 24.5, 34.5), (3, 35.5, 55.5))


def test_a_mask_goes_before_its_tenant_s_partition_and_outlasts_a_preemption() -> None:
    k = Kernels()
    fields = {"commands": ["launch", "partition", "preempt"]}
    built = masked(k.op(10.0, 4), k.op(10.0, 4), k.op(10.0, 4), kernels=k, **fields)
    confine = SetPartition(0, Partition(3, 1))
    again = (Wait(5.0), Preempt(0, "drain"), WAIT, Launch(0), Launch(1, stream=DEFAULT), Launch(2))
    episode = run(built, in_turn(confine, Launch(0, stream=LOWER), *again))
    # Two of its four blocks run when it is drained, the other two when it comes back at 12; then the tenant's one SM.
    assert log(episode) == us((0, 2, 24), (1, 25.5, 65.5), (2, 67, 107))
    assert {launch: len(sms) for launch, sms in sms_of(episode).items()} == {0: 2, 1: 1, 2: 1}


def five_kernels(period_us: float) -> Problem:
    """Of 5 us in three streams, of which the hardware has two queues."""
    k = Kernels()
    ops = [k.op(5.0, stream=stream) for stream in (0, 1, 2, 1, 1)]
    built = build(k, [*ops, SYNC], program_streams=3, timing=TIMING | {"queue_period_us": period_us})
    return replace(built, gpu=msgspec.structs.replace(built.gpu, channels=2))


def test_queues_beyond_those_that_the_hardware_holds_take_turns() -> None:
    # Streams 0 and 1 are held until 10, then 2 and 0, from 20 on 1 and 2.
    episode = run(five_kernels(10.0))
    assert log(episode) == us((0, 2, 7), (1, 2, 7), (3, 8, 13), (2, 10, 15), (4, 20, 25))


def test_streams_share_queues_where_the_hardware_does_not_switch() -> None:
    episode = run(five_kernels(0.0))
    assert log(episode) == us((0, 2, 7), (1, 2, 7), (2, 2, 7), (3, 8, 13), (4, 14, 19))


def test_only_queues_that_are_used_take_turns() -> None:
    k = Kernels()
    built = build(k, [k.op(5.0), k.op(5.0), SYNC], timing=TIMING | {"queue_period_us": 10.0})
    built = set_up(built, SetUp(streams=lambda scenario, gpu: [None] * 12))
    built = replace(built, gpu=msgspec.structs.replace(built.gpu, channels=2))
    script = Script(in_turn(Launch(0, stream=5), Launch(1, stream=9)))
    assert log(run_episode(script, built, new_device(), 0, record="kernels")) == us((0, 2, 7), (1, 8.5, 13.5))


def test_eight_queues_are_undisturbed_and_nine_are_not() -> None:
    """Kernels go round over streams of an SM each, and wait for each other (ECLIP's observation 2)."""

    def end_us(queues: int) -> float:
        k = Kernels()
        ops = [k.op(5.0) for _ in range(36)]
        built = build(k, [*ops, SYNC], timing=TIMING | {"queue_period_us": 20.0}, lookahead=40)
        built = set_up(built, SetUp(streams=lambda scenario, gpu: [(row % 4, 1) for row in range(queues)]))
        script = Script(in_turn(*(Launch(kernel, stream=1 + kernel % queues) for kernel in range(36))))
        return run_episode(script, built, new_device(), 0).end_us

    ends = {queues: end_us(queues) for queues in (2, 7, 8, 9, 12)}
    # 2 us to reach the GPU, 36 kernels, and a hop between each two.
    assert ends[2] == ends[7] == ends[8] == pytest.approx(2.0 + 36 * 5.0 + 35 * 1.5)
    assert 1.1 * ends[8] < ends[9] < ends[12]

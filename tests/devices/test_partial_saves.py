"""Saving a kernel's blocks on some SMs, on instances worked out by hand: a block holds an SM and is saved in 5 us."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.episodes.session import Episode
from gpusched_env.errors import IllegalCommand
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition, Preempt, Wait
from gpusched_env.scheduling.contract import Device
from gpusched_env.scheduling.timeline import Detail
from gpusched_env.scheduling.view import View
from tests.devices.problems import K, kernel_ends, launch_first, new_device, problem, run
from tests.refusals import refused

pytestmark = pytest.mark.usefixtures("each_device")

BLOCK_BYTES = 1024 * 32 * 4
URGENT = {"ops": [K(1, 20.0)], "arrivals": {"kind": "backlog", "start_us": 30.0}}


def instance(folder: Path, *tenants: dict[str, Any], sms: int = 2, **fields: Any) -> Problem:
    gpu = {"sms": sms, "dram_bytes_per_us": BLOCK_BYTES / 5.0, "timing": {"slice_us": 20.0, "switch_us": 0.0}}
    # With partitions to decide on, the scheduler is asked whenever something happens.
    return problem(folder, *tenants, gpu=gpu, commands=["launch", "preempt", "partition"], **fields)


def save(first: int, sms: int, kernel: int = 0) -> Preempt:
    return Preempt(kernel, "save", Partition(first, sms))


def at_times(*script: tuple[float, Command]) -> Callable[[View], Command]:
    """Give commands at their times; launch everything, tenant 1 as urgent."""
    left = list(script)

    def decide(view: View) -> Command:
        for id_, tenant, launchable in zip(view.pending.id, view.pending.tenant, view.pending.launchable, strict=True):
            if launchable:
                return Launch(int(id_), -int(tenant))
        if left and left[0][0] <= view.time_us:
            return left.pop(0)[1]
        return Wait(left[0][0]) if left else WAIT

    return decide


def blocks(episode: Episode) -> list[tuple[float, ...]]:
    """(SM, kernel, blocks, start, end) of residencies that ended by themselves, in order."""
    return [tuple(row) for row in episode.timeline.blocks.array.round(3).tolist()]


def test_an_urgent_kernel_gets_the_saved_blocks_sm_and_the_others_go_on(tmp_path: Path) -> None:
    episode = run(instance(tmp_path, {"ops": [K(2, 100.0)]}, URGENT), at_times((30.0, save(0, 1))))
    # Saved until 35, read back until 40, dispatched again when the urgent kernel leaves at 55, with 70 us to do.
    assert blocks(episode) == [(0, 1, 1, 35.0, 55.0), (1, 0, 1, 0.0, 100.0), (0, 0, 1, 55.0, 125.0)]
    assert kernel_ends(episode) == [(1, 35.0, 55.0), (0, 0.0, 125.0)]
    assert episode.timeline.kernels.column("preemptions").tolist() == [0.0, 1.0]
    assert episode.costs.busy_sm_us == pytest.approx(2 * 100.0 + 20.0 + 5.0), "work, and an SM held for the save"


def test_without_another_kernel_they_go_on_once_they_are_read_back(tmp_path: Path) -> None:
    built = instance(tmp_path, {"ops": [K(2, 100.0)]})
    assert kernel_ends(run(built, at_times((30.0, save(0, 1))))) == [(0, 0.0, 110.0)]
    assert kernel_ends(run(built, at_times((30.0, save(1, 2))))) == [(0, 0.0, 120.0)], "around the end: both SMs"


def test_a_kernel_without_resident_blocks_stays_launched(tmp_path: Path) -> None:
    episode = run(instance(tmp_path, {"ops": [K(2, 100.0)]}, URGENT), at_times((30.0, save(0, 2))))
    # Both are saved until 40 and read back until 50: one goes on at once, the other behind the urgent kernel at 60.
    assert blocks(episode) == [(0, 1, 1, 40.0, 60.0), (1, 0, 1, 50.0, 120.0), (0, 0, 1, 60.0, 130.0)]


def test_where_none_of_its_blocks_is_resident_nothing_happens(tmp_path: Path) -> None:
    built = instance(tmp_path, {"ops": [K(1, 100.0)]})
    episode = run(built, at_times((30.0, save(1, 1))))
    assert kernel_ends(episode) == [(0, 0.0, 100.0)]
    assert episode.timeline.kernels.column("preemptions").tolist() == [0.0]
    # The next one is another instant's.
    assert kernel_ends(run(built, at_times((30.0, save(1, 1)), (31.0, save(0, 1))))) == [(0, 0.0, 110.0)]
    with refused(IllegalCommand, "preempted"):
        run(built, at_times((30.0, save(1, 1)), (30.0, save(1, 1))))


def test_saved_blocks_come_before_those_that_never_ran(tmp_path: Path) -> None:
    episode = run(instance(tmp_path, {"ops": [K(4, 36.0)]}), at_times((30.0, save(0, 1))))
    # The other SM is free at 36, but the kernel hands out nothing while it is read back; it has 6 us left at 40.
    assert blocks(episode) == [
        (1, 0, 1, 0.0, 36.0),
        (0, 0, 1, 40.0, 46.0),
        (1, 0, 1, 40.0, 76.0),
        (0, 0, 1, 46.0, 82.0),
    ]


def test_a_kernel_goes_on_handing_out_blocks_while_some_are_saved(tmp_path: Path) -> None:
    episode = run(instance(tmp_path, {"ops": [K(3, 32.0)]}), at_times((30.0, save(0, 1))))
    assert blocks(episode) == [(1, 0, 1, 0.0, 32.0), (0, 0, 1, 40.0, 42.0), (1, 0, 1, 32.0, 64.0)]


def test_a_second_save_is_read_back_after_the_first(tmp_path: Path) -> None:
    built = instance(tmp_path, {"ops": [K(4, 100.0)]}, sms=4)
    episode = run(built, at_times((30.0, save(0, 2)), (40.0, save(2, 1))))
    # Two blocks saved until 40, read back until 50; a third one from 40 to 45, read back from 50 to 55. What is left
    # of them, 70, 70 and 60 us, is shared.
    assert blocks(episode)[0] == (3, 0, 1, 0.0, 100.0)
    assert {row[3:] for row in blocks(episode)[1:]} == {(55.0, 121.667)}


def test_the_whole_kernel_can_be_preempted_while_blocks_are_read_back(tmp_path: Path) -> None:
    built = instance(tmp_path, {"ops": [K(2, 100.0)]})
    # Read back until 40. Saved at 36: the other block until 41, both read back until 41 + 5 + 4, 67 us left of each.
    assert kernel_ends(run(built, at_times((30.0, save(0, 1)), (36.0, Preempt(0, "save"))))) == [(0, 0.0, 117.0)]
    # Drained at 36: the other block ends at 100, then 4 us of reading back and 70 of work are left.
    assert kernel_ends(run(built, at_times((30.0, save(0, 1)), (36.0, Preempt(0, "drain"))))) == [(0, 0.0, 174.0)]
    assert kernel_ends(run(built, at_times((30.0, save(0, 1)), (36.0, Preempt(0, "reset"))))) == [(0, 0.0, 136.0)]
    # Nothing is resident: drained at once, read back by 40.
    assert kernel_ends(run(built, at_times((30.0, save(0, 2)), (46.0, Preempt(0, "drain"))))) == [(0, 0.0, 120.0)]


def test_a_drain_after_a_save_has_nothing_to_read_back(tmp_path: Path) -> None:
    built = instance(tmp_path, {"ops": [K(4, 100.0)]})
    script = at_times((30.0, Preempt(0, "save")), (60.0, Preempt(0, "drain")))
    # Saved until 40, read back until 50, ended at 120; the other two blocks follow at once.
    assert kernel_ends(run(built, script)) == [(0, 0.0, 220.0)]


@pytest.mark.parametrize("record", ["blocks", "kernels"])
def test_a_block_that_ends_as_they_are_read_back_is_followed_by_its_kernels_next(
    tmp_path: Path, record: Detail
) -> None:
    """Without a record of blocks, waves of the other kernel are jumped over."""
    other = {"ops": [K(20, 1.0)], "arrivals": {"kind": "backlog", "start_us": 32.0}}
    built = instance(tmp_path, {"ops": [K(1, 100.0)]}, other, sms=1)

    saves = [save(0, 1)]

    def decide(view: View) -> Command:
        if len(view.pending):
            return launch_first(view)
        if view.time_us < 30.0:
            return Wait(30.0)
        return saves.pop() if saves else WAIT

    # Saved until 35, read back until 40: the other one has the SM until 41, and again from 111 on.
    assert kernel_ends(run(built, decide, record=record)) == [(0, 0.0, 111.0), (1, 35.0, 125.0)]


def test_a_kernel_comes_back_before_later_ones_of_its_priority(tmp_path: Path) -> None:
    """Kernel 1 waits for room behind kernel 0, which had been handed out."""
    built = instance(tmp_path, {"ops": [K(2, 100.0)]}, {"ops": [K(2, 50.0)]})

    def decide(view: View) -> Command:
        if view.time_us == 0.0:
            return launch_first(view) if len(view.pending) else Wait(30.0)
        return save(0, 1) if view.time_us == 30.0 and not view.running.preempting[0] else WAIT

    # One block of kernel 1 has the freed SM from 35 to 85; then the saved block goes before the other one.
    assert blocks(run(built, decide)) == [
        (0, 1, 1, 35.0, 85.0), (1, 0, 1, 0.0, 100.0), (1, 1, 1, 100.0, 150.0), (0, 0, 1, 85.0, 155.0),
    ]  # fmt: skip


def test_a_context_may_be_switched_out_meanwhile(tmp_path: Path) -> None:
    twice = [{"ops": [K(2, 100.0)]}] * 2
    built = instance(tmp_path, *twice, contexts="per-tenant")
    # Slices of 20 us. Saved and read back from 18 to 28; at 40, 82 us are left: 80 in four slices, 2 from 200 on.
    assert kernel_ends(run(built, at_times((18.0, save(0, 1)))))[-1] == (0, 0.0, 202.0)


def drive(built: Problem, *script: tuple[float, Command]) -> tuple[Device, Callable[[float], View]]:
    """A device with everything launched, and a function that goes on to a time."""
    device, decide = new_device(), at_times(*script)
    state = [device.reset(built, 0)]

    def go(until_us: float) -> View:
        while (view := state[0]) is not None:
            command = decide(view)
            if isinstance(command, Wait):
                if view.time_us >= until_us:
                    break
                command = Wait(min(command.until_us, until_us))
            device.apply(command)
            state[0] = device.advance()
        return device.view()

    return device, go


def test_views_tell_where_the_blocks_are(tmp_path: Path) -> None:
    _, go = drive(instance(tmp_path, {"ops": [K(3, 100.0)]}), (30.0, save(0, 1)))

    def seen(at_us: float) -> tuple[float, ...]:
        view = go(at_us)
        row = view.running
        return (row.preempting[0], row.blocks_waiting[0], row.blocks_resident[0], view.busy_sms, view.occupancy)

    assert seen(29.0) == (0.0, 1.0, 2.0, 2, 1.0)
    assert seen(33.0) == (1.0, 1.0, 2.0, 2, 1.0)
    assert seen(37.0) == (0.0, 2.0, 1.0, 1, 0.5)
    assert seen(41.0) == (0.0, 1.0, 2.0, 2, 1.0)


def test_a_scheduler_is_asked_when_the_room_is_free(tmp_path: Path) -> None:
    times = []
    decide = at_times((30.0, save(0, 1)))

    def noting(view: View) -> Command:
        times.append(view.time_us)
        return decide(view)

    run(instance(tmp_path, {"ops": [K(2, 100.0)]}), noting)
    assert 35.0 in times


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (Preempt(0, "drain", Partition(0, 1)), "only mode save can be confined to a partition"),
        (Preempt(0, "reset", Partition(0, 1)), "only mode save can be confined to a partition"),
        (save(2, 1), r"a partition needs first in 0\.\.1 and sms in 1\.\.2"),
        (save(0, 0), "a partition needs first"),
        (save(0, 1, kernel=7), "launch 7 is not running"),
    ],
)
def test_what_cannot_be_saved_is_refused(tmp_path: Path, command: Command, message: str) -> None:
    device, go = drive(instance(tmp_path, {"ops": [K(2, 100.0)]}))
    before = go(10.0).running.array.tolist()
    with pytest.raises(IllegalCommand, match=message):
        device.apply(command)
    assert device.view().running.array.tolist() == before


def test_one_save_at_a_time(tmp_path: Path) -> None:
    device, go = drive(instance(tmp_path, {"ops": [K(2, 100.0)]}), (30.0, save(0, 1)))
    go(33.0)
    for command in (save(1, 1), Preempt(0, "drain")):
        with refused(IllegalCommand, "preempted"):
            device.apply(command)


def test_a_snapshot_in_the_middle_of_a_save(tmp_path: Path) -> None:
    built = instance(tmp_path, {"ops": [K(2, 100.0)]})
    for at_us in (33.0, 37.0):
        device = new_device()
        view = device.reset(built, 0, record="kernels", snapshots=True)
        for command in (Launch(0), Wait(30.0), save(0, 1), Wait(at_us)):
            device.apply(command)
            view = device.advance()
        snapshot = device.snapshot()
        for _ in range(2):
            view = device.restore(snapshot)
            while view is not None:
                device.apply(WAIT)
                view = device.advance()
            assert device.timeline.kernels.column("ended_us").round(6).tolist() == [110.0]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """Two kernels of several waves; saves take no time to speak of."""
    folder = tmp_path_factory.mktemp("quick")
    fields: dict[str, Any] = {"gpu": {"dram_bytes_per_us": 1e15}, "commands": ["launch", "preempt"]}
    return problem(folder, {"ops": [K(7, 30.0)]}, {"ops": [K(9, 20.0)]}, **fields)


@settings(deadline=None, max_examples=30)
@given(
    script=st.lists(
        st.tuples(st.floats(0.0, 150.0), st.integers(0, 1), st.integers(0, 3), st.integers(1, 4)), max_size=12
    )
)
def test_no_block_and_no_work_is_lost_or_made(quick: Problem, script: list[tuple[float, int, int, int]]) -> None:
    left = sorted(script)

    def decide(view: View) -> Command:
        if view.pending.launchable.any():
            return launch_first(view)
        while left and left[0][0] <= view.time_us:
            _, kernel, first, sms = left.pop(0)
            ids = view.running.id.tolist()
            if kernel in ids:
                row = ids.index(kernel)
                if view.running.preemptible[row]:
                    return save(first, sms, kernel)
        return Wait(left[0][0]) if left else WAIT

    episode = run(quick, decide)
    assert episode.done
    assert episode.costs.busy_sm_us == pytest.approx(7 * 30.0 + 9 * 20.0, abs=1e-3)

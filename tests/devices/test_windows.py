"""Launches that pass a window: literal logs worked out by hand, for the problems of :mod:`tests.devices.windows`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpusched_env.errors import IllegalCommand, InputError
from gpusched_env.hardware.clock import to_ps
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Preempt, Reject, Wait
from gpusched_env.scheduling.view import View
from gpusched_env.workload.memory import check_us
from gpusched_env.workload.workload import Child, GraphNode, Op, OpKind, Segment
from tests.devices.problems import launch_first, run
from tests.devices.windows import (
    A,
    B,
    C,
    D,
    build,
    by_time,
    entries,
    kernel,
    log,
    started,
    us,
    waited,
    workload,
)
from tests.refusals import refused

each_device = pytest.mark.usefixtures("each_device")


# ---- by hand ---------------------------------------------------------------------------------------


@each_device
def test_launches_overtake_each_other_but_no_hazard() -> None:
    ops = [
        kernel(10.0, writes=(A,)), kernel(5.0, reads=(A,), writes=(B,)), kernel(20.0, writes=(C,)),
        kernel(1.0, reads=(B, C)), kernel(4.0, writes=(D,)),
    ]  # fmt: skip
    episode = run(build(workload("w", ops)), launch_first)
    # Entries a check behind the host. Kernel 0 has ended for all to know at 16.41, 1 at 26.41, 2 at 28.41. Kernel 4 is
    # independent, but both streams hold a kernel until then.
    assert log(episode.timeline) == us(
        (0, 1, 1.41, 3.41, 13.41),
        (1, 1, 2.41, 18.41, 23.41),
        (2, 2, 3.41, 5.41, 25.41),
        (3, 2, 4.41, 30.41, 31.41),
        (4, 1, 5.41, 28.41, 32.41),
    )
    assert episode.end_us == 35.41, "when somebody knows"


@each_device
@pytest.mark.parametrize(
    ("checked_by", "expected"), [("window", [1.21, 1.92, 2.63, 3.34]), ("application", [1.21, 2.12, 3.03, 3.94])]
)
def test_whose_thread_checks(checked_by: str, expected: list[float]) -> None:
    """0.5 us on a launch, 0.41 on its check, 0.3 on its entry: the window's thread takes 0.71, or the application's
    0.91."""
    built = build(
        workload("w", [kernel(1.0, host_us=0.5)] * 4), window={"checked_by": checked_by, "insert_us": 0.3, "streams": 4}
    )
    assert entries(run(built, launch_first)) == expected


@each_device
def test_nobody_checks_before_the_launch_is_there() -> None:
    built = build(workload("w", [kernel(1.0), kernel(1.0, host_us=10.0)]))
    assert entries(run(built, launch_first)) == [1.41, 11.41]


@each_device
def test_a_full_window_keeps_others_out() -> None:
    built = build(workload("w", [kernel(10.0)] * 3), window={"size": 2, "streams": 3})
    episode = run(built, launch_first)
    check_ps, whole = to_ps(check_us(2, 6)), 10**6
    # The first one has left when its end is known, at 16 us and the check; only then the third one is checked.
    third_ps = 16 * whole + 2 * check_ps
    assert log(episode.timeline)[0] == (0, 1, whole + check_ps, 3 * whole + check_ps, 13 * whole + check_ps)
    assert log(episode.timeline)[2] == (2, 1, third_ps, third_ps + 2 * whole, third_ps + 12 * whole)


@each_device
def test_full_streams_keep_others_back() -> None:
    built = build(workload("w", [kernel(10.0)] * 3), window={"streams": 1})
    assert [row[3:] for row in log(run(built, launch_first).timeline)] == [
        row[3:] for row in us((0, 1, 0, 3.41, 13.41), (1, 1, 0, 18.41, 28.41), (2, 1, 0, 33.41, 43.41))
    ]


@each_device
def test_copies_go_by_themselves_when_their_memory_is_free() -> None:
    copy = Op(OpKind.COPY_TO_HOST, 1.0, duration_us=5.0, reads=(A,), writes=(B,))
    episode = run(build(workload("w", [kernel(10.0, writes=(A,)), copy, kernel(1.0, reads=(B,))])), launch_first)
    # The kernel's end is known at 16.41, the copy's at 26.41.
    assert episode.timeline.copies.column("started_us").tolist() == [18.41]
    assert log(episode.timeline)[1][3:] == (28_410_000, 29_410_000)


@each_device
def test_copies_need_neither_a_stream_nor_an_order() -> None:
    """The one stream holds a kernel. The second copy is independent, and overtakes."""
    first, second = (
        Op(OpKind.COPY_TO_HOST, 1.0, duration_us=5.0, reads=(memory,), writes=()) for memory in (A, B)
    )  # fmt: skip
    built = build(workload("w", [kernel(10.0, writes=(A,)), first, second]), window={"streams": 1})
    starts = run(built, launch_first).timeline.copies.column("started_us").tolist()
    assert starts == pytest.approx([3.0 + check_us(16, 2) + 2.0, 18.41])


@each_device
def test_the_end_of_a_copy_wakes_the_scheduler() -> None:
    """It has declined kernel 2 before."""
    copy = Op(OpKind.COPY_TO_DEVICE, 1.0, duration_us=10.0, reads=(), writes=(A,))
    built = build(workload("w", [copy, kernel(1.0, reads=(A,)), kernel(1.0)]))

    def decide(view: View) -> Command:
        return launch_first(view) if view.pending.launchable[view.pending.id == 1].any() or view.time_us > 15 else WAIT

    episode = run(built, decide)
    assert round(episode.timeline.kernels.column("started_us")[0], 2) == round(1.0 + check_us(16, 2) + 15.0 + 2.0, 2)


@each_device
def test_unknown_memory_serialises_its_own_tenant_only() -> None:
    known = workload("known", [kernel(10.0, writes=(s,)) for s in (A, B)])
    unknown = workload("unknown", [kernel(10.0, reads=None, writes=None)] * 2)
    episode = run(build(known, unknown, window={"streams": 4}), launch_first)
    check_ps = to_ps(check_us(16, 2))
    starts = [(int(t), s) for t, s in zip(episode.timeline.kernels.column("tenant"),
                                          episode.timeline.kernels.ps("started_us").tolist(), strict=True)]  # fmt: skip
    assert sorted(starts) == [
        (0, 3_410_000), (0, 4_410_000), (1, 3_000_000 + check_ps), (1, 18_000_000 + check_ps),
    ]  # fmt: skip


@each_device
@pytest.mark.parametrize("rejected", [False, True])
def test_jobs_of_a_tenant_do_not_share_its_memory(rejected: bool) -> None:
    """The second job begins when the last kernel of the first one is known to have ended, given up or not."""
    built = build(
        workload("w", [kernel(10.0, writes=(A,)), kernel(30.0, writes=(B,))]), jobs=2, commands=["launch", "reject"]
    )
    episode = run(built, by_time((20.0, Reject(0, 0))) if rejected else launch_first)
    assert log(episode.timeline) == us(
        (0, 1, 1.41, 3.41, 13.41),
        (1, 2, 2.41, 4.41, 34.41),
        # 37.41, and the host's synchronisation.
        (2, 1, 39.82, 41.82, 51.82),
        (3, 2, 40.82, 42.82, 72.82),
    )
    assert len(episode.timeline.rejections) == rejected


@each_device
def test_what_waits_in_the_window_goes_with_its_job() -> None:
    ops = [kernel(10.0, writes=(A,)), kernel(30.0, reads=(A,))]
    built = build(workload("w", ops), jobs=2, commands=["launch", "reject"])
    episode = run(built, by_time((5.0, Reject(0, 0))))
    kernels = episode.timeline.kernels
    assert kernels.column("job").tolist() == [0, 1, 1]
    # The kernel that ran is known to have ended at 16.41.
    assert log(episode.timeline)[1:] == us((2, 1, 18.82, 20.82, 30.82), (3, 1, 19.82, 35.82, 65.82))


@each_device
def test_a_preempted_kernel_keeps_its_place_in_its_stream() -> None:
    """Reset at 5 us; what waits for it goes on waiting, and kernel 2, of other memory, takes the other stream."""
    ops = [kernel(10.0, writes=(A,)), kernel(1.0, reads=(A,)), kernel(4.0, writes=(B,), host_us=4.0)]
    device = started(build(workload("w", ops), commands=["launch", "preempt", "partition"]), 5.0, record="kernels")
    device.apply(Preempt(0, "reset"))
    device.advance()
    view = waited(device, 6.41)
    assert view.pending.stream.tolist() == [1.0, 0.0, 0.0]
    with refused(IllegalCommand, "stream 1"):
        device.apply(Launch(0, stream=2))
    with refused(IllegalCommand, "[2]", "take"):
        device.apply(Launch(2, stream=1))
    while view is not None:
        device.apply(launch_first(view))
        view = device.advance()
    assert log(device.timeline) == us(
        (0, 1, 1.41, 3.41, 18.41), (1, 1, 2.41, 23.41, 24.41), (2, 2, 6.41, 8.41, 12.41)
    )  # fmt: skip
    assert device.timeline.kernels.column("preemptions").tolist() == [0, 1, 0]


@each_device
def test_a_kernel_that_has_ended_is_not_preempted() -> None:
    """Its thread does not know yet."""
    device = started(build(workload("w", [kernel(10.0)] * 2), commands=["launch", "preempt", "partition"]), 14.0)
    assert device.view().running.preemptible.tolist() == [0.0, 1.0]
    with refused(IllegalCommand, "launch 0", "ended"):
        device.apply(Preempt(0, "drain"))


# ---- one behind another in a stream ----------------------------------------------------------------


@each_device
def test_behind_what_it_waits_for_a_launch_needs_no_synchronisation() -> None:
    """Kernel 1 follows the first one after the gap of the stream. Kernel 2 finds room when the end of that is known."""
    ops = [kernel(10.0, writes=(A,)), kernel(5.0, reads=(A,)), kernel(4.0, writes=(B,))]
    episode = run(build(workload("w", ops), window={"streams": 1, "depth": 2}), launch_first)
    assert log(episode.timeline) == us(
        (0, 1, 1.41, 3.41, 13.41), (1, 1, 2.41, 14.41, 19.41), (2, 1, 3.41, 20.41, 24.41)
    )  # fmt: skip


@each_device
def test_what_waits_for_two_streams_waits_until_one_is_known() -> None:
    """Kernel 2 goes behind kernel 1 when the end of kernel 0 is known, at 16.41."""
    ops = [kernel(10.0, writes=(A,)), kernel(30.0, writes=(B,)), kernel(4.0, reads=(A, B))]
    built = build(workload("w", ops), window={"depth": 2}, commands=["launch", "partition"])
    device = started(built, 16.0)
    assert device.view().pending.launchable.tolist() == [0.0]
    assert device.view().pending.queued_us.tolist() == [0.0]
    device = started(built, 16.42)
    assert device.view().running.stream.tolist() == [2.0, 2.0]
    assert log(run(built, launch_first).timeline) == us(
        (0, 1, 1.41, 3.41, 13.41), (1, 2, 2.41, 4.41, 34.41), (2, 2, 3.41, 35.41, 39.41)
    )  # fmt: skip


@each_device
def test_the_thread_of_a_stream_launches_one_after_another() -> None:
    ops = [kernel(1.0)] * 3
    episode = run(build(workload("w", ops), window={"streams": 1, "depth": 8}), launch_first)
    assert log(episode.timeline) == us((0, 1, 1.41, 3.41, 4.41), (1, 1, 2.41, 5.41, 6.41), (2, 1, 3.41, 7.41, 8.41))


@each_device
def test_a_launch_goes_where_least_is_held_and_what_is_before_it_is_shown() -> None:
    ops = [kernel(10.0, writes=(A,)), kernel(6.0), kernel(7.0), kernel(2.0, reads=(A,)), kernel(1.0, reads=(A,))]
    built = build(workload("w", ops), window={"depth": 2}, commands=["launch", "partition"])
    device = started(built, 3.42)
    # Kernels 0 and 2 are in the first stream, which is full; what waits for kernel 0 cannot go behind it.
    assert device.view().running.stream.tolist() == [1.0, 2.0, 1.0]
    assert waited(device, 6.0).pending.launchable.tolist() == [0.0, 0.0]
    with refused(IllegalCommand, "launch 3", "launch 0"):
        device.apply(Launch(3))
    fewer = workload("w", ops[:1] + ops[3:])
    device = started(build(fewer, window={"depth": 2}, commands=["launch", "partition"]), 2.0)
    view = waited(device, 4.41)
    assert view.pending.launchable.tolist() == [1.0, 1.0]
    # Kernel 0 has run for 1 us.
    assert view.pending.queued_us.tolist() == [9.0, 9.0]
    assert view.pending.between_us.tolist() == [0.0, 0.0]
    with refused(IllegalCommand, "[1]", "take"):
        device.apply(Launch(1, stream=2))
    device.apply(Launch(1, stream=1))
    assert device.view().pending.launchable.tolist() == [0.0]


@each_device
def test_dependents_are_counted() -> None:
    copy = Op(OpKind.COPY_TO_HOST, 0.0, bytes=1, reads=(A,), writes=())
    ops = [kernel(10.0, writes=(A,)), kernel(6.0, reads=(A,)), copy]
    device = started(build(workload("w", ops), commands=["launch", "partition"]), 0.0)
    view = waited(device, 3.42)
    assert view.pending.dependents.tolist() == [2.0, 0.0]


# ---- hazards and streams ---------------------------------------------------------------------------


@each_device
@pytest.mark.parametrize(
    ("older", "newer", "why"),
    [
        ({"writes": (A,)}, {"reads": (A,)}, "read after write of bytes 0 to 64 of storage 0"),
        ({"writes": (A,)}, {"writes": (Segment(0, 60, 90),)}, "write after write of bytes 60 to 64 of storage 0"),
        ({"reads": (B, A)}, {"reads": (C,), "writes": (A,)}, "write after read of bytes 0 to 64 of storage 0"),
        ({"writes": (A,)}, {"reads": None, "writes": None}, "memory that is not known"),
    ],
)
@pytest.mark.parametrize("until_us", [5.0, 14.0], ids=["it runs", "it has ended, nobody knows"])
def test_a_launch_against_a_hazard_is_refused_by_name(
    older: dict[str, Any], newer: dict[str, Any], why: str, until_us: float
) -> None:
    """Of the second tenant, so that places in tables of programs are not those of the first one."""
    other = workload("other", [kernel(100.0)] * 3)
    mine = workload("mine", [kernel(10.0, **older), kernel(1.0, **newer)])
    device = started(build(other, mine, window={"streams": 8}, commands=["launch", "partition"]), until_us)
    before = device.view()
    (waiting,) = before.pending.id[before.pending.tenant == 1].astype(int)
    (first,) = before.running.id[before.running.tenant == 1].astype(int)
    with pytest.raises(IllegalCommand) as refused:
        device.apply(Launch(waiting))
    assert f"launch {waiting} must wait for launch {first}: {why};" in str(refused.value)
    np.testing.assert_array_equal(device.view().pending.array, before.pending.array)


@each_device
def test_a_stream_that_holds_a_kernel_takes_no_other() -> None:
    device = started(
        build(workload("w", [kernel(10.0)] * 3), window={"streams": 3}, commands=["launch", "partition"]), 2.0
    )
    device.apply(Wait(3.0))
    device.advance()
    for stream in (0, 1, 9):
        with refused(IllegalCommand, "[2, 3]", "take"):
            device.apply(Launch(1, stream=stream))
    device.apply(Launch(1, stream=3))
    device.advance()
    device.apply(Wait(4.0))
    device.advance()
    device.apply(Launch(2))
    assert device.view().running.stream.tolist() == [1.0, 3.0, 2.0]


@each_device
def test_without_an_idle_stream_nothing_is_launchable() -> None:
    device = started(
        build(workload("w", [kernel(10.0)] * 2), window={"streams": 1}, commands=["launch", "partition"]), 5.0
    )
    with refused(IllegalCommand, "launch 1", "[]"):
        device.apply(Launch(1))


# ---- what has no place in a window -----------------------------------------------------------------


def test_programs_without_a_place_in_a_window_are_refused() -> None:
    one, record = kernel(1.0), Op(OpKind.RECORD, index=0)
    bad = [
        workload("w", [one], [one]),
        workload("w", [one, Op(OpKind.GRAPH, index=0)], graphs=[(GraphNode(OpKind.KERNEL, 0, 1.0),)]),
        workload("w", [kernel(1.0, children=(Child(0, 1.0),))]),
        workload("w", [one, record, kernel(1.0, tiles=0)]),
    ]
    for work in bad:
        with refused(InputError, "tenant"):
            build(work)

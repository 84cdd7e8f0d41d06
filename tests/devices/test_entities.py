"""Programs with streams, events, threads, graphs, children and tiles: literal logs worked out by hand.

On the teaching GPU (4 SMs of one block), with these latencies in us: launch 2, stream gap 1, graph gap 0.5, event 1.5,
synchronisation 3, child launch 6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.scenarios.set_up import SetUp
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Reject, Wait
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import Op, OpKind
from tests.devices.problems import Script, launch_first, new_device, run
from tests.devices.programs import GRAPH, RECORD, SYNC, TIMING, WAIT_EVENT, Kernels, build

pytestmark = pytest.mark.usefixtures("each_device")


def log(episode: Episode) -> list[tuple[int, int, int]]:
    """(id, start, end) of kernels in order of their ends, in whole picoseconds."""
    kernels = episode.timeline.kernels
    ids, starts, ends = (kernels.ps(name).tolist() for name in ("id", "started_us", "ended_us"))
    return list(zip(ids, starts, ends, strict=True))


def us(*rows: tuple[int, float, float]) -> list[tuple[int, int, int]]:
    """A log whose times are given in microseconds, none finer than a picosecond."""
    return [(id_, round(start * 1e6), round(end * 1e6)) for id_, start, end in rows]


def in_turn(*commands: Command) -> Callable[[View], Command]:
    """Give commands one after the other, then wait."""
    left = list(commands)
    return lambda view: left.pop(0) if left else WAIT


def test_two_streams_with_an_event() -> None:
    k = Kernels()
    ops = [
        k.op(100.0), Op(RECORD, index=0), k.op(10.0), Op(WAIT_EVENT, index=0, stream=1), k.op(50.0, stream=1), SYNC,
    ]  # fmt: skip
    episode = run(build(k, ops, program_streams=2))
    # Behind the first kernel a stream gap in its own stream, an event latency in the other one.
    assert log(episode) == us((0, 2, 102), (1, 103, 113), (2, 103.5, 153.5))
    assert episode.timeline.kernels.column("stream").tolist() == [0.0, 0.0, 1.0]
    assert episode.end_us == 153.5


def test_a_graph_with_two_branches_beside_a_kernel() -> None:
    k = Kernels()
    nodes = (k.node(10.0), k.node(20.0, 0), k.node(30.0, 0), k.node(5.0, 1, 2))
    ops = [Op(GRAPH, index=0), k.op(100.0, stream=1), SYNC]
    built = build(k, ops, graphs=[nodes], program_streams=2)
    episode = run(built)
    # Graph 0, kernel 1, nodes 2 to 5; a graph gap between nodes.
    assert log(episode) == us((2, 2, 12), (3, 12.5, 32.5), (4, 12.5, 42.5), (5, 43, 48), (1, 2, 102))
    assert episode.timeline.kernels.column("parent").tolist() == [0.0, 0.0, 0.0, 0.0, -1.0]
    assert episode.decisions == 2, "one for the graph"


def test_nodes_come_later_beside_kernels_that_are_not_the_graph_s() -> None:
    """While kernel 1 is resident; once it has left, and among the nodes of a graph, there is the graph gap alone."""
    k = Kernels()
    timing = TIMING | {"graph_gap_beside_us": 0.25}
    nodes = (k.node(10.0), k.node(20.0, 0), k.node(30.0, 0), k.node(5.0, 1, 2), k.node(5.0, 3))
    beside = k.op(40.0, stream=1)
    built = build(k, [Op(GRAPH, index=0), beside, SYNC], graphs=[nodes], program_streams=2, timing=timing)
    # The second and third node are 0.75 us behind the first; kernel 1 ends at 42.
    assert log(run(built)) == us(
        (2, 2, 12), (3, 12.75, 32.75), (1, 2, 42), (4, 12.75, 42.75), (5, 43.25, 48.25), (6, 48.75, 53.75)
    )
    # It ends with the first node: the order of launches says that it has left by then.
    same = build(
        k, [Op(GRAPH, index=0), k.op(10.0, stream=1), SYNC], graphs=[nodes[:2]], program_streams=2, timing=timing
    )
    assert log(run(same)) == us((1, 2, 12), (2, 2, 12), (3, 12.5, 32.5))


class InsideGraphs(Script):
    """Launches what it can, the nodes of graphs one by one."""

    set_up = SetUp(graphs="opened")


def test_a_scheduler_that_intercepts_inside_graphs_gets_their_nodes() -> None:
    k = Kernels()
    nodes = (k.node(10.0), k.node(20.0, 0), k.node(30.0, 0), k.node(5.0, 1, 2))
    ops = [Op(GRAPH, index=0), k.op(100.0, stream=1), k.op(1.0), SYNC]
    built = build(k, ops, graphs=[nodes], program_streams=2)
    episode = run_episode(InsideGraphs(), built, new_device(), 0, record="kernels")
    # Nodes 0 to 3, the branch of node 2 in a stream of its own: an event's latency to it and back. Kernel 5 is behind.
    assert log(episode) == us((0, 2, 12), (1, 12.5, 32.5), (2, 13.5, 43.5), (3, 45, 50), (5, 51, 52), (4, 2, 102))
    assert episode.decisions == 6
    assert run_episode(Script(), built, new_device(), 0).decisions == 3


def test_a_graph_is_one_row() -> None:
    k = Kernels()
    nodes = (k.node(10.0), k.node(20.0, 0))
    device = new_device()
    view = device.reset(build(k, [Op(GRAPH, index=0), SYNC], graphs=[nodes], commands=["launch", "partition"]), 0)
    assert view is not None
    assert (view.pending.nodes[0], view.pending.blocks[0], view.pending.profiled_us[0]) == (2.0, 2.0, 30.5)

    def seen(*commands: Command) -> list[float]:
        for command in commands:
            device.apply(command)
            device.advance()
        row = device.view().running
        names = ("nodes", "started", "blocks_waiting", "blocks_resident", "elapsed_us", "preemptible")
        return [float(getattr(row, name)[0]) for name in names]

    assert seen(Launch(0), Wait(1.0)) == [2.0, 0.0, 2.0, 0.0, 0.0, 0.0]
    assert seen(Wait(5.0)) == [2.0, 1.0, 1.0, 1.0, 3.0, 0.0]
    assert seen(Wait(15.0)) == [2.0, 1.0, 0.0, 1.0, 13.0, 0.0]


def test_a_window_of_six_kernels_with_a_diamond_launched_out_of_order() -> None:
    k = Kernels()
    ops = [
        k.op(10.0, stream=0), Op(RECORD, index=0, stream=0),
        Op(WAIT_EVENT, index=0, stream=1), k.op(20.0, stream=1), Op(RECORD, index=1, stream=1),
        Op(WAIT_EVENT, index=0, stream=2), k.op(30.0, stream=2), Op(RECORD, index=2, stream=2),
        Op(WAIT_EVENT, index=1, stream=3), Op(WAIT_EVENT, index=2, stream=3), k.op(5.0, stream=3),
        k.op(40.0, stream=4), k.op(15.0, stream=5), SYNC,
    ]  # fmt: skip
    built = build(k, ops, program_streams=6, streams=3)
    device = new_device()
    view = device.reset(built, 0)
    while view is not None and len(view.pending) < 6:
        device.apply(Wait())
        view = device.advance()
    assert view is not None
    assert view.pending.launchable.tolist() == [1.0, 0.0, 0.0, 0.0, 1.0, 1.0]
    assert view.pending.upstream.tolist() == [0.0, 1.0, 1.0, 2.0, 0.0, 0.0]
    assert view.dependencies.array.tolist() == [[1.0, 0.0], [2.0, 0.0], [3.0, 1.0], [3.0, 2.0]]
    order = [Launch(5, stream=6), Launch(4, stream=7), Launch(0, stream=8), Launch(2, stream=6), Launch(1, stream=7)]
    episode = run(built, in_turn(*order, Launch(3, stream=8)))
    # 2 follows 5 in stream 6 (gap 1) and 0 by an event; 1 follows 4 in stream 7; 3 both by events.
    assert log(episode) == us((0, 2, 12), (5, 2, 17), (4, 2, 42), (2, 18, 48), (1, 43, 63), (3, 64.5, 69.5))
    assert episode.timeline.kernels.column("stream").tolist() == [8.0, 6.0, 7.0, 6.0, 7.0, 8.0]


def test_a_parent_whose_child_is_launched_while_it_is_resident() -> None:
    k = Kernels()
    child = k.child(20.0)
    episode = run(build(k, [k.op(10.0, children=(child,)), k.op(5.0), SYNC]))
    # The child (2) is issued at 2 + 6 and starts at 10. What follows the parent waits for the child, too.
    assert log(episode) == us((0, 2, 12), (2, 10, 30), (1, 31, 36))
    kernels = episode.timeline.kernels
    assert kernels.column("issued_us").tolist() == [0.0, 8.0, 0.0]
    assert kernels.column("parent").tolist() == [-1.0, 0.0, -1.0]
    assert kernels.column("stream").tolist() == [0.0, -1.0, 0.0]


def test_a_parent_keeps_its_row_until_its_children_have_ended() -> None:
    k = Kernels()
    child = k.child(20.0)
    device = new_device()
    device.reset(build(k, [k.op(10.0, children=(child,)), SYNC], commands=["launch", "preempt", "partition"]), 0)
    for command in (Launch(0), Wait(8.0), Launch(1), Wait(15.0)):
        device.apply(command)
        device.advance()
    running = device.view().running
    assert running.id.tolist() == [0.0, 1.0]
    assert running.parent.tolist() == [-1.0, 0.0]
    assert running.started.tolist() == [1.0, 1.0]
    assert running.blocks_waiting.tolist() == [0.0, 0.0]
    assert running.blocks_resident.tolist() == [0.0, 1.0]
    assert running.preemptible.tolist() == [0.0, 1.0]


def test_host_threads_issue_side_by_side_and_wait_for_each_other_s_records() -> None:
    k = Kernels()
    main = [k.op(10.0, host_us=5.0), Op(RECORD, index=0), SYNC]
    side = [k.op(10.0, host_us=1.0, stream=2), Op(WAIT_EVENT, index=0, stream=1), k.op(7.0, host_us=1.0, stream=1)]
    episode = run(build(k, main, side, program_streams=3))
    # The side thread could issue its second kernel at 2, but what that waits for is issued at 5.
    assert episode.timeline.kernels.column("issued_us").tolist() == [1.0, 5.0, 5.0]
    assert log(episode) == us((0, 3, 13), (1, 7, 17), (2, 18.5, 25.5))


def test_synchronising_a_stream_or_an_event() -> None:
    k = Kernels()
    ops = [
        k.op(100.0), Op(RECORD, index=0), k.op(10.0, stream=1), Op(OpKind.SYNC_STREAM, stream=1), k.op(10.0, stream=1),
        Op(OpKind.SYNC_EVENT, index=0), k.op(10.0, stream=1), SYNC,
    ]  # fmt: skip
    episode = run(build(k, ops, program_streams=2))
    # Stream 1 is empty at 12, the host goes on at 15; the event is complete at 102, the host goes on at 105.
    assert log(episode) == us((1, 2, 12), (2, 17, 27), (0, 2, 102), (3, 107, 117))
    assert episode.timeline.kernels.column("issued_us").tolist() == [0.0, 15.0, 0.0, 105.0]


def test_a_rejected_job() -> None:
    k = Kernels()
    loop = {"arrivals": {"kind": "closed-loop"}, "jobs": 2, "slo_us": 500.0}
    built = build(k, [k.op(100.0), k.op(10.0), SYNC], tenant=loop, horizon_us=1000.0, commands=["launch", "reject"])
    seen = []

    def decide(view: View) -> Command:
        if view.time_us == 0.0:
            return Launch(0) if not len(view.running) else Wait(50.0)
        if view.time_us == 50.0 and not seen:
            seen.append(view.jobs.rejectable.tolist())
            return Reject(0, 0)
        seen.append(view.pending.id.tolist())
        return launch_first(view)

    episode = run(built, decide)
    # Kernel 1 vanishes, kernel 0 finishes; the next job comes at 50, and its first kernel follows 0 in its stream.
    assert seen[0] == [1.0]
    assert seen[1] == [2.0, 3.0]
    assert log(episode) == us((0, 2, 102), (2, 103, 203), (3, 204, 214))
    assert episode.timeline.rejections.array.tolist() == [[0.0, 0.0, 0.0, 50.0]]
    assert episode.timeline.jobs.array.tolist() == [[0.0, 1.0, 50.0, 50.0, 214.0]]
    alone_us = built.programs[0].alone_us
    costs = episode.costs
    assert (costs.rejected[0], costs.completed[0], costs.slo_misses[0]) == (1.0, 1.0, 1.0)
    assert costs.jobs_us[0] == pytest.approx(50.0 + (950.0 + alone_us) + (214.0 - 50.0))
    assert costs.makespan_us == pytest.approx(214.0 + alone_us)
    # 10 W idle, 10 W a busy SM; the rejected job is charged at full power: 4 SMs and all of the DRAM.
    assert costs.energy_j == pytest.approx((10.0 * 214.0 + 10.0 * 210.0 + 60.0 * alone_us) * 1e-6)


@pytest.mark.parametrize(
    ("lookahead", "expected"),
    [
        (1, [([0], [1], []), ([0], [1], []), ([3], [1], [[3, 0]])]),
        (4, [([0, 1, 3], [1, 0, 0], [[1, 0], [3, 1]]), ([0, 3], [1, 0], [[3, 0]]), ([3], [1], [[3, 0]])]),
    ],
)
def test_a_stream_stays_a_line_when_some_of_it_vanishes(lookahead: int, expected: list[Any]) -> None:
    k = Kernels()
    backlog = {"arrivals": {"kind": "backlog"}, "jobs": 4}
    rules: dict[str, Any] = {"commands": ["launch", "reject"], "lookahead": lookahead, "horizon_us": 1000.0}
    built = build(k, [k.op(100.0)], tenant=backlog, **rules)
    seen = []

    def decide(view: View) -> Command:
        # All four are issued by then; kernels 2 and then 1 vanish from between 0 and 3.
        if view.time_us == 0.0:
            return Wait(1.0)
        if len(view.jobs) == 4:
            return Reject(0, 2)
        if len(view.pending):
            seen.append((view.pending.id.tolist(), view.pending.launchable.tolist(), view.dependencies.array.tolist()))
        return Reject(0, 1) if len(view.jobs) == 3 else launch_first(view)

    episode = run(built, decide)
    assert seen == expected
    assert log(episode) == us((0, 3, 103), (3, 104, 204))


def test_one_rejection_of_what_comes_at_once_does_not_stop_the_clock() -> None:
    k = Kernels()
    loop = {"arrivals": {"kind": "closed-loop"}, "jobs": 5}
    built = build(k, [k.op(100.0), SYNC], tenant=loop, horizon_us=1000.0, commands=["launch", "reject"])
    times = []

    def decide(view: View) -> Command:
        if view.jobs.rejectable.any():
            times.append(view.time_us)
            return Reject(0, int(view.jobs.job[view.jobs.rejectable == 1.0][0]))
        return Wait(view.time_us + 10.0)

    episode = run(built, decide)
    assert times == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert episode.done


@pytest.mark.parametrize("arrivals", [{"kind": "poisson", "rate_per_s": 9000.0}, {"kind": "closed-loop"}])
def test_a_later_start_shifts_the_timeline_and_changes_nothing(arrivals: dict[str, Any]) -> None:
    k = Kernels()
    nodes = (k.node(10.3), k.node(20.7, 0), k.node(30.1, 0))
    ops = [
        k.op(33.3, 5, host_us=1.7), Op(RECORD, index=0), Op(GRAPH, index=0, host_us=0.3, stream=1),
        Op(WAIT_EVENT, index=0, stream=2), k.op(7.7, 3, stream=2, children=(k.child(4.1),)), SYNC,
    ]  # fmt: skip
    shift_us = 1e11

    def shifted(start_us: float) -> list[np.ndarray[Any, Any]]:
        tenant = {"arrivals": {**arrivals, "start_us": start_us}, "jobs": 20}
        built = build(k, ops, graphs=[nodes], program_streams=3, tenant=tenant, horizon_us=1e12)
        timeline = run(built, seed=3).timeline
        return [timeline.kernels.exact, timeline.blocks.exact, timeline.jobs.exact]

    times = ([4, 5, 6, 7], [3, 4], [2, 3, 4])
    for early, late, columns in zip(shifted(0.0), shifted(shift_us), times, strict=True):
        assert len(early) >= 20
        early[:, columns] += round(shift_us * 1e6)
        assert np.array_equal(early, late)

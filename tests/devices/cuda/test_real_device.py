"""The device with a GPU outside, on a GPU that plays the part of a real one: the same outcome as simulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusched_env.devices import make_device
from gpusched_env.devices.cuda.device import RealDevice
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import DeadlockError, GpuschedError, IllegalCommand, InputError
from gpusched_env.scenarios.adapting import in_real_time
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.set_up import SetUp, set_up
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Partition, Reject, SetPartition, Wait
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import Op, OpKind
from tests.devices import windows
from tests.devices.cuda.toy_gpu import ToyGpu
from tests.devices.problems import Copy, K, Script, kernel_ends, problem
from tests.devices.programs import GRAPH, RECORD, SYNC, WAIT_EVENT, Kernels, build
from tests.refusals import refused

Decide = Callable[[View], Command]


def on(device: Any, built: Problem, decide: Decide | None = None, seed: int = 0) -> Episode:
    return run_episode(Script(decide), built, device, seed, record="kernels")


def same(built: Problem, decide: Callable[[], Decide | None] = lambda: None, seed: int = 0) -> Episode:
    """The outcome on both devices, which is the same where a GPU and its host take no time of their own."""
    simulated = on(make_device("compiled"), in_real_time(built), decide(), seed)
    real = on(RealDevice(ToyGpu()), built, decide(), seed)
    for table in ("jobs", "rejections", "kernels", "copies"):
        ours, theirs = (getattr(episode.timeline, table).array for episode in (real, simulated))
        assert ours.tolist() == theirs.tolist(), table
    assert (real.end_us, real.done, real.decisions) == (simulated.end_us, simulated.done, simulated.decisions)
    assert real.costs.jobs_us.tolist() == simulated.costs.jobs_us.tolist()
    return real


def test_a_host_issues_in_real_time_and_synchronises(tmp_path: Path) -> None:
    ops = [K(4, 100.0, host_us=10.0), "sync", K(4, 5.0, host_us=10.0), K(4, 5.0)]
    episode = same(problem(tmp_path, {"ops": ops}))
    assert kernel_ends(episode) == [(0, 10.0, 110.0), (0, 120.0, 125.0), (0, 125.0, 130.0)]


def test_a_stream_keeps_its_order_on_the_gpu_and_not_on_the_host(tmp_path: Path) -> None:
    """All of a stream is handed over at once: the host does not wait between kernels."""
    gpu = ToyGpu()
    on(RealDevice(gpu), problem(tmp_path, {"ops": [K(4, 100.0)] * 3}))
    assert [(work.launch, work.after) for work in gpu.submitted] == [(0, ()), (1, ()), (2, ())]


def urgent_first(view: View) -> Command:
    """Launch the most urgent launchable kernel, at a priority of its own."""
    rows = np.flatnonzero(view.pending.launchable)
    if not rows.size:
        return WAIT
    row = min(rows, key=lambda row: (view.pending.priority[row], view.pending.id[row]))
    return Launch(int(view.pending.id[row]), priority=-1 if view.pending.priority[row] == 0 else 0)


def test_priorities_are_those_of_the_gpu_s_streams(tmp_path: Path) -> None:
    urgent = {"ops": [K(4, 10.0)], "priority": 0, "jobs": 3, "arrivals": {"kind": "periodic", "period_us": 35.0}}
    built = problem(tmp_path, urgent, {"ops": [K(12, 20.0)] * 3, "priority": 1}, stream_priorities=[0, -1])
    episode = same(built, lambda: urgent_first)
    assert kernel_ends(episode)[0] == (0, 0.0, 10.0)


def halves() -> Decide:
    """Each of two tenants on half of the SMs; the second launch of each is free of that."""
    told: list[SetPartition] = [SetPartition(1, Partition(2, 2)), SetPartition(0, Partition(0, 2))]

    def decide(view: View) -> Command:
        rows = np.flatnonzero(view.pending.launchable)
        if told:
            return told.pop()
        if not rows.size:
            return WAIT
        id_ = int(view.pending.id[rows[0]])
        return Launch(id_, partition=Partition(0, 4)) if view.pending.job[rows[0]] == 1.0 else Launch(id_)

    return decide


def test_tenants_stay_on_their_sms(tmp_path: Path) -> None:
    ops = [K(4, 10.0), K(2, 5.0), "sync"]
    built = problem(tmp_path, {"ops": ops, "jobs": 2}, {"ops": [K(2, 7.0)] * 3}, commands=["launch", "partition"])
    episode = same(built, halves)
    assert kernel_ends(episode)[:3] == [(1, 0.0, 7.0), (1, 7.0, 14.0), (0, 0.0, 20.0)]


def test_what_follows_on_other_sms_waits_for_what_is_before_it(tmp_path: Path) -> None:
    gpu = ToyGpu()
    built = problem(tmp_path, {"ops": [K(4, 10.0)], "jobs": 2}, {"ops": [K(2, 7.0)]}, commands=["launch", "partition"])
    on(RealDevice(gpu), built, halves())
    mine = [(work.sms, work.after) for work in gpu.submitted if work.stream == 0]
    assert mine[0] == ((0, 2), ())
    assert mine[1][0] is None


def test_copies_go_by_themselves_to_their_streams(tmp_path: Path) -> None:
    ops = [Copy(OpKind.COPY_TO_DEVICE, 7.0), K(4, 10.0), Copy(OpKind.COPY_TO_HOST, 3.0), "sync", K(2, 1.0)]
    episode = same(problem(tmp_path, {"ops": ops, "jobs": 2}, {"ops": ops}))
    assert len(episode.timeline.copies) == 6


def test_a_scheduler_that_waits_until_a_time_is_asked_then(tmp_path: Path) -> None:
    def at_40() -> Decide:
        def decide(view: View) -> Command:
            if view.time_us < 40.0:
                return Wait(40.0)
            return urgent_first(view)

        return decide

    assert kernel_ends(same(problem(tmp_path, {"ops": [K(4, 5.0)]}), at_40)) == [(0, 40.0, 45.0)]


def test_a_job_is_rejected_while_its_kernels_run(tmp_path: Path) -> None:
    def rejecting() -> Decide:
        def decide(view: View) -> Command:
            if view.time_us >= 15.0 and len(view.jobs) and view.jobs.rejectable[0] and view.jobs.job[0] == 0.0:
                return Reject(0, 0)
            return urgent_first(view) if len(view.running) == 0 else Wait(15.0) if view.time_us < 15.0 else WAIT

        return decide

    built = problem(tmp_path, {"ops": [K(4, 20.0)] * 3, "jobs": 2}, commands=["launch", "reject"], horizon_us=500.0)
    episode = same(built, rejecting)
    assert len(episode.timeline.rejections) == 1


def test_the_horizon_ends_an_episode_with_work_on_the_gpu(tmp_path: Path) -> None:
    episode = same(problem(tmp_path, {"ops": [K(4, 100.0)]}, horizon_us=60.0))
    assert not episode.done
    assert episode.end_us == 60.0


def test_an_episode_can_follow_another_on_one_gpu(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 100.0)] * 2}, horizon_us=150.0)
    gpu = ToyGpu()
    with RealDevice(gpu) as device:
        first, second = (on(device, built) for _ in range(2))
    assert first.timeline.kernels.array.tolist() == second.timeline.kernels.array.tolist()
    assert gpu.closed


def test_a_scheduler_that_never_launches_is_told(tmp_path: Path) -> None:
    with refused(DeadlockError, "[0]", "launch"):
        on(RealDevice(ToyGpu()), problem(tmp_path, {"ops": [K(4, 1.0)]}), lambda view: WAIT)


def test_a_refused_command_reaches_no_gpu(tmp_path: Path) -> None:
    gpu = ToyGpu()
    with refused(IllegalCommand, "launch 7", "launchable"):
        on(RealDevice(gpu), problem(tmp_path, {"ops": [K(4, 1.0)]}), lambda view: Launch(7))
    assert not gpu.submitted


def test_time_that_passes_while_a_scheduler_thinks_passes_for_everybody(tmp_path: Path) -> None:
    """Kernels end meanwhile, and the decision is measured."""
    gpu = ToyGpu()

    def thinking(view: View) -> Command:
        command = urgent_first(view)
        if isinstance(command, Launch):
            gpu.pause(gpu.now_ps() + 8_000_000)
        return command

    device = RealDevice(gpu)
    episode = on(device, problem(tmp_path, {"ops": [K(4, 5.0)]}, {"ops": [K(4, 5.0)]}), thinking)
    # The second launch is decided on from 8 us on, where the end of the first one, at 13 us, cuts the thinking short.
    assert kernel_ends(episode) == [(0, 8.0, 13.0), (1, 13.0, 18.0)]
    assert device.decisions_us.tolist()[:2] == [8.0, 5.0]


def test_blocks_are_in_the_timeline(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(5, 10.0), K(2, 3.0)]}, {"ops": [K(3, 4.0)], "jobs": 2}, horizon_us=24.0)
    real = run_episode(Script(None), built, RealDevice(ToyGpu()), 0, record="blocks")
    simulated = run_episode(Script(None), in_real_time(built), make_device("compiled"), 0, record="blocks")
    found = []
    for episode in (real, simulated):
        blocks = episode.timeline.blocks.dict()
        rows = np.column_stack([blocks["kernel"], blocks["started_us"], blocks["ended_us"]])
        # What has not ended at the horizon has no end yet.
        ended = np.isin(blocks["kernel"], episode.timeline.kernels.dict()["id"])
        found.append(
            sorted(
                map(
                    tuple,
                    np.repeat(rows, blocks["blocks"].astype(int), 0)[
                        ended.repeat(blocks["blocks"].astype(int))
                    ].tolist(),
                )
            )
        )
    assert found[0] == found[1]
    assert len(found[0]) >= 8
    assert set(real.timeline.blocks.dict()["sm"]) <= set(range(4))


def test_what_a_real_gpu_does_not_do_is_named(tmp_path: Path) -> None:
    device = RealDevice(ToyGpu())
    built = problem(tmp_path, {"ops": [K(4, 1.0)]})
    with refused(InputError, "back"):
        device.reset(built, 0, snapshots=True)
    with refused(InputError, "drained"):
        device.reset(set_up(built, SetUp(commands=("preempt",))), 0)
    with refused(InputError, "contexts"):
        device.reset(set_up(built, SetUp(contexts="per-tenant")), 0)
    with refused(GpuschedError, "back"):
        device.snapshot()
    with refused(GpuschedError, "back"):
        device.restore(None)


def test_streams_wait_for_each_other_on_the_gpu(tmp_path: Path) -> None:
    """An event between two streams is the GPU's to keep, not the host's."""
    kernels = Kernels()
    ops = [
        kernels.op(9.0, 2),
        Op(RECORD, index=0),
        kernels.op(4.0, 2, stream=1),
        Op(WAIT_EVENT, index=0, stream=1),
        kernels.op(5.0, 3, stream=1),
        kernels.op(2.0, 1),
        SYNC,
    ]
    built = build(kernels, ops, program_streams=2, timing={})
    same(built)
    gpu = ToyGpu()
    on(RealDevice(gpu), built)
    assert [(work.launch, work.stream, work.after) for work in gpu.submitted if work.after] == [(2, 1, (0,))]


@pytest.mark.parametrize("depth", [1, 2])
def test_launches_of_a_window_go_to_the_scheduler_s_streams(depth: int) -> None:
    """What waits for the memory of others is handed over when it may be: when they are over, or behind them."""
    ops = [
        windows.kernel(9.0, 2, writes=(windows.A,)),
        windows.kernel(4.0, 1, reads=(windows.B,)),
        windows.kernel(3.0, 2, reads=(windows.A,), writes=(windows.B,)),
        windows.kernel(5.0, 3, writes=(windows.C,)),
        windows.kernel(1.0, 1, reads=(windows.A, windows.C)),
    ]
    built = windows.build(windows.workload("w", ops), window={"depth": depth}, jobs=2, timing={})
    episode = same(built)
    assert len(set(episode.timeline.kernels.column("stream").tolist())) == 2


def test_a_graph_is_handed_over_as_a_whole(tmp_path: Path) -> None:
    kernels = Kernels()
    fork = (kernels.node(3.0), kernels.node(5.0, 0), kernels.node(2.0, 0), kernels.node(1.0, 1, 2))
    ops = [Op(GRAPH, index=0, duration_us=9.0), kernels.op(4.0), SYNC]
    built = build(kernels, ops, graphs=[fork], tenant={"jobs": 2}, timing={})
    simulated = on(make_device("compiled"), built)
    real = on(RealDevice(ToyGpu()), built)
    assert real.timeline.jobs.array.tolist() == simulated.timeline.jobs.array.tolist()
    # Of the kernels in a graph a GPU reports nothing.
    assert kernel_ends(real) == [(0, 9.0, 13.0), (0, 22.0, 26.0)]


OPS = st.lists(
    st.one_of(
        st.builds(K, st.integers(1, 12), st.integers(1, 20).map(float), st.integers(0, 9).map(float)),
        st.builds(Copy, st.sampled_from([OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST]), st.integers(1, 9).map(float)),
        st.just("sync"),
    ),
    max_size=6,
).map(lambda ops: [K(2, 3.0), *ops])
ARRIVALS = st.one_of(
    st.just({"kind": "backlog"}),
    st.integers(1, 30).map(lambda us: {"kind": "closed-loop", "think_us": float(us)}),
    st.integers(5, 60).map(lambda us: {"kind": "periodic", "period_us": float(us)}),
)
TENANTS = st.lists(
    st.fixed_dictionaries({"ops": OPS, "arrivals": ARRIVALS, "jobs": st.integers(1, 3), "priority": st.integers(0, 1)}),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tenants=TENANTS, seed=st.integers(0, 3))
def test_any_episode_is_the_same_as_simulated(tmp_path: Path, tenants: list[dict[str, Any]], seed: int) -> None:
    same(problem(tmp_path, *tenants, stream_priorities=[0, -1]), lambda: urgent_first, seed)

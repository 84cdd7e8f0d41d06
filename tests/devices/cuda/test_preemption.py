"""Preemption with a GPU outside: the same outcome as simulated, and nothing overtakes what was preempted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpusched_env.devices.cuda.device import RealDevice
from gpusched_env.devices.cuda.gpu import GpuWork, RecallableQueue, Report
from gpusched_env.errors import DeadlockError, IllegalCommand, InputError
from gpusched_env.scenarios.program import HostOp
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Preempt, Reject, Wait
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import Op, OpKind
from tests.devices.cuda.test_real_device import Decide, on, same
from tests.devices.cuda.toy_gpu import ToyGpu
from tests.devices.problems import Copy, K, kernel_ends, problem
from tests.devices.programs import GRAPH, RECORD, SYNC, WAIT_EVENT, Kernels, build
from tests.refusals import refused

OFFER: dict[str, Any] = {"commands": ["launch", "preempt"], "preemption": ["drain"]}


def plan(*steps: tuple[float, Callable[[View], Command] | Command]) -> Callable[[], Decide]:
    """A scheduler that launches all but what was preempted, oldest first, and gives commands at given times."""

    def made() -> Decide:
        left = list(steps)

        def decide(view: View) -> Command:
            if left and view.time_us >= left[0][0]:
                step = left.pop(0)[1]
                return step(view) if callable(step) else step
            for id_, ready, preempted in zip(
                view.pending.id, view.pending.launchable, view.pending.preempted, strict=True
            ):
                if ready and not preempted:
                    return Launch(int(id_))
            return Wait(left[0][0]) if left else WAIT

        return decide

    return made


def preemptions(episode: Any) -> list[int]:
    return [int(count) for count in episode.timeline.kernels.column("preemptions")]


def test_a_kernel_is_preempted_within_a_wave_and_goes_on(tmp_path: Path) -> None:
    """Six blocks of ten on four SMs: four run until 10, the two others from 30 on."""
    gpu = ToyGpu()
    built = problem(tmp_path, {"ops": [K(6, 10.0)]}, **OFFER)
    steps = plan((4.0, Preempt(0, "drain")), (30.0, Launch(0)))
    episode = same(built, steps)
    assert kernel_ends(episode) == [(0, 0.0, 40.0)]
    assert preemptions(episode) == [1]
    on(RealDevice(gpu), built, steps())
    assert [(work.launch, work.blocks) for work in gpu.submitted] == [(0, -1), (0, 2)]


def test_a_kernel_whose_blocks_are_all_out_is_not_preempted(tmp_path: Path) -> None:
    """And what is behind it goes on, though it was recalled."""
    gpu = ToyGpu()
    built = problem(tmp_path, {"ops": [K(4, 10.0), K(2, 3.0)]}, **OFFER)
    steps = plan((4.0, Preempt(0, "drain")))
    assert kernel_ends(same(built, steps)) == [(0, 0.0, 10.0), (0, 10.0, 13.0)]
    on(RealDevice(gpu), built, steps())
    assert [(work.launch, work.blocks) for work in gpu.submitted] == [(0, -1), (1, -1), (1, 2)]


def test_what_is_behind_in_the_stream_stays_behind(tmp_path: Path) -> None:
    """Kernels and copies; another tenant gets the SMs meanwhile."""
    ops = [K(8, 10.0), K(4, 3.0), Copy(OpKind.COPY_TO_HOST, 5.0), K(4, 2.0)]
    built = problem(tmp_path, {"ops": ops}, {"ops": [K(4, 7.0)]}, **OFFER)
    episode = same(built, plan((4.0, Preempt(0, "drain")), (31.0, Launch(0))))
    assert kernel_ends(episode) == [(1, 10.0, 17.0), (0, 0.0, 41.0), (0, 41.0, 44.0), (0, 49.0, 51.0)]


def test_a_dependent_in_another_stream_is_recalled() -> None:
    kernels = Kernels()
    ops = [
        kernels.op(9.0, 8),
        Op(RECORD, index=0),
        Op(WAIT_EVENT, index=0, stream=1),
        kernels.op(4.0, 2, stream=1),
        kernels.op(5.0, 3, stream=1),
        SYNC,
    ]
    built = build(kernels, ops, program_streams=2, timing={}, **OFFER)
    steps = plan((4.0, Preempt(0, "drain")), (30.0, Launch(0)))
    assert kernel_ends(same(built, steps)) == [(0, 0.0, 39.0), (0, 39.0, 43.0), (0, 43.0, 48.0)]
    gpu = ToyGpu()
    on(RealDevice(gpu), built, steps())
    sent = [(work.launch, work.after) for work in gpu.submitted]
    assert sent == [(0, ()), (1, (0,)), (2, ()), (0, ()), (1, (0,)), (2, ())]


def test_a_kernel_goes_back_at_another_priority(tmp_path: Path) -> None:
    """What was behind it in its queue waits for it by an event now."""
    built = problem(tmp_path, {"ops": [K(8, 10.0), K(4, 3.0)]}, stream_priorities=[0, -1], **OFFER)
    steps = plan((4.0, Preempt(0, "drain")), (30.0, Launch(0, priority=-1)))
    assert kernel_ends(same(built, steps)) == [(0, 0.0, 40.0), (0, 40.0, 43.0)]
    gpu = ToyGpu()
    on(RealDevice(gpu), built, steps())
    assert [work.after for work in gpu.submitted] == [(), (), (), (0,)]


def test_graphs_are_held_back() -> None:
    kernels = Kernels()
    fork = (kernels.node(3.0), kernels.node(5.0, 0), kernels.node(2.0, 0))
    ops = [kernels.op(9.0, 8), Op(GRAPH, index=0, duration_us=8.0), kernels.op(4.0), SYNC]
    built = build(kernels, ops, graphs=[fork], timing={}, **OFFER)
    steps = plan((4.0, Preempt(0, "drain")), (30.0, Launch(0)))
    gpu = ToyGpu()
    real = on(RealDevice(gpu), built, steps())
    assert kernel_ends(real) == [(0, 0.0, 39.0), (0, 47.0, 51.0)]
    assert [work.launch for work in gpu.submitted] == [0, 0, *(work.launch for work in gpu.submitted[2:])]
    assert len(gpu.submitted) == 4


def test_a_kernel_is_preempted_twice(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(12, 10.0), K(1, 1.0)]}, **OFFER)
    steps = plan(
        (4.0, Preempt(0, "drain")), (30.0, Launch(0)), (33.0, Preempt(0, "drain")), (70.0, Launch(0)),
    )  # fmt: skip
    episode = same(built, steps)
    assert kernel_ends(episode) == [(0, 0.0, 80.0), (0, 80.0, 81.0)]
    assert preemptions(episode) == [2, 0]


def test_a_job_is_rejected_while_its_kernel_is_preempted(tmp_path: Path) -> None:
    """Its kernel has vanished; what was launched behind it finishes."""
    fields = {**OFFER, "commands": ["launch", "preempt", "reject"]}
    built = problem(tmp_path, {"ops": [K(8, 10.0), K(2, 3.0)], "jobs": 2}, **fields)
    steps = plan((4.0, Preempt(0, "drain")), (20.0, Reject(0, 0)))
    episode = same(built, steps)
    assert len(episode.timeline.rejections) == 1
    assert kernel_ends(episode)[0] == (0, 20.0, 23.0)


def test_a_preempted_kernel_that_is_never_launched_again_is_told(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(8, 10.0), K(2, 3.0)]}, **OFFER)
    with refused(DeadlockError, "[0]", "launch"):
        on(RealDevice(ToyGpu()), built, plan((4.0, Preempt(0, "drain")))())


@pytest.mark.parametrize("mode", ["save", "reset"])
def test_running_blocks_finish(tmp_path: Path, mode: Any) -> None:
    built = problem(tmp_path, {"ops": [K(8, 10.0)]}, **OFFER)
    with refused(IllegalCommand, "drained"):
        on(RealDevice(ToyGpu()), built, plan((4.0, Preempt(0, mode)))())


def test_library_kernels_cannot_be_preempted(tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(8, 10.0)], "kernels": "library"}, **OFFER)
    with refused(InputError, "t0", "preemption"):
        on(RealDevice(ToyGpu()), built)


class Recorder:
    """A GPU whose reports are given."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.reports: list[Report] = []

    def now_ps(self) -> int:
        return 50

    def submit(self, work: GpuWork) -> None:
        self.calls.append((work.launch, work.blocks))

    def recall(self, launches: list[int]) -> None:
        self.calls.append(launches)

    def poll(self) -> list[Report]:
        found, self.reports = self.reports, []
        return found


def kernel(launch: int, after: tuple[int, ...] = ()) -> GpuWork:
    return GpuWork(launch, HostOp(OpKind.KERNEL, 0.0, 0, 1.0, 1.0, 0, 1.0), 0, 0, None, after)


def test_what_began_because_a_recall_came_late_goes_on_or_is_preempted_itself() -> None:
    """The first kernel had ended; the second one ran some blocks before it was told."""
    gpu: Any = Recorder()
    handing = RecallableQueue(gpu)
    handing.submit(kernel(0))
    handing.submit(kernel(1, (0,)))
    handing.submit(kernel(2, (1,)))
    handing.recall(0)
    assert gpu.calls == [(0, -1), (1, -1), (2, -1), [0, 1, 2]]
    gpu.reports = [Report(10, 0, True), Report(10, 1, False), Report(20, 1, True, 3)]
    assert handing.poll() == [Report(10, 0, True), Report(10, 1, False)]
    assert gpu.calls[4:] == [(1, 3)]
    gpu.reports = [Report(20, 2, True, 7), Report(21, 1, False)]
    assert handing.poll() == []
    assert gpu.calls[5:] == [(2, 7)]
    # Again, and this time the scheduler wants the second one while it is held.
    handing.recall(1)
    gpu.reports = [Report(30, 1, True, 2), Report(30, 2, True, 7)]
    assert handing.poll() == [Report(30, 1, True, 2)]
    assert not handing.busy
    handing.keep([2])
    assert gpu.calls[6:] == [[1, 2], (2, 7)]


def test_a_kernel_that_is_held_with_blocks_left_is_given_back_at_once() -> None:
    gpu: Any = Recorder()
    handing = RecallableQueue(gpu)
    for launch, after in ((0, ()), (1, (0,)), (2, (1,))):
        handing.submit(kernel(launch, after))
    handing.recall(0)
    gpu.reports = [Report(10, 0, True, 4), Report(11, 1, True, 3)]
    assert handing.poll() == [Report(10, 0, True, 4)]
    handing.recall(1)
    assert handing.poll() == [Report(50, 1, True, 3)]


def preempting(seed: int) -> Callable[[], Decide]:
    """A scheduler that launches and preempts at random, and asks again soon."""

    def made() -> Decide:
        rng = np.random.default_rng(seed)

        def decide(view: View) -> Command:
            roll = rng.random()
            ready = view.pending.id[view.pending.launchable == 1.0].astype(int)
            running = view.running.id[view.running.preemptible == 1.0].astype(int)
            if running.size and roll < 0.3:
                return Preempt(int(rng.choice(running)), "drain")
            rejectable = np.flatnonzero(view.jobs.rejectable)
            if rejectable.size and roll > 0.98:
                row = int(rng.choice(rejectable))
                return Reject(int(view.jobs.tenant[row]), int(view.jobs.job[row]))
            if ready.size and roll < 0.8:
                return Launch(int(rng.choice(ready)), priority=int(rng.integers(-1, 1)))
            return Wait(view.time_us + float(rng.integers(1, 20)) + 0.0137)

        return decide

    return made


def apart(tenants: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """With durations by which nothing ends together by chance: what comes first then would be the GPU's matter."""
    rng = np.random.default_rng(seed)

    def changed(op: Any) -> Any:
        more_us = round(float(rng.uniform(0.0, 1.0)), 6)
        if isinstance(op, K):
            return replace(op, block_us=op.block_us + more_us)
        return replace(op, us=op.us + more_us) if isinstance(op, Copy) else op

    return [{**tenant, "ops": [changed(op) for op in tenant["ops"]]} for tenant in tenants]


US = st.integers(1, 20).map(float)
OPS = st.lists(
    st.one_of(
        st.builds(K, st.integers(1, 12), US, st.integers(0, 9).map(float)),
        st.builds(Copy, st.sampled_from([OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST]), US),
        st.just("sync"),
    ),
    max_size=6,
).map(lambda ops: [K(9, 3.0), *ops])
TENANTS = st.lists(
    st.fixed_dictionaries({"ops": OPS, "jobs": st.integers(1, 2), "priority": st.integers(0, 1)}),
    min_size=1,
    max_size=3,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tenants=TENANTS, seed=st.integers(0, 1000))
def test_any_episode_with_preemptions_is_the_same_as_simulated(
    tmp_path: Path, tenants: list[dict[str, Any]], seed: int
) -> None:
    fields = {"commands": ["launch", "preempt", "reject"], "preemption": ["drain"], "horizon_us": 3000.0}
    same(problem(tmp_path, *apart(tenants, seed), stream_priorities=[0, -1], **fields), preempting(seed))

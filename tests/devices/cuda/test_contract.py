"""What holds on every device however long things take: on the GPU of this machine, or else on a stand-in for CuPy."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cuda.bindings import driver

from gpusched_env.devices import make_device
from gpusched_env.devices.cuda.cupy_gpu import CupyGpu
from gpusched_env.devices.cuda.device import RealDevice
from gpusched_env.devices.cuda.launching import HostClock
from gpusched_env.episodes.session import Episode, run_episode
from gpusched_env.errors import DeadlockError, IllegalCommand, InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.commands import WAIT, Command, Launch, Reject
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import Op, OpKind
from tests.devices import windows
from tests.devices.cuda import fake_cupy
from tests.devices.cuda.test_cupy_gpu import LATE_US
from tests.devices.cuda.test_recalls import OFFER, preempt_each
from tests.devices.problems import Copy, K, Script, launch_first, problem
from tests.devices.programs import GRAPH, RECORD, SYNC, WAIT_EVENT, Kernels, build
from tests.refusals import refused

NS = 1e-3
"""Of rounding, us."""
CLOCKS_US = 100.0
"""Between the host's clock and the GPU's."""


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Iterator[RealDevice]:
    try:
        gpu = CupyGpu(cache=False)
    except InputError:
        monkeypatch.setitem(sys.modules, "cupy", fake_cupy.fake_cupy())
        monkeypatch.setattr(driver, "cuStreamWriteValue32", fake_cupy.write_value)
        gpu = CupyGpu(cache=False)
        # Two threads of one interpreter find each other's clock to milliseconds only.
        monkeypatch.setattr(HostClock, "compare", lambda clock: fake_cupy.AHEAD_NS)
    with RealDevice(gpu) as made:
        yield made
        fake_cupy.quieten()


def outcome(episode: Episode) -> dict[str, Any]:
    """What does not depend on time: which kernels, copies and jobs there were."""
    tables = {
        "kernels": ("tenant", "job", "identity"),
        "copies": ("engine", "tenant", "bytes"),
        "jobs": ("tenant", "job"),
    }
    return {"done": episode.done} | {
        name: sorted(zip(*(getattr(episode.timeline, name).column(column).tolist() for column in columns), strict=True))
        for name, columns in tables.items()
    }


def same(device: RealDevice, built: Problem, decide: Callable[[View], Command] | None = None) -> Episode:
    """The episode on the GPU, with the outcome of the simulated one."""
    simulated = run_episode(Script(decide), built, make_device("compiled"), 0, record="kernels")
    real = run_episode(Script(decide), built, device, 0, record="kernels")
    assert outcome(real) == outcome(simulated)
    kernels = real.timeline.kernels.dict()
    assert (kernels["started_us"] >= kernels["launched_us"] - CLOCKS_US).all()
    assert (kernels["ended_us"] >= kernels["started_us"]).all()
    assert (kernels["ended_us"] <= real.end_us + CLOCKS_US).all()
    return real


def times(episode: Episode, tenant: int = 0, job: int = 0) -> list[tuple[float, float]]:
    """Start and end of each kernel of a job, in order of ids."""
    kernels = episode.timeline.kernels.dict()
    mine = np.flatnonzero((kernels["tenant"] == tenant) & (kernels["job"] == job))
    rows = mine[np.argsort(kernels["id"][mine])]
    return [(float(kernels["started_us"][row]), float(kernels["ended_us"][row])) for row in rows]


def in_order(spans: list[tuple[float, float]]) -> bool:
    """Whether none starts before the one before it has ended."""
    return all(behind[0] >= before[1] - NS for before, behind in itertools.pairwise(spans))


def test_streams_keep_their_order_and_copies_theirs(device: RealDevice, tmp_path: Path) -> None:
    ops = [Copy(OpKind.COPY_TO_DEVICE, 5.0), K(4, 300.0), K(9, 100.0), "sync", Copy(OpKind.COPY_TO_HOST, 5.0)]
    tenants = [{"ops": ops, "jobs": 2}, {"ops": [K(2, 200.0)] * 3, "jobs": 2}]
    episode = same(device, problem(tmp_path, *tenants, horizon_us=LATE_US))
    assert all(in_order(times(episode, tenant, job)) for tenant in (0, 1) for job in (0, 1))


def test_a_stream_waits_for_an_event_of_another(device: RealDevice) -> None:
    k = Kernels()
    ops = [
        k.op(600.0, 2), Op(RECORD, index=0), k.op(100.0, 2, stream=1), Op(WAIT_EVENT, index=0, stream=1),
        k.op(200.0, 3, stream=1), SYNC,
    ]  # fmt: skip
    first, free, waits = times(same(device, build(k, ops, program_streams=2, timing={}, horizon_us=LATE_US)))
    assert waits[0] >= max(first[1], free[1]) - NS


def test_launches_of_a_window_wait_for_the_memory_that_they_touch(device: RealDevice) -> None:
    a, b, c = windows.A, windows.B, windows.C
    ops = [
        windows.kernel(500.0, 2, writes=(a,)), windows.kernel(200.0, 1, reads=(b,)),
        windows.kernel(300.0, 2, reads=(a,), writes=(b,)), windows.kernel(200.0, 3, writes=(c,)),
        windows.kernel(100.0, 1, reads=(a, c)),
    ]  # fmt: skip
    built = windows.build(windows.workload("w", ops), window={"depth": 2}, timing={}, horizon_us=LATE_US)
    spans = times(same(device, built))
    for before, behind in ((0, 2), (1, 2), (0, 4), (3, 4)):
        assert spans[behind][0] >= spans[before][1] - NS


def test_what_is_behind_a_graph_waits_for_all_of_it(device: RealDevice) -> None:
    """Of the kernels in it a GPU reports nothing."""
    k = Kernels()
    fork = (k.node(300.0), k.node(500.0, 0), k.node(200.0, 0), k.node(100.0, 1, 2))
    built = build(k, [Op(GRAPH, index=0, duration_us=900.0), k.op(100.0), SYNC], graphs=[fork], horizon_us=LATE_US)
    episode = run_episode(Script(None), built, device, 0, record="kernels")
    assert episode.done
    ((started_us, _),) = times(episode)
    assert started_us >= 0.95 * 900.0


def test_a_kernel_that_is_preempted_runs_to_its_end(device: RealDevice, tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(1500, 300.0), K(8, 100.0)]}, **OFFER)
    episode = run_episode(preempt_each(1), built, device, 0, record="kernels")
    assert outcome(episode)["kernels"] == [(0.0, 0.0, 0.0), (0.0, 0.0, 1.0)]
    assert episode.timeline.kernels.dict()["preemptions"].tolist() == [1, 0]
    assert in_order(times(episode))


def test_a_rejected_job_is_gone_and_the_next_one_comes(device: RealDevice, tmp_path: Path) -> None:
    def decide(view: View) -> Command:
        if len(view.jobs) and view.jobs.rejectable[0] and view.jobs.job[0] == 0.0:
            return Reject(0, 0)
        return launch_first(view)

    ops = {"ops": [K(4, 200.0)] * 3, "jobs": 2}
    built = problem(tmp_path, ops, commands=["launch", "reject"], horizon_us=LATE_US)
    episode = run_episode(Script(decide), built, device, 0, record="kernels")
    assert episode.timeline.rejections.column("job").tolist() == [0.0]
    assert episode.timeline.jobs.column("job").tolist() == [1.0]


def test_what_is_wrong_is_refused_and_the_gpu_goes_on(device: RealDevice, tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 200.0)]}, horizon_us=LATE_US)
    with pytest.raises(IllegalCommand):
        run_episode(Script(lambda view: Launch(99)), built, device, 0)
    with refused(DeadlockError, "[0]", "launch"):
        run_episode(Script(lambda view: WAIT), built, device, 0)
    same(device, built)

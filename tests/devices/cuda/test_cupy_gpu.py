"""The host's side of driving a GPU, on a stand-in for CuPy: no times are asserted but those that are its own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpusched_env.devices.cuda import cupy_gpu
from gpusched_env.devices.cuda import resources as block_record
from gpusched_env.devices.cuda.cupy_gpu import CupyGpu
from gpusched_env.devices.cuda.device import RealDevice
from gpusched_env.devices.cuda.fitting import NEAR
from gpusched_env.devices.cuda.launching import HostClock
from gpusched_env.episodes.session import run_episode
from gpusched_env.errors import GpuError, InputError
from gpusched_env.scheduling.commands import WAIT, Command, Launch
from gpusched_env.scheduling.view import View
from gpusched_env.workload.workload import Op, OpKind
from tests.devices.cuda import fake_cupy
from tests.devices.problems import Copy, K, Script, problem
from tests.devices.programs import GRAPH, SYNC, Kernels, build
from tests.refusals import refused

LATE_US = 300e6
"""A horizon in real time that no busy machine reaches."""


def test_stand_ins_take_as_long_as_the_recorded_kernels(gpu: CupyGpu, tmp_path: Path) -> None:
    built = problem(tmp_path, {"ops": [K(4, 100.0), K(2, 1500.0), K(7, 20.0)]})
    gpu.prepare(built)
    gap_us = built.gpu.timing.stream_gap_us
    assert sorted(gpu.fits) == [(identity, "synthetic") for identity in range(3)]
    for profile, (stand, _) in zip(built.kernels, gpu.fits.values(), strict=True):
        assert gpu.period_us(stand) - gap_us == pytest.approx(profile.duration_us, rel=NEAR)
        assert (stand.blocks, stand.threads) == (profile.kernel.blocks, profile.kernel.threads)


def test_the_gpu_s_clock_is_found(gpu: CupyGpu) -> None:
    # Within what two threads of one interpreter keep each other waiting.
    assert gpu._clock.compare() == pytest.approx(fake_cupy.AHEAD_NS, abs=20e6)


def test_an_episode_runs_in_real_time(gpu: CupyGpu, tmp_path: Path) -> None:
    ops = [Copy(OpKind.COPY_TO_DEVICE, 5.0), K(4, 400.0), K(4, 200.0), Copy(OpKind.COPY_TO_HOST, 5.0), "sync"]
    built = problem(tmp_path, {"ops": ops, "jobs": 2}, {"ops": [K(2, 300.0)] * 3, "jobs": 2}, horizon_us=LATE_US)
    device = RealDevice(gpu)
    episode = run_episode(Script(None), built, device, 0, record="kernels")
    kernels = episode.timeline.kernels.dict()
    assert episode.done
    assert len(episode.timeline.jobs) == 4
    assert len(episode.timeline.copies) == 4
    assert len(kernels["id"]) == 10
    assert (kernels["ended_us"] >= kernels["started_us"]).all()
    for tenant in range(2):
        mine = np.argsort(kernels["id"][kernels["tenant"] == tenant])
        started, ended = (kernels[name][kernels["tenant"] == tenant][mine] for name in ("started_us", "ended_us"))
        assert (started[1:] >= ended[:-1] - 1e-3).all()
    assert len(device.decisions_us) >= 10


def test_blocks_are_recorded_on_the_gpu(gpu: CupyGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_record, "MOST_BLOCKS", 40)
    # Times before the start are cut off; two threads of one interpreter find the clock to milliseconds only.
    monkeypatch.setattr(HostClock, "compare", lambda clock: fake_cupy.AHEAD_NS)
    built = problem(tmp_path, {"ops": [K(4, 400.0), K(7, 200.0)], "jobs": 2}, horizon_us=LATE_US)
    episode = run_episode(Script(None), built, RealDevice(gpu), 0, record="blocks")
    blocks, kernels = episode.timeline.blocks.dict(), episode.timeline.kernels.dict()
    assert len(blocks["sm"]) == 2 * (4 + 7)
    before_us = 0.0
    for id_, identity in zip(kernels["id"].tolist(), kernels["identity"].tolist(), strict=True):
        mine = blocks["kernel"] == id_
        (started_us,), (ended_us,) = set(blocks["started_us"][mine]), set(blocks["ended_us"][mine])
        assert ended_us - started_us == pytest.approx(built.kernels[int(identity)].duration_us, rel=NEAR)
        assert started_us >= before_us
        before_us = ended_us
        assert sorted(blocks["sm"][mine]) == list(range(mine.sum()))
    with refused(InputError, "40 blocks", "record='kernels'"):
        run_episode(Script(None), problem(tmp_path, {"ops": [K(41, 400.0)]}), RealDevice(gpu), 0, record="blocks")


def test_a_view_is_of_the_present(gpu: CupyGpu, tmp_path: Path) -> None:
    """Not of the time when the scheduler could first have been asked."""
    seen: list[float] = []

    def decide(view: View) -> Command:
        seen.append(view.time_us)
        return Launch(int(view.pending.id[0])) if len(view.pending) else WAIT

    built = problem(tmp_path, {"ops": [K(2, 300.0)] * 3}, {"ops": [K(1, 300.0)] * 3}, horizon_us=LATE_US)
    device = RealDevice(gpu)
    run_episode(Script(decide), built, device, 0)
    taken = np.cumsum(np.array(device.decisions_us))
    assert (np.diff(seen) > 0.0).all()
    assert seen[-1] > taken[-2] * 0.99


def test_a_graph_is_captured_once(gpu: CupyGpu) -> None:
    kernels = Kernels()
    fork = (kernels.node(300.0), kernels.node(500.0, 0), kernels.node(200.0, 0), kernels.node(100.0, 1, 2))
    ops = [Op(GRAPH, index=0, duration_us=900.0), SYNC]
    built = build(kernels, ops, graphs=[fork], tenant={"jobs": 3}, timing={}, horizon_us=LATE_US)
    before = fake_cupy.Graph.made
    episode = run_episode(Script(None), built, RealDevice(gpu), 0)
    assert fake_cupy.Graph.made == before + 1
    assert len(episode.timeline.jobs) == 3


def test_work_waits_for_work_of_other_queues(gpu: CupyGpu) -> None:
    kernels = Kernels()
    ops = [
        kernels.op(2000.0, 2), Op(OpKind.RECORD, index=0), Op(OpKind.WAIT, index=0, stream=1),
        kernels.op(500.0, 1, stream=1), SYNC,
    ]  # fmt: skip
    episode = run_episode(
        Script(None),
        build(kernels, ops, program_streams=2, timing={}, horizon_us=LATE_US),
        RealDevice(gpu),
        0,
        record="kernels",
    )
    first, second = episode.timeline.kernels.array
    started, ended = (episode.timeline.kernels.names.index(name) for name in ("started_us", "ended_us"))
    assert second[started] >= first[ended] - 1e-3


def test_a_fault_is_told_with_what_to_do(gpu: CupyGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = problem(tmp_path, {"ops": [K(4, 50_000.0)]})
    device = RealDevice(gpu)
    assert device.reset(built, 0) is not None
    device.apply(Launch(0))
    monkeypatch.setattr(fake_cupy.Stream, "fault", "illegal memory access")
    with refused(GpuError, "illegal"):
        device.advance()


def test_a_kernel_that_does_not_end_is_named(gpu: CupyGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = problem(tmp_path, {"ops": [K(4, 100.0)]})
    device = RealDevice(gpu)
    assert device.reset(built, 0) is not None
    monkeypatch.setattr(cupy_gpu, "HANG_S", 0.05)
    monkeypatch.setattr(fake_cupy.Stream, "hangs", True)
    device.apply(Launch(0))
    with refused(GpuError, "[0]", "0.05 s"):
        device.advance()
    with refused(GpuError, "0.05 s", "end"):
        device.close()


def test_too_little_memory_is_told(gpu: CupyGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(shape: Any, dtype: Any) -> Any:
        raise fake_cupy.OutOfMemory("out of memory allocating 16 bytes")

    monkeypatch.setattr(sys.modules["cupy"], "zeros", full)
    with refused(GpuError, "allocating"):
        gpu.prepare(problem(tmp_path, {"ops": [K(4, 1.0)]}))


def test_without_cupy_or_a_gpu_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with refused(InputError, "[gpu]", "pip install"):
        CupyGpu()
    nothing = fake_cupy.fake_cupy()
    nothing.is_available = lambda: False
    monkeypatch.setitem(sys.modules, "cupy", nothing)
    with refused(InputError, "NVIDIA GPU", "driver"):
        CupyGpu()

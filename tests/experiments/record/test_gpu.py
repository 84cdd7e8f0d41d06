"""Synthetic kernels through CuPy, on a stand-in for it; the kernels compile for a GPU that is not there."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gpusched_env.devices.cuda.kernels import compiled, registers_of
from gpusched_env.errors import GpuError, InputError
from gpusched_env.experiments.calibrate import fit as samples
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.record import gpu as recorder
from gpusched_env.experiments.record.gpu import CupyRecorder, StreamedKernel
from gpusched_env.experiments.record.library import Spec
from gpusched_env.experiments.validate.recordings import read_recordings
from tests.experiments.record.fake_cupy import FakeCupy
from tests.refusals import refused

SHORT = Spec(kind="compute", grid=3, block=64, smem=0, iters=10, fma=16, load=0)
LONG = Spec(kind="mixed", grid=20, block=128, smem=1024, iters=500, fma=16, load=1)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> FakeCupy:
    from cuda.bindings import driver

    made = FakeCupy()
    monkeypatch.setitem(sys.modules, "cupy", made)
    monkeypatch.setattr(driver, "cuStreamWaitValue32", made.wait_value)
    monkeypatch.setattr(recorder, "WARM_UP_S", 0.0)
    monkeypatch.setattr(recorder, "LINES", 1 << 10)
    monkeypatch.delenv(recorder.QUEUES, raising=False)
    return made


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_kernels_compile(arch: str) -> None:
    code = compiled("gpusched_env.experiments.record", recorder.SOURCE, arch)
    # Not more than 32: as many warps fit on an SM as its other limits let.
    assert 16 <= registers_of(code, "work") <= 32
    assert registers_of(code, "timer") <= 32


def test_the_head_says_what_is_recorded(cupy: FakeCupy) -> None:
    made = CupyRecorder()
    assert made.head == {
        "gpu": "NVIDIA H100 80GB HBM3",
        "sms": 8,
        "cupy": "14.0",
        "cuda": 13020,
        "driver": 13000,
        "work_regs": made.regs,
    }
    assert made.most_shared == 232_448


def test_streams_start_at_their_delays(cupy: FakeCupy) -> None:
    made = CupyRecorder()
    launches = [
        StreamedKernel(SHORT, stream=0, delay_us=300.0),
        StreamedKernel(LONG, stream=0),
        StreamedKernel(LONG, stream=1, priority=-5, delay_us=20.5),
        StreamedKernel(SHORT, stream=1, priority=-5),
    ]
    for _ in range(2):
        found = made.run(launches)
        assert [len(blocks) for blocks in found] == [3, 20, 20, 3]
        assert [blocks[0, :2].tolist() for blocks in found] == [
            [303_900, 313_900],
            [315_900, 815_900],
            [24_400, 524_400],
            [526_400, 536_400],
        ]
        assert np.unique(found[1][:, 2]).tolist() == list(range(8))
    assert {stream.priority for stream in cupy.streams.values()} == {0, -5}


def test_there_are_so_many_streams(cupy: FakeCupy) -> None:
    made = CupyRecorder()
    found = made.run([StreamedKernel(SHORT, stream=stream, delay_us=40.0 - stream) for stream in range(16)])
    assert [int(blocks[0, 0]) for blocks in found] == [43_900 - 1000 * stream for stream in range(16)]
    with refused(InputError, "stream 16", "16 streams"):
        made.run([StreamedKernel(SHORT, stream=16, delay_us=1.0)])


def test_chains_in_streams_and_graphs(cupy: FakeCupy) -> None:
    """A stream's launches become one graph as long as they follow each other and no flag is between them."""
    made = CupyRecorder()
    link, other = StreamedKernel(SHORT, graph=True), StreamedKernel(SHORT, stream=1, copy=True)
    begin = {"delay_us": 20.0}
    launches = [replace(link, **begin), replace(other, **begin), link, other, StreamedKernel(SHORT), link]
    cupy.codes.clear()
    found = made.run(launches)
    assert cupy.graphs == [2, 1]
    assert [int(blocks[0, 0]) for blocks in found] == [23_400, 23_900, 34_900, 35_900, 46_900, 58_400]
    assert [cupy.codes.count(code) for code in set(cupy.codes)].count(2) == 1  # the second copy's
    assert len(set(cupy.codes)) == 2


def test_costs_of_launches(cupy: FakeCupy) -> None:
    made = CupyRecorder()
    assert made.event_gap_ns(SHORT) == 3600.0
    assert made.host_us(SHORT, 5) > 0.0
    assert made.synchronised_us(SHORT) > 0.0


def test_work_that_does_not_end_is_told(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    made = CupyRecorder()
    monkeypatch.setattr(recorder, "HANG_S", 0.05)
    cupy.hangs = True
    with refused(GpuError, "0.05 s", "ended"):
        made.run([StreamedKernel(SHORT, delay_us=1.0)])


def test_the_command_records(cupy: FakeCupy, tmp_path: Path) -> None:
    given = ["lab", "record", str(tmp_path), "--quick", "--sets", "kernels,waves,launch,pairs,mixes,sequences"]
    ran = CliRunner().invoke(app, given)
    assert ran.exit_code == 0, ran.output
    assert f"{tmp_path / 'pairs.jsonl'}: 20\n" in ran.output
    assert len(read_recordings(tmp_path).kernels) == 30
    assert samples.read_recordings(tmp_path).event_latency.value_us == 3.6


def test_what_is_missing_is_named(cupy: FakeCupy, monkeypatch: pytest.MonkeyPatch) -> None:
    cupy.available = False
    with refused(InputError, "NVIDIA GPU", "machine"):
        CupyRecorder()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with refused(InputError, "recording", "[gpu]"):
        CupyRecorder()

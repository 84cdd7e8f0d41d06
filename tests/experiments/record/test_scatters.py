"""Kernels that add to drawn places, and a client that is held to some SMs, recorded without a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from gpusched_env.errors import GpuError
from gpusched_env.experiments.record.capped import HELD_STREAM, SHARES, CupyCapped, capped_rows, capped_runs
from gpusched_env.experiments.record.run import RecordingPlan, record
from gpusched_env.experiments.record.scatters import (
    LINKS,
    MOST_BLOCKS,
    CupyScatters,
    ScatterKernel,
    adding,
    scatters_rows,
    situations,
)
from tests.experiments.record.fake_gpu import FakeGpu
from tests.refusals import refused

SMS, SHARED = 132, 232_448


class FakeCapped(FakeGpu):
    def __init__(self) -> None:
        super().__init__()
        self.held: list[float] = []

    def hold(self, share: float) -> int:
        self.held.append(share)
        return round(share * self.sms) + 1


def test_rows_go_on_and_have_blocks_of_small_grids_only(tmp_path: Path) -> None:
    gpu = FakeGpu()
    record(RecordingPlan(folder=tmp_path, sets=("scatters",)), lambda *_: None, scatterer=lambda: cast(Any, gpu))
    _, *rows = map(json.loads, (tmp_path / "scatters.jsonl").read_text().splitlines())
    assert [row["what"] for row in rows] == [one.what for one in situations(SMS, SHARED)]
    for row in rows:
        assert len(row["launches"]) == len(row["measured"]) == len(row["duration_us"]) == len(row["blocks"])
        small = [launch["grid"] <= MOST_BLOCKS for launch in row["launches"]]
        assert small == [blocks is not None for blocks in row["blocks"]]
    assert len(list(scatters_rows(cast(CupyScatters, gpu), rows[:-2]))) == 2


def test_chains_come_while_the_long_grid_runs_and_some_fill_an_sm() -> None:
    chains = [one.launches for one in situations(SMS, SHARED) if one.what == "chain"]
    assert {len(launches) for launches in chains} == {1 + LINKS}
    assert {launches[1].priority for launches in chains} == {0, -5}
    assert all(launches[0].delay_us < launches[1].delay_us for launches in chains)  # type: ignore[operator]
    assert {launches[1].spec.smem for launches in chains} >= {0, SHARED}


def test_a_kernel_is_told_its_places() -> None:
    class Bare(CupyScatters):
        def __init__(self) -> None:
            self._scatter, self._work = 7, [1, 2]
            self._table = self._sink = self._buffer = cast(Any, Pointer())

    class Pointer:
        ptr = 4096

        @property
        def data(self) -> Pointer:
            return self

    bare, kernel = Bare(), adding(132, 256, 64, 1 << 15, uneven=8)
    assert isinstance(kernel, ScatterKernel)
    assert bare._function(kernel, None, False) == 7
    assert bare._given(kernel)[-2:] == [64 | 1 << 15 << 32, 1 | 8 << 32]


def test_the_held_client_has_each_share_and_none(tmp_path: Path) -> None:
    gpu = FakeCapped()
    record(RecordingPlan(folder=tmp_path, sets=("capped",)), lambda *_: None, holder=lambda: cast(Any, gpu))
    _, *rows = map(json.loads, (tmp_path / "capped.jsonl").read_text().splitlines())
    runs = capped_runs(SMS)
    assert [row["share"] for row in rows] == [run.share for run in runs]
    assert gpu.held == [run.share for run in runs if run.share is not None]
    assert {row["sms"] for row in rows} == {None, *(round(share * SMS) + 1 for share in SHARES)}
    for run in runs:
        assert (run.launches[0].stream >= HELD_STREAM) == (run.share is not None)
    assert len(list(capped_rows(cast(CupyCapped, gpu), rows[:-1]))) == 1


def test_a_driver_without_green_contexts_is_named() -> None:
    class Bare(CupyCapped):
        def __init__(self) -> None:
            self._bindings = cast(Any, Bindings)

    class Bindings:
        class CUresult:
            CUDA_SUCCESS = 0

        @staticmethod
        def cuGreenCtxCreate(*_: object) -> tuple[Any, None]:
            return type("Status", (), {"name": "CUDA_ERROR_NOT_SUPPORTED"}), None

    with refused(GpuError, "cuGreenCtxCreate", "NOT_SUPPORTED"):
        Bare()._asked("cuGreenCtxCreate")


@pytest.mark.parametrize("name", ["scatters", "capped"])
def test_neither_is_recorded_unasked(name: str, tmp_path: Path) -> None:
    assert name not in RecordingPlan(folder=tmp_path).sets

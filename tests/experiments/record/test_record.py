"""Recordings without a GPU: what is drawn, what is written, and that validation and calibration read it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.experiments.calibrate import fit as samples
from gpusched_env.experiments.record import library as scenarios
from gpusched_env.experiments.record.library import KINDS, Spec, draw, figures
from gpusched_env.experiments.record.run import RecordingPlan, record
from gpusched_env.experiments.record.sets import QUICK, known_sets
from gpusched_env.experiments.validate.recordings import read_recordings
from tests.experiments.record.fake_gpu import FLAG_NS, FakeGpu, block_ns
from tests.refusals import refused

SYNTHETIC = known_sets()


def recorded(folder: Path, gpu: FakeGpu | None = None, **plan: Any) -> list[tuple[Path, int]]:
    """Records a little on the fake; what was told."""
    told: list[tuple[Path, int]] = []
    made = gpu or FakeGpu()
    given = {"sets": SYNTHETIC, "quick": True, **plan}
    record(RecordingPlan(folder=folder, **given), lambda *of: told.append(of), gpu=lambda: made)
    return told


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("recording")
    recorded(made)
    return made


def test_validation_reads_what_is_written(folder: Path) -> None:
    found = read_recordings(folder)
    assert len(found.kernels) == QUICK.long + QUICK.short
    assert {name: len(rows) for name, rows in found.sets.items()} == dict(QUICK.scenarios)
    for row in found.sets["mixes"]:
        for launch, measured in zip(row.launches, row.measured, strict=True):
            if launch.delay_us is not None:
                assert measured.start_us == pytest.approx(launch.delay_us + FLAG_NS / 1e3)
    assert found.model_pairs is None


def test_calibration_reads_what_is_written(folder: Path) -> None:
    found = samples.read_recordings(folder)
    assert {sample.source for sample in found.samples} == {"waves", "kernels"}
    assert {sample.kind for sample in found.samples} == set(KINDS)
    assert found.block_gap.value_us == 2.0
    assert found.event_latency.value_us == 3.7


def test_rows_have_the_fields_of_earlier_recordings(folder: Path) -> None:
    head, first, *_ = lines(folder, "kernels")
    assert {"gpu", "sms", "cupy", "cuda", "work_regs", "seed"} <= head.keys()
    shape = ["kind", "grid", "block", "smem", "iters", "fma", "load", "regs", "flop_per_block", "dram_bytes_per_block"]
    assert list(first) == [*shape, "id", "solo"]
    assert list(first["solo"]) == ["duration_us", "block_us", "block_us_p95", "sms"]
    pair = lines(folder, "pairs")[1]
    assert list(pair) == ["id", "launches", "measured", "end_min_max_us"]
    assert list(pair["launches"][0]) == ["stream", "priority", "delay_us", "kernel"]
    times = ["start_us", "end_us", "block_us", "block_us_p95", "last_start_us", "sms"]
    assert list(pair["measured"][0]) == times
    assert list(lines(folder, "waves")[1]) == ["spec", *times]


def test_known_work_is_that_of_earlier_recordings() -> None:
    # Kernels k00, k01 and k02 of the H100's.
    compute = Spec(kind="compute", grid=132, block=128, smem=112640, iters=1853, fma=16, load=0).work(26)
    memory = Spec(kind="memory", grid=16, block=1024, smem=0, iters=33, fma=0, load=4).work(26)
    mixed = Spec(kind="mixed", grid=4, block=1024, smem=0, iters=13, fma=16, load=1).work(26)
    assert (compute["flop_per_block"], compute["dram_bytes_per_block"]) == (30359552, 0)
    assert (memory["flop_per_block"], memory["dram_bytes_per_block"]) == (0, 2162688)
    assert (mixed["flop_per_block"], mixed["dram_bytes_per_block"]) == (1703936, 212992)


def test_kernels_take_as_long_as_was_drawn() -> None:
    drawn = [draw(f"k{n:02d}", 1, 132, 232_448, (50.0, 500.0), lambda spec: block_ns(spec) / 1e3) for n in range(60)]
    assert [spec.kind for spec in drawn[:3]] == list(KINDS)
    took = np.array([block_ns(spec) / 1e3 for spec in drawn])
    # To the nearest iteration.
    assert 49.0 < took.min() < 70.0
    assert 400.0 < took.max() < 501.0
    assert {spec.smem > 0 for spec in drawn} == {True, False}


def test_a_gpu_with_less_shared_memory_gets_kernels_that_fit() -> None:
    drawn = [draw(f"k{n:02d}", 1, 40, 65_536, (50.0, 500.0), lambda spec: block_ns(spec) / 1e3) for n in range(60)]
    assert {spec.smem for spec in drawn} == {0, 32768}
    assert 40 in {spec.grid for spec in drawn}


def test_another_seed_draws_something_else(folder: Path, tmp_path: Path) -> None:
    recorded(tmp_path / "same", sets=("kernels", "pairs"))
    recorded(tmp_path / "other", sets=("kernels", "pairs"), seed=1)
    for name in ("kernels", "pairs"):
        assert lines(tmp_path / "same", name)[1:] == lines(folder, name)[1:]
        assert lines(tmp_path / "other", name)[1:] != lines(folder, name)[1:]


def test_a_recording_is_made_again(folder: Path, tmp_path: Path) -> None:
    recorded(tmp_path, like=folder, seed=5)
    for name in ("kernels", "pairs", "mixes", "sequences"):
        assert lines(tmp_path, name)[1:] == lines(folder, name)[1:]


def test_pairs_overlap() -> None:
    kernels = {f"k{n:02d}": 100.0 + n for n in range(20)}
    drawn = [scenarios.pair(number, 0, kernels) for number in range(300)]
    later = [(b.delay_us - a.delay_us) / kernels[a.kernel] for a, b in drawn if a.delay_us and b.delay_us]
    assert sorted({round(share, 2) for share in later}) == [0.0, 0.25, 0.5]
    assert 70 < sum(b.priority == -5 for _, b in drawn) < 130
    assert all((a.stream, b.stream, a.priority, a.delay_us) == (0, 1, 0, 20.0) for a, b in drawn)


@pytest.mark.parametrize(
    ("draw_one", "streams", "lengths", "distinct"),
    [(scenarios.mix, (2, 8), (1, 4), 4), (scenarios.sequence, (2, 5), (15, 50), 6)],
)
def test_streams_are_as_long_as_in_earlier_recordings(
    draw_one: Any, streams: tuple[int, int], lengths: tuple[int, int], distinct: int
) -> None:
    many = [draw_one(number, 3, [f"k{n}" for n in range(64)]) for number in range(200)]
    by_stream = [[o for o in one if o.stream == n] for one in many for n in {o.stream for o in one}]
    counts = [len({o.stream for o in one}) for one in many]
    assert (min(counts), max(counts)) == streams
    assert (min(map(len, by_stream)), max(map(len, by_stream))) == lengths
    assert max(len({o.kernel for o in one}) for one in by_stream) == distinct
    assert all([o.delay_us is None for o in one] == [False] + [True] * (len(one) - 1) for one in by_stream)


def test_figures_of_a_launch_by_hand() -> None:
    found = figures(np.array([[1000, 3000, 4], [1500, 2500, 4], [3000, 6000, 7]]))
    assert dataclasses.astuple(found) == (1.0, 6.0, 2.0, pytest.approx(2.9), 3.0, 2.0)
    assert found.duration_us == 5.0


def test_an_interrupted_recording_is_valid_and_goes_on(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        recorded(tmp_path, FakeGpu(fail_after=680))
    assert read_recordings(tmp_path).sets.keys() <= {"pairs", "mixes"}
    # What a process leaves that is killed while it writes.
    names = [name for name in SYNTHETIC if (tmp_path / f"{name}.jsonl").exists()]
    with (tmp_path / f"{names[-1]}.jsonl").open("ab") as file:
        file.write(b'{"id": "ha')
    recorded(tmp_path, resume=True)
    for name in SYNTHETIC:
        assert lines(tmp_path, name) == lines(folder, name)


def test_nothing_is_overwritten(folder: Path) -> None:
    before = (folder / "kernels.jsonl").read_bytes()
    with refused(InputError, "kernels.jsonl", "--resume"):
        recorded(folder)
    with refused(InputError, "{'seed': 0}", "{'seed': 7}"):
        recorded(folder, seed=7, resume=True)
    assert (folder / "kernels.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"sets": ("pears",)}, "nothing called 'pears' can be recorded; did you mean 'pairs'"),
        ({"sets": ("pairs",)}, r"has no kernels\.jsonl; record kernels too"),
        (
            {"sets": ("model_pairs",), "networks": ("resnet51_infer_b1",)},
            "no network 'resnet51_infer_b1'; did you mean",
        ),
    ],
)
def test_what_cannot_be_recorded_is_told(tmp_path: Path, plan: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        recorded(tmp_path, **plan)


def test_scenarios_again_need_their_files(folder: Path, tmp_path: Path) -> None:
    kernels = [msgspec.json.encode(row) for row in lines(folder, "kernels")]
    (tmp_path / "kernels.jsonl").write_bytes(b"\n".join(kernels))
    with refused(InputError, "pairs.jsonl", ".jsonl.gz"):
        recorded(tmp_path / "new", like=tmp_path, sets=("kernels", "pairs"))
    assert not (tmp_path / "new").exists()
    with refused(InputError, "GPU", "most 1000"):
        recorded(tmp_path / "small", FakeGpu(most_shared=1000), like=tmp_path, sets=("kernels",))

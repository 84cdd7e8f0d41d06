"""Kernels that synchronise their tiles on a GPU: tables, the program on a stand-in, predictions, and the page."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from gpusched_env.devices.cuda.kernels import compiled, registers_of
from gpusched_env.errors import InputError
from gpusched_env.experiments.measure import tiles as program
from gpusched_env.experiments.measure.tile_page import shipped, tile_page, write_page
from gpusched_env.experiments.measure.tile_rows import (
    AloneTime,
    CostTime,
    PairTime,
    Predicted,
    TileCase,
    Unmeasured,
    predictions,
    read_tiles,
    tables_of,
)
from gpusched_env.experiments.measure.tiles import MOST_SHARED, NAMES, SHARED, THREADS, TileKernels, TilePairOnGpu
from gpusched_env.hardware.specs import load_gpu, match_gpu
from tests.experiments.tile_stand_in import TileGpu
from tests.refusals import refused

ROOT = Path(__file__).parents[2]
TOY = TileCase(work="spin", tokens=1536, producer=(3, 2), consumer=(3, 2), sms=4, per_sm=1)
"""The paper's: two products of 3 x 2 tiles on 4 SMs."""
PRODUCTS = TileCase(work="product", tokens=1536, producer=(2, 2), consumer=(2, 3), sms=5, per_sm=1)


def on_gpu(case: TileCase, sms: int | None = None) -> TilePairOnGpu:
    gpu = TileGpu(sms or case.sms)
    return TilePairOnGpu(TileKernels(gpu), case, gpu.sms)


def test_tables_of_the_toy() -> None:
    row, tile = (tables_of(policy, TOY.producer, TOY.consumer) for policy in ("row", "tile"))
    assert row.post.tolist() == [0, 0, 1, 1, 2, 2]
    assert (row.awaited.ravel().tolist(), row.before.ravel().tolist(), row.value) == ([0, 0, 1, 1, 2, 2], [0] * 6, 2)
    assert tile.post.tolist() == [0, 1, 2, 3, 4, 5]
    assert tile.awaited.tolist() == [[0, 1], [0, 1], [2, 3], [2, 3], [4, 5], [4, 5]]
    assert (tile.before.tolist(), tile.value) == ([[0, 1]] * 6, 1)
    assert tables_of("stream", TOY.producer, TOY.consumer).awaited.shape == (6, 0)


@pytest.mark.parametrize("policy", ["column", "share"])
def test_another_policy_is_refused(policy: str) -> None:
    with refused(InputError, "unguarded"):
        tables_of(policy, (3, 2), (3, 2))


def test_grids_of_other_rows_are_refused() -> None:
    with refused(InputError, "for 3", "4 rows"):
        tables_of("row", (3, 2), (4, 2))


def test_the_toy_takes_four_waves_in_stream_order_and_three_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusched_env.experiments.measure.tiles.blocks_us", lambda case: (10.0, 10.0))
    there = on_gpu(TOY)
    assert [time.median_us for time in there.alone()] == [20.0, 20.0]
    found = {policy: there.pair(policy) for policy in ("stream", "row", "tile", "unguarded")}
    assert {policy: time.median_us for policy, time in found.items()} == {
        "stream": 40.0, "row": 30.0, "tile": 30.0, "unguarded": 30.0,
    }  # fmt: skip
    assert [time.early for time in found.values()] == [0, 0, 0, 0]
    assert {time.gave_up for time in found.values()} == {0}


def test_a_consumer_that_takes_all_slots_gives_up() -> None:
    found = on_gpu(TOY).consumer_first("row")
    assert found.policy == "row, consumer first"
    assert found.gave_up == 4
    assert found.early == 4 * 2


def test_results_of_products_are_right_where_tiles_are_guarded() -> None:
    there = on_gpu(PRODUCTS, sms=7)
    there.alone()
    assert [there.pair(policy).right for policy in ("stream", "row", "tile")] == [True, True, True]
    control = there.pair("unguarded")
    assert control.right is False
    assert control.early > 0


def test_fields_are_those_of_the_cuda_struct() -> None:
    source = (resources.files("gpusched_env.experiments.measure") / "tiles.cu").read_text()
    body = re.sub(r"//.*", "", re.search(r"struct Tiles {(.*?)};", source, re.DOTALL)[1])
    declared = []
    for line in filter(None, map(str.strip, body.split(";"))):
        names = re.sub(r"^(const )?int ", "", line).split(", ")
        declared += [(name.strip(" *"), "u8" if "*" in line else "i4") for name in names]
    there = on_gpu(TOY)
    there.pair("row")
    found = there.struct(posting=True, consuming=False).dtype
    assert [(name, found[name].str[1:]) for name in found.names] == declared


def test_blocks_fit_as_many_as_are_wanted() -> None:
    code = compiled("gpusched_env.experiments.measure", "tiles.cu", "sm_90")
    registers = {name: registers_of(code, name) for name in NAMES}
    per_sm, static = 227 * 1024, {"spin": 0, "product": 8 * (128 + 4 + 128) * 4}
    for blocks, shared in SHARED.items():
        for name in ("spin", "product"):
            # A block takes 1 KB of shared memory for itself.
            assert per_sm // (shared + static[name] + 1024) == blocks
            assert blocks * THREADS * registers[name] <= 65536
    assert MOST_SHARED["occupy"] + min(SHARED.values()) > per_sm


def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, gpu: TileGpu, limit_s: float = 1e6):
    """What the program writes of two small cases."""
    monkeypatch.setattr(program, "MeasuringGpu", lambda: gpu)
    monkeypatch.setattr(program, "cases", lambda sms: [TOY, PRODUCTS])
    program.measure(tmp_path / "tiles.json", limit_s=limit_s)
    return read_tiles(tmp_path / "tiles.json")


def test_the_program_measures_and_predicts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = small(monkeypatch, tmp_path, TileGpu(7))
    assert [row.of for row in recording.of(CostTime)] == ["post", "wait", "wait-kernel"]
    assert [row.role for row in recording.of(AloneTime)] == ["producer", "consumer"] * 2
    assert [row.policy for row in recording.of(PairTime)] == [
        "stream", "row", "tile", "unguarded", "unguarded, consumer first", "row, consumer first",
        "stream", "row", "tile", "unguarded", "unguarded, consumer first",
    ]  # fmt: skip
    found = [row for row in recording.of(Predicted) if row.policy != "stream"]
    assert [(row.case, row.policy) for row in found] == [(c, p) for c in (TOY, PRODUCTS) for p in ("row", "tile")]
    # The stand-in's synchronising is free, and so is what it says that it costs: both agree.
    assert [row.error for row in found] == pytest.approx([0.0] * 4, abs=0.01)
    assert recording.encoded() == (tmp_path / "tiles.json").read_bytes()


def test_costs_are_those_of_the_blocks_and_are_predicted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = small(monkeypatch, tmp_path, TileGpu(7, post_us=0.75, wait_us=0.5))
    assert [row.median_us for row in recording.of(CostTime)] == pytest.approx([0.75, 0.5, 10.0])
    found = [row for row in recording.of(Predicted) if row.policy != "stream"]
    assert [row.predicted_us for row in found] == pytest.approx([row.measured_us for row in found], abs=0.01)
    assert found[1].measured_us - found[0].measured_us == pytest.approx(0.5)


def test_both_devices_predict_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = small(monkeypatch, tmp_path, TileGpu(7)).rows
    ours = [list(predictions(rows, load_gpu("h100-sxm"), device)) for device in ("reference", "compiled")]
    assert ours[0] == ours[1]


def test_what_fails_is_a_row_and_the_rest_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = small(monkeypatch, tmp_path, TileGpu(7, fails="product"))
    (left_out,) = recording.of(Unmeasured)
    assert left_out.left_out.startswith("product, 1536 tokens")
    assert left_out.why == "RuntimeError: CUDA_ERROR_LAUNCH_FAILED: product"
    assert {row.case for row in recording.of(PairTime)} == {TOY}


def test_no_case_begins_after_the_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = small(monkeypatch, tmp_path, TileGpu(7), limit_s=-1.0)
    assert [row.why for row in recording.of(Unmeasured)] == ["no time was left"] * 2
    assert not recording.of(PairTime)


def test_cases_are_the_three_grids_on_all_sms_and_on_a_v100s() -> None:
    found = program.cases(132)
    assert {(case.producer, case.consumer) for case in found} == {((rows, 24), (rows, 48)) for rows in (6, 8, 12)}
    assert [case.sms for case in found[:6]] == [132] * 3 + [80] * 3
    assert {case.sms for case in program.cases(80)} == {80}


def test_the_page_says_what_came_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = small(monkeypatch, tmp_path, TileGpu(7))
    text = tile_page(recording, "reference")
    assert (
        "**4 gains on an NVIDIA H100 80GB HBM3 were predicted; errors are by rows 0.0 points in the median and 0.0 at "
        "most, by tiles 0.0 points in the median and 0.0 at most.**"
    ) in text
    assert "In stream order times are off by 0.0% at most." in text
    assert "Of 6 pairs in stream order or with semaphores 0 read a tile too early; of 2 controls, whose" in text
    assert "consumer goes first and waits for nobody, 2 did." in text
    assert "| product | 1,536 | 5 | 12 | wrong | 2 | wrong | +50.0 % |" in text
    assert "| product | 1,536 | 5 | 0.80 + 1.20 | row | " in text
    assert "takes all 4 slots and waits for ever, here until 4 waits were given up" in text
    program = tmp_path / "page.md"
    write_page(program, tmp_path / "tiles.json")
    assert program.read_text() == text


def test_a_page_needs_a_pair(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recording = small(monkeypatch, tmp_path, TileGpu(7), limit_s=-1.0)
    with refused(InputError, "measured"):
        tile_page(recording)


def test_the_shipped_recording_gives_the_page() -> None:
    recording = read_tiles(shipped())
    assert (ROOT / "docs" / "cusync-gpu.md").read_text(encoding="utf-8") == tile_page(recording)
    stored = recording.of(Predicted)
    anew = list(predictions(recording.rows, match_gpu(recording.gpu, "the recording")))
    assert [row.predicted_us for row in stored] == pytest.approx([row.predicted_us for row in anew])


def test_no_pair_of_the_shipped_recording_reads_a_tile_too_early() -> None:
    recording = read_tiles(shipped())
    guarded = [row for row in recording.of(PairTime) if row.policy in ("stream", "row", "tile")]
    assert {row.case for row in guarded} == set(program.cases(recording.sms))
    assert {(row.early, row.gave_up) for row in guarded} == {(0, 0)}
    assert {row.right for row in guarded if row.case.work == "product"} == {True}
    (deadlock,) = [row for row in recording.of(PairTime) if row.policy == "row, consumer first"]
    assert deadlock.gave_up > recording.sms

"""Validation against recordings: scoring on literal numbers, what a prediction may see, errors, exit statuses."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.lib.recorded import GraphPair, GraphPairs
from gpusched_env.experiments.validate import results
from gpusched_env.experiments.validate.recordings import (
    RecordedScenario,
    Recordings,
    read_kernels,
    read_recordings,
    read_scenarios,
)
from gpusched_env.experiments.validate.replay import RecordingReplay
from gpusched_env.experiments.validate.results import LIMITS, Validation, ValidationRun
from gpusched_env.experiments.validate.scoring import concurrency, halves, launches, score, worst_launches
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.workload import encode_workload
from tests.experiments.sortable import assert_sortable
from tests.refusals import refused
from tests.workload.kineto_traces import call, mark
from tests.workload.kineto_traces import kernel as traced_kernel
from tests.workload.kineto_traces import write as traced_network

SOLO_US = {"k0": 100.0, "k1": 50.0}
FLAG_US = 4.0
"""A stream starts this long after its flag is raised."""


def kernel(id_: str, **changes: Any) -> dict[str, Any]:
    """One wave of arithmetic that fills the GPU and takes ``SOLO_US`` alone."""
    solo = {"duration_us": SOLO_US[id_], "block_us": SOLO_US[id_], "block_us_p95": SOLO_US[id_]}
    row = {"id": id_, "grid": 132, "block": 256, "smem": 0, "regs": 26, "flop_per_block": 1e7}
    return row | {"dram_bytes_per_block": 0, "solo": solo} | changes


def scenario(
    id_: str, launches: list[tuple[int, float | None, str]], times: list[tuple[float, float]]
) -> dict[str, Any]:
    """Launches as (stream, delay, kernel), their measured starts and ends; all repetitions equal."""
    return {
        "id": id_,
        "launches": [{"stream": s, "priority": 0, "delay_us": d, "kernel": k} for s, d, k in launches],
        "measured": [{"start_us": start, "end_us": end} for start, end in times],
        "end_min_max_us": [[end, end] for _, end in times],
    }


APART = scenario("pair0", [(0, 0.0, "k0"), (1, 500.0, "k1")], [(4.0, 104.0), (504.0, 554.0)])
"""Disjoint in time: each ends its flag and its duration alone after its delay."""


def write(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in [{"gpu": "a header"}, *rows])
    (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines.encode()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two kernels, one pair."""
    path = tmp_path / "recordings"
    path.mkdir()
    write(path, "kernels", [kernel("k0"), kernel("k1")])
    write(path, "pairs", [APART])
    return path


@pytest.fixture
def validate(folder: Path, tmp_path: Path) -> Callable[..., Result]:
    """``gpusched lab validate`` of the folder in this process."""

    def run(*options: str) -> Result:
        paths = ("--json", str(tmp_path / "v.json"), "--out", str(tmp_path / "out"))
        return CliRunner().invoke(
            app, ["lab", "validate", str(folder), "--gpu", "h100-sxm", "--workers", "1", *paths, *options]
        )

    return run


def decode(row: dict[str, Any]) -> RecordedScenario:
    return msgspec.convert(row, RecordedScenario)


Predicted = tuple[RecordedScenario, Any]


def predicted(
    measured: list[float], ends: list[float], ranges: list[tuple[float, float]] | None = None, id_: str = "x0"
) -> Predicted:
    row = scenario(id_, [(i, 0.0, "k0") for i in range(len(ends))], [(0.0, end) for end in measured])
    if ranges is not None:
        row["end_min_max_us"] = ranges
    return decode(row), np.stack([np.zeros(len(ends)), ends], axis=1)


def scored(*predictions: Predicted) -> dict[str, Any]:
    found = score(launches({"pairs": predictions}))
    assert found is not None
    return found


def validation_of(gpu: str, *pairs: tuple[GraphPair, tuple[float, float]], **sets: list[Predicted]) -> Validation:
    recordings = Recordings(Path("recordings"), {}, {}, [pair for pair, _ in pairs] or None, [])
    return Validation(load_gpu(gpu), recordings, launches(sets), pairs)


def test_kernels_that_never_meet_take_their_time_alone(folder: Path) -> None:
    recordings = read_recordings(folder)
    times = RecordingReplay(recordings.kernels, load_gpu("h100-sxm")).predict(recordings.sets["pairs"][0])
    assert times[:, 0] == pytest.approx([FLAG_US, 500.0 + FLAG_US])
    assert times[:, 1] == pytest.approx([104.0, 554.0], rel=1e-3)


def test_a_stream_runs_its_launches_one_after_the_other(folder: Path) -> None:
    """The second starts 2.05 us, the recorded gap between blocks, after the first."""
    row = decode(scenario("s0", [(0, 0.0, "k0"), (0, None, "k1")], [(4.0, 104.0), (106.05, 156.05)]))
    times = RecordingReplay(read_kernels(folder), load_gpu("h100-sxm")).predict(row)
    assert times[:, 0] == pytest.approx([4.0, 106.05], rel=2e-3)
    assert times[:, 1] == pytest.approx([104.0, 156.05], rel=2e-3)


def test_a_prediction_does_not_look_at_measured_times(folder: Path) -> None:
    together = scenario("p0", [(0, 0.0, "k0"), (1, 10.0, "k1")], [(4.0, 150.0), (14.0, 100.0)])
    lies = together | {
        "measured": [{"start_us": 900.0, "end_us": 7000.0}, {"start_us": 1.0, "end_us": 2.0}],
        "end_min_max_us": [[1.0, 9000.0], [1.0, 2.0]],
    }
    replay = RecordingReplay(read_kernels(folder), load_gpu("h100-sxm"))
    honest, fooled = (replay.predict(decode(row)) for row in (together, lies))
    assert np.array_equal(honest, fooled)
    assert honest[0, 1] > 104.0, "the two must compete, or nothing was compared"


def test_errors_are_relative_and_their_median_is_taken_over_launches() -> None:
    figures = scored(predicted([100.0, 200.0], [110.0, 190.0]), predicted([50.0], [50.0]))
    assert figures["n"] == 3
    assert figures["end_error"]["median"] == pytest.approx(0.05)
    assert figures["end_error"]["p90"] == pytest.approx(0.05 + 0.8 * 0.05)
    assert figures["makespan_error"]["median"] == pytest.approx(0.025), "5 % of 200 us, and none"


def test_only_launches_whose_repetitions_agree_count_as_reproducible() -> None:
    ranges = [(98.0, 103.0), (195.0, 205.1)]
    figures = scored(predicted([100.0, 200.0], [101.0, 300.0], ranges))
    assert figures["n_reproducible"] == 1
    assert figures["reproducible_end_error"]["median"] == pytest.approx(0.01)
    assert figures["end_error"]["median"] == pytest.approx((0.01 + 0.5) / 2)


def test_nothing_reproducible_is_no_error_of_zero() -> None:
    assert scored(predicted([100.0], [100.0], [(50.0, 150.0)]))["reproducible_end_error"] is None


def test_rank_correlation_compares_the_order_of_ends() -> None:
    assert scored(predicted([1.0, 2.0, 3.0], [10.0, 20.0, 30.0]))["rank_correlation"] == pytest.approx(1.0)
    assert scored(predicted([1.0, 2.0, 3.0], [3.0, 2.0, 1.0]))["rank_correlation"] == pytest.approx(-1.0)
    # Spearman by hand: ranks differ by 0, 1 and 1, so 1 - 6 * 2 / (3 * 8).
    swapped = predicted([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    assert scored(swapped, predicted([1.0], [5.0]))["rank_correlation"] == pytest.approx((0.5 + 1.0) / 2)


def test_halves_are_scenarios_of_even_and_odd_number() -> None:
    rows = [predicted([100.0], [100.0 + n], id_=f"mix00{n}") for n in (1, 2, 3)]
    found = halves(launches({"mixes": rows}))
    assert found["even"]["end_error"]["median"] == pytest.approx(0.02)
    assert found["odd"]["end_error"]["median"] == pytest.approx(0.02)
    assert (found["even"]["n"], found["odd"]["n"]) == (1, 2)
    assert halves(launches({"mixes": rows[:1]}))["even"] is None


def test_concurrency_counts_launches_at_the_midpoint() -> None:
    times = [(0.0, 100.0), (40.0, 60.0), (55.0, 200.0)]
    assert concurrency(decode(scenario("x", [(i, 0.0, "k0") for i in range(3)], times))) == [2, 2, 1]


def test_slowdowns_of_networks_are_compared_side_by_side() -> None:
    pair = GraphPair(
        mode="streams", fg="a", bg="b", fg_p50_us=20.0, bg_p50_us=30.0, fg_solo_us=10.0, bg_solo_us=20.0
    )  # fmt: skip
    figures = validation_of("h100-sxm", (pair, (2.2, 1.5))).networks
    assert figures["foreground_error"]["median"] == pytest.approx(0.1)
    assert figures["background_error"]["median"] == pytest.approx(0.0)
    assert figures["slowdown_error"]["median"] == pytest.approx(0.05)


def test_the_worst_launches_are_reproducible_and_one_a_scenario() -> None:
    noisy = predicted([100.0, 100.0], [130.0, 900.0], [(100.0, 100.0), (10.0, 900.0)], "noisy")
    sets = {"pairs": [predicted([100.0], [101.0])], "mixes": [noisy, predicted([100.0], [150.0], id_="worse")]}
    worst = worst_launches(launches(sets), 2)
    assert worst[["scenario", "launch"]].to_numpy().tolist() == [["worse", 0], ["noisy", 0]]


def test_the_command_writes_data_and_page(validate: Callable[..., Result], tmp_path: Path) -> None:
    result = validate("--docs", str(tmp_path / "v.md"), "--ablation")
    assert result.exit_code == 0, result.output
    data = json.loads((tmp_path / "v.json").read_text())
    assert not (tmp_path / "v-pairs.csv").exists(), "no networks were recorded"
    last = result.output.strip().splitlines()[-1]
    assert last.startswith("OK: validation on h100-sxm: 3 of 3 errors within limits; worst pairs, ")
    pairs = data["pairs"]
    assert (data["gpu"], pairs["n"], pairs["halves"]["odd"]) == ("h100-sxm", 2, None)
    assert pairs["rank_correlation"] == pytest.approx(1.0)
    assert set(pairs["end_error"]) == set(pairs["makespan_error"]) == {"median", "p90", "p95"}
    assert "mixes" not in data
    without = data["ablation"]["without"]
    assert without["everything on"]["pairs"]["median"] == pairs["reproducible_end_error"]["median"]
    assert "scale to solo duration" in without
    page = (tmp_path / "out" / "validation.html").read_text()
    assert "%%" not in page.split("<script", 1)[0]
    assert "pair0, launch" in page
    assert_sortable(page)
    assert "| scale to solo duration |" in (tmp_path / "v.md").read_text()


def test_an_error_beyond_its_limit_fails(validate: Callable[..., Result], folder: Path) -> None:
    write(
        folder,
        "pairs",
        [APART | {"measured": [{"start_us": 4.0, "end_us": 208.0}, {"start_us": 504.0, "end_us": 554.0}]}],
    )
    result = validate()
    assert result.exit_code == 1
    last = result.output.strip().splitlines()[-1]
    assert last.startswith("FAILED: validation on h100-sxm: 1 of 3 errors within limits; worst pairs, median: 2")


def test_other_gpus_may_be_off_by_a_factor_more() -> None:
    checks = validation_of("h100-sxm", pairs=[predicted([100.0], [101.3])]).checks()
    assert [check.holds for check in checks] == [False, True, False]
    assert validation_of("h200-sxm", pairs=[predicted([100.0], [101.3])]).holds
    assert checks[0].limit == LIMITS["pairs"]["median"] == 0.012


def test_nothing_to_compare_fails() -> None:
    empty = validation_of("h100-sxm")
    assert empty.summary_line() == "FAILED: validation on h100-sxm: nothing to compare"
    assert empty.as_dict()["worst"] == []


def test_networks_without_a_shipped_workload_are_left_out_and_counted(
    validate: Callable[..., Result], folder: Path, tmp_path: Path
) -> None:
    row: dict[str, Any] = {"what": "pair", "mode": "streams", "fg": "alexnet_infer_b1", "bg": "no_such_network"}
    row |= {f"{side}_{what}_us": 100.0 for side in ("fg", "bg") for what in ("p50", "solo")}
    write(folder, "model_pairs", [row, row | {"bg": "alexnet_infer_b1", "mode": "mystery"}])
    result = validate()
    assert result.exit_code == 0
    assert "no shipped workload 'no_such_network'" in result.output
    assert "unknown mode 'mystery'" in result.output
    assert json.loads((tmp_path / "v.json").read_text())["model_pairs"] == {"n": 0, "skipped": 2}


def test_networks_are_those_of_the_folder_s_traces(validate: Callable[..., Result], folder: Path) -> None:
    """Neither kernels nor a shipped workload are needed: a network of one kernel, alone on the GPU in half its time."""
    row: dict[str, Any] = {"what": "pair", "mode": "streams", "fg": "mine", "bg": "alexnet_infer_b1"}
    row |= {f"{side}_{what}_us": 100.0 for side in ("fg", "bg") for what in ("p50", "solo")}
    write(folder, "model_pairs", [row])
    for name in ("kernels", "pairs"):
        (folder / f"{name}.jsonl.gz").unlink()
    assert "no shipped workload 'mine', and no traces/mine.kineto.json.gz" in validate().output
    (folder / "traces").mkdir()
    events = [mark(0, 200), call("cudaLaunchKernel", 10, 5, 1), traced_kernel(20, 100, 1)]
    traced_network(folder / "traces" / "mine.kineto.json.gz", [*events, call("cudaDeviceSynchronize", 20, 110, 0)])
    recordings = read_recordings(folder, load_gpu("h100-sxm"))
    assert recordings.skipped == []
    assert list(recordings.workloads) == ["mine"]
    validation = ValidationRun(recordings, "h100-sxm").run()
    (pair,) = validation.as_dict()["model_pairs"]["each"]
    assert pair["fg"] == "mine"
    assert pair["foreground"]["predicted"] > 1.0

    imported = recordings.workloads["mine"]
    (folder / "traces" / "mine.workload.json.gz").write_bytes(encode_workload(imported))
    (folder / "traces" / "mine.kineto.json.gz").unlink()
    assert read_recordings(folder).workloads == {"mine": imported}


def test_a_network_alone_is_simulated_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[str, ...]] = []

    def turnarounds(cell: GraphPairs, device: str) -> list[float]:
        played.append(cell.networks)
        return [10.0] if len(cell.networks) == 1 else [20.0, 30.0]

    monkeypatch.setattr(GraphPairs, "run", turnarounds)
    row: dict[str, Any] = {"what": "pair", "mode": "streams", "fg": "alexnet_infer_b1", "bg": "alexnet_infer_b1"}
    row |= {"fg_p50_us": 40.0, "fg_solo_us": 20.0, "bg_p50_us": 20.0, "bg_solo_us": 10.0}
    write(folder, "model_pairs", [row, row | {"mode": "priority"}])
    validation = ValidationRun(read_recordings(folder), "h100-sxm").run()
    assert played.count(("alexnet_infer_b1",)) == 1
    data = validation.as_dict()["model_pairs"]
    assert [(pair["foreground"]["error"], pair["background"]["error"]) for pair in data["each"]] == [(0.0, 0.5)] * 2
    assert data["slowdown_error"]["median"] == 0.25
    page = validation.markdown()
    assert "[Every pair of networks](validation-pairs.csv)" in page
    assert "0 of 4 recorded ones are below 1" in page
    assert "| alexnet_infer_b1 beside" not in page, "pairs are in the file"
    assert "alexnet_infer_b1 beside alexnet_infer_b1,priority,2.00,2.00,0,3.00,2.00,0.5" in validation.pairs_csv()


def test_programs_side_by_side_are_predicted_from_their_traces_and_times_alone(folder: Path, tmp_path: Path) -> None:
    """Two equal programs whose hosts launch a kernel of 100 us and wait: in turns each takes twice as long."""
    (tmp_path / "traces").mkdir()
    events = [mark(0, 200), call("cudaLaunchKernel", 10, 5, 1), traced_kernel(20, 100, 1)]
    for name in ("one", "other"):
        traced_network(
            tmp_path / "traces" / f"{name}.kineto.json.gz", [*events, call("cudaDeviceSynchronize", 20, 110, 0)]
        )
    took = {"n": 9, "mean_us": 150.0}
    alone = [{"what": "alone", "front": name, "behind": None, "front_us": took} for name in ("one", "other")]
    pair = {"what": "streams", "front": "one", "behind": "other"}
    twice = {"n": 9, "mean_us": 300.0}
    rows = [*alone, pair | {"front_us": twice, "behind_us": took}, pair | {"error": "GpuError: gone"}]
    write(tmp_path, "processes", rows)
    validation = ValidationRun(read_recordings(tmp_path, load_gpu("h100-sxm")), "h100-sxm").run()
    (row,) = validation.programs.rows
    assert (row["front_recorded"], row["behind_recorded"]) == (2.0, 1.0)
    assert 1.0 < row["front_predicted"] < 2.5
    assert row["far"]
    assert [(check.set, check.error) for check in validation.checks()] == [("processes", 1.0)]
    assert "| streams | 1 |" in validation.markdown()
    assert "streams,one,other" in validation.pairs_csv()

    write(tmp_path, "processes", [alone[0], *rows[2:]])
    with refused(InputError, "no time of other alone"):
        read_recordings(tmp_path)
    (tmp_path / "traces" / "other.kineto.json.gz").unlink()
    write(tmp_path, "processes", rows)
    with refused(InputError, "traces/other.kineto.json.gz"):
        read_recordings(tmp_path, load_gpu("h100-sxm"))


def test_workers_find_the_same(folder: Path) -> None:
    write(
        folder,
        "mixes",
        [scenario(f"mix{i}", [(0, 0.0, "k0"), (1, 10.0 * i, "k1")], [(4.0, 150.0)] * 2) for i in range(4)],
    )
    run = ValidationRun(read_recordings(folder), "h100-sxm")
    progress: list[float] = []
    alone, together = run.run(1), run.run(2, lambda done, share: progress.append(share))
    assert progress == [0.2, 0.4, 0.6, 0.8, 1.0]
    assert alone.launches["set"].value_counts().to_dict() == {"mixes": 8, "pairs": 2}
    assert alone.launches.equals(together.launches)


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("kernels", [kernel("k0"), kernel("k1", grid=0)], r"kernels\.jsonl\.gz, line 3: grid: Expected `int` >= 1"),
        (
            "kernels",
            [kernel("k0", solo={**kernel("k0")["solo"], "duration_us": 1e300})],
            r"line 2: solo\.duration_us: .* <= 1",
        ),
        ("kernels", [kernel("k0")], r"pairs\.jsonl\.gz: scenario pair0: unknown kernel 'k1'; 1 kernels"),
        ("pairs", [{**APART, "measured": APART["measured"][:1]}], r"scenario pair0: 2 launches, 1 measured, 2 ranges"),
        ("pairs", [{**APART, "launches": 3}], r"pairs\.jsonl\.gz, line 2: launches: Expected `array`"),
        (
            "pairs",
            [scenario("p", [(0, None, "k0")], [(4.0, 104.0)])],
            r"scenario p: launches\[0\]\.delay_us is null, but it is the first of stream 0",
        ),
        (
            "pairs",
            [scenario("p", [(0, 1e300, "k0")], [(4.0, 104.0)])],
            r"line 2: launches\[0\]\.delay_us: Expected `float` <= 1000000000000",
        ),
        ("pairs", [], r"pairs\.jsonl\.gz: has no rows"),
        ("model_pairs", [{"what": "pair", "mode": "streams"}], r"model_pairs\.jsonl\.gz, line 2: .*`fg`"),
    ],
)
def test_wrong_rows_are_named(folder: Path, name: str, rows: list[dict[str, Any]], message: str) -> None:
    write(folder, name, rows)
    with pytest.raises(InputError, match=message):
        read_recordings(folder)


def test_a_kernel_that_takes_eleven_days_is_named(folder: Path) -> None:
    long = kernel("k0")
    write(folder, "kernels", [{**long, "solo": {**long["solo"], "duration_us": 1e12}}, kernel("k1")])
    with refused(InputError, "k0 alone: 1 of 1 kernels would not have ended after 1e+09 us"):
        ValidationRun(read_recordings(folder), "h100-sxm").run(1)


def test_wrong_folders_and_files_are_named(folder: Path, tmp_path: Path) -> None:
    with refused(InputError, "nowhere"):
        read_recordings(tmp_path / "nowhere")
    (folder / "pairs.jsonl.gz").write_bytes(b"not gzip")
    with refused(InputError, "pairs.jsonl.gz, line 1", "JSON"):
        read_recordings(folder)
    (folder / "pairs.jsonl.gz").write_bytes(gzip.compress(b"{}")[:-4])
    with refused(InputError, "pairs.jsonl.gz", "truncated"):
        read_recordings(folder)
    (folder / "pairs.jsonl.gz").unlink()
    with refused(InputError, "model_pairs", "sequences"):
        read_recordings(folder)
    (folder / "kernels.jsonl.gz").unlink()
    with refused(InputError, "kernels.jsonl"):
        read_recordings(folder)


def test_a_line_that_is_no_json_is_named(folder: Path) -> None:
    (folder / "pairs.jsonl.gz").unlink()
    (folder / "pairs.jsonl").write_text(json.dumps(APART) + "\n{broken\n")
    with refused(InputError, "pairs.jsonl, line 2", "JSON"):
        read_recordings(folder)


def test_wrong_input_writes_nothing(validate: Callable[..., Result], folder: Path, tmp_path: Path) -> None:
    assert isinstance(validate("--gpu", "h101").exception, InputError)
    (folder / "pairs.jsonl.gz").write_bytes(b"not gzip")
    assert isinstance(validate().exception, InputError)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "v.json").exists()


def test_a_gpu_is_named_by_a_file_of_its_own_too(validate: Callable[..., Result], tmp_path: Path) -> None:
    shipped = (resources.files("gpusched_env.hardware") / "gpus" / "h100-sxm.yaml").read_text()
    own = tmp_path / "own.yaml"
    own.write_text(shipped.replace("name: h100-sxm", "name: my-h100"))
    result = validate("--gpu", str(own))
    assert result.exit_code == 0, result.output
    assert "OK: validation on my-h100: 3 of 3" in result.output


def test_a_gpu_without_instruction_costs_is_named(folder: Path) -> None:
    with refused(InputError, "a100-sxm", "costs"):
        ValidationRun(read_recordings(folder), "a100-sxm").run()


def test_scenarios_are_read_only_where_there_is_a_file(folder: Path) -> None:
    assert read_scenarios(folder, "mixes", read_kernels(folder)) is None


def test_limits_are_those_of_the_documentation() -> None:
    assert results.LIMITS["mixes"] == {"median": 0.022, "p90": 0.11, "makespan_median": 0.025}
    assert results.LIMITS["sequences"] == {"median": 0.03, "p90": 0.09, "makespan_median": 0.025}
    assert results.LIMITS["model_pairs"] == {"median": 0.07, "p90": 0.15}


@pytest.mark.slow
def test_networks_that_nobody_had_seen_are_predicted_within_the_limits() -> None:
    with resources.as_file(resources.files("gpusched_env.data") / "measurements/h100/unseen_networks") as recorded:
        found = ValidationRun(read_recordings(recorded), "h100-sxm").run()
    assert len(found.model_pairs) == 126
    errors, limits = found.networks["slowdown_error"], results.LIMITS["model_pairs"]
    assert errors["median"] <= limits["median"]
    assert errors["p90"] <= limits["p90"]

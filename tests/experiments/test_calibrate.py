"""Calibration: known constants come back, wrong folders are refused, results are stored as data."""

from __future__ import annotations

import functools
import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.experiments.calibrate.fit import CalibrationSamples, Gap, Sample, read_recordings
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.validate.recordings import Solo, SyntheticKernel
from gpusched_env.hardware.specs import Contention, Instructions, load_gpu
from tests.refusals import refused

if TYPE_CHECKING:
    from gpusched_env.experiments.calibrate import report
    from gpusched_env.experiments.calibrate.fit import FittedConstants

H100 = load_gpu("h100-sxm")
TRUE = {
    "fma_issue_us": 0.0009,
    "fma_latency_us": 0.0031,
    "load_issue_us": 0.02,
    "load_latency_us": 0.62,
    "block_us": 0.7,
    "dram_efficiency": 0.81,
}
ROW = {
    "spec": {"grid": 1, "block": 256, "smem": 0, "regs": 26, "flop_per_block": 13107200, "dram_bytes_per_block": 0},
    "start_us": 14.5,
    "end_us": 93.3,
    "block_us": 78.8,
    "block_us_p95": 78.9,
}
KERNEL = {
    "id": "k00",
    **ROW["spec"],  # type: ignore[dict-item]
    "solo": {"duration_us": 78.8, "block_us": 78.8, "block_us_p95": 78.9},
}
GAPS = [
    {"what": "same_stream_back_to_back", "n": 2, "device_gap_ns": 2080.0},
    {"what": "same_stream_back_to_back", "n": 8, "device_gap_ns": 2112.0},
    {"what": "same_stream_back_to_back", "n": 64, "device_gap_ns": 2208.0},
    {"what": "cross_stream_event_dependency_ns", "median": 3696.0},
]


def sample(fma: int, loads: int, grid: int, block: int, duration_us: float = 1.0) -> Sample:
    kernel = SyntheticKernel(
        id=f"{fma} {loads} {grid} {block}",
        grid=grid,
        block=block,
        smem=0,
        regs=26,
        flop_per_block=2.0 * fma * block,
        dram_bytes_per_block=16.0 * loads * block,
        solo=Solo(duration_us=duration_us, block_us=duration_us, block_us_p95=duration_us),
    )
    return Sample("kernels", kernel.id, kernel)


@functools.cache
def closed_form_samples() -> tuple[Sample, ...]:
    """Kernels of all kinds whose durations the closed form gave with :data:`TRUE`."""
    from gpusched_env.experiments.calibrate.fit import closed_form_us, footprints, with_constants

    shapes = [
        (fma, loads, grid, block)
        for fma, loads in ((60, 0), (6000, 0), (0, 4), (0, 200), (2000, 10), (300, 40))
        for grid in (1, 132, 500, 2000)
        for block in (64, 256, 1024)
    ]
    samples = [sample(*shape) for shape in shapes]
    truth = with_constants(H100, TRUE)
    durations = closed_form_us(samples, truth, footprints(samples, truth)).tolist()
    return tuple(sample(*shape, duration) for shape, duration in zip(shapes, durations, strict=True))


@functools.cache
def fitted(generic: bool = False) -> FittedConstants:
    """The fit to them, from the specification's costs or from generic ones."""
    from gpusched_env.experiments.calibrate.fit import fit

    gpu = msgspec.structs.replace(H100, instructions=None) if generic else H100
    return fit(closed_form_samples(), gpu, simulate=False)


def write(folder: Path, **files: list[object]) -> Path:
    content = {"waves": [ROW], "kernels": [KERNEL], "launch": GAPS, **files}
    folder.mkdir(exist_ok=True)
    for name, rows in content.items():
        if rows:
            (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in [{"gpu": "test"}, *rows]))
    return folder


@pytest.mark.parametrize("generic", [False, True], ids=["from the specification", "from generic costs"])
def test_constants_that_made_the_durations_come_back(generic: bool) -> None:
    from gpusched_env.experiments.calibrate.fit import FITTED

    result = fitted(generic)
    assert result.generic is generic
    for name in FITTED:
        assert result.value[name] == pytest.approx(TRUE[name], rel=0.01), name
    assert result.bounded == ()
    assert np.abs(result.after).max() < 0.005
    assert np.median(np.abs(result.before)) > 0.05
    assert result.gpu.instructions is not None
    assert result.gpu.instructions.fma_issue_us == result.value["fma_issue_us"]
    assert result.gpu.contention.dram_efficiency == result.value["dram_efficiency"]


def test_what_lone_kernels_do_not_show_keeps_its_value() -> None:
    result = fitted()
    assert result.gpu.instructions is not None
    assert H100.instructions is not None
    assert result.gpu.instructions.load_wait_us == H100.instructions.load_wait_us
    assert result.gpu.contention == msgspec.structs.replace(
        H100.contention, dram_efficiency=result.value["dram_efficiency"]
    )


def test_a_few_wrong_samples_hardly_move_the_fit() -> None:
    """Three of 72 durations doubled: the loss is linear out there."""
    from gpusched_env.experiments.calibrate.fit import fit

    samples = list(closed_form_samples())
    for i in (5, 30, 55):
        kernel = samples[i].kernel
        solo = msgspec.structs.replace(kernel.solo, duration_us=2.0 * kernel.solo.duration_us)
        samples[i] = Sample("kernels", kernel.id, msgspec.structs.replace(kernel, solo=solo))
    result = fit(samples, H100, simulate=False)
    for name in ("fma_issue_us", "fma_latency_us", "load_latency_us", "dram_efficiency"):
        assert result.value[name] == pytest.approx(TRUE[name], rel=0.05), name


def test_a_start_at_the_bound_of_the_efficiency_is_allowed() -> None:
    from gpusched_env.experiments.calibrate.fit import fit

    gpu = msgspec.structs.replace(H100, contention=Contention(dram_efficiency=1.0))
    result = fit(closed_form_samples(), gpu, simulate=False)
    assert result.start["dram_efficiency"] == 1.0
    assert result.value["dram_efficiency"] == pytest.approx(0.81, rel=0.01)


def test_the_simulator_with_true_constants_needs_no_change() -> None:
    """Single waves: simulated durations of the shipped constants lead back to them."""
    from gpusched_env.experiments.calibrate.fit import fit, simulated_us

    shapes = [(f, n, g, 256) for f, n in ((6000, 0), (60, 0), (0, 60), (0, 2), (2000, 10)) for g in (1, 132, 528)]
    durations = simulated_us([sample(*shape) for shape in shapes], H100).tolist()
    result = fit([sample(*shape, us) for shape, us in zip(shapes, durations, strict=True)], H100)
    for name in ("fma_latency_us", "load_latency_us", "block_us"):
        assert result.value[name] == pytest.approx(result.start[name], rel=0.01), name
    assert np.abs(result.after).max() < 0.01


def test_a_missing_kind_is_named() -> None:
    from gpusched_env.experiments.calibrate.fit import fit

    samples = [s for s in closed_form_samples() if s.kind != "memory"]
    with refused(InputError, "memory"):
        fit(samples, H100, simulate=False)


def test_standard_errors_count_a_family_once() -> None:
    """A mean of n equal-sized errors: 1/sqrt(n) if independent, as large as one if all go together."""
    from gpusched_env.experiments.calibrate.fit import standard_errors

    slopes = np.ones((100, 1))
    errors = np.where(np.arange(100) % 2 == 0, 1e-4, -1e-4)
    alone = standard_errors(slopes, errors, [str(i) for i in range(100)])
    assert alone[0] == pytest.approx(1e-5, rel=1e-3)
    together = standard_errors(slopes, np.abs(errors), ["same"] * 100)
    assert together[0] == pytest.approx(1e-4, rel=1e-3)


def test_generic_costs_stand_in_where_there_are_none() -> None:
    from gpusched_env.experiments.calibrate.fit import starting_gpu

    gpu = msgspec.structs.replace(H100, instructions=None, clock_mhz=1000.0)
    costs = starting_gpu(gpu).instructions
    assert costs == Instructions(
        fma_issue_us=0.001,
        fma_latency_us=0.004,
        load_issue_us=0.015,
        load_latency_us=0.6,
        load_wait_us=0.15,
        block_us=0.5,
    )
    assert starting_gpu(H100) is H100


def test_recordings_are_read(tmp_path: Path) -> None:
    recordings = read_recordings(write(tmp_path))
    assert [s.source for s in recordings.samples] == ["waves", "kernels"]
    assert recordings.samples[0].measured_us == pytest.approx(78.8)
    assert recordings.samples[0].kind == "compute"
    assert recordings.block_gap.value_us == 2.112
    # 1.2533 * 1.4826 * 0.032 us / sqrt(3): median absolute deviation 32 ns of three rows.
    assert recordings.block_gap.error_us == pytest.approx(0.03433, rel=1e-3)
    assert recordings.event_latency == Gap(3.696, None, 1)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"waves": [{**ROW, "spec": {**ROW["spec"], "grid": 0}}]}, "line 2: .*grid"),  # type: ignore[dict-item]
        ({"waves": []}, "has no waves.jsonl"),
        ({"waves": [], "launch": []}, "has no waves.jsonl, launch.jsonl"),
        ({"waves": [{k: v for k, v in ROW.items() if k != "block_us"}]}, "line 2: .*block_us"),
        ({"waves": [{**ROW, "end_us": 3.0}]}, "end_us 3.0 must be after start_us 14.5"),
        ({"kernels": [{**KERNEL, "flop_per_block": 0}]}, "kernel k00: flop_per_block and dram_bytes_per_block"),
        ({"launch": GAPS[:3]}, "no row with .*cross_stream_event_dependency_ns"),
        ({"launch": [{"what": "same_stream_back_to_back"}, GAPS[3]]}, "no positive device_gap_ns"),
    ],
)
def test_incomplete_recordings_are_refused(tmp_path: Path, files: dict[str, list[object]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_recordings(write(tmp_path, **files))


def test_a_missing_folder_is_an_input_error(tmp_path: Path) -> None:
    with refused(InputError, "nowhere"):
        read_recordings(tmp_path / "nowhere")


def summary(after: float) -> report.Calibration:
    from gpusched_env.experiments.calibrate import report
    from gpusched_env.experiments.calibrate.fit import FITTED, FittedConstants, with_constants

    samples = closed_form_samples()
    result = FittedConstants(
        gpu=with_constants(H100, TRUE),
        start=dict.fromkeys(FITTED, 0.5),
        value=TRUE,
        error=dict.fromkeys(FITTED, 0.001),
        before=np.full(len(samples), 0.2),
        after=np.full(len(samples), after),
        bounded=("block_us",),
        generic=False,
    )
    return report.Calibration(CalibrationSamples(samples, Gap(2.1, 0.01, 5), Gap(3.7, None, 1)), result, H100, "h100")


def test_the_fragment_fits_a_specification() -> None:
    fragment = yaml.safe_load(summary(0.01).as_yaml(date(2026, 1, 2)))
    assert msgspec.convert(fragment["instructions"], Instructions).load_latency_us == 0.62
    assert msgspec.convert(fragment["contention"], Contention).dram_efficiency == 0.81
    assert fragment["timing"] == {"event_latency_us": 3.7}
    assert fragment["fitted"]["date"] == "2026-01-02"
    assert fragment["fitted"]["rows"] == {"waves": 0, "kernels": 72, "launch": 6}
    assert fragment["fitted"]["residuals"]["after"] == {"median": 0.01, "p90": 0.01}


def test_the_verdict_follows_the_tolerance() -> None:
    assert summary(0.049).summary_line().startswith("OK: calibrate h100-sxm: ")
    assert summary(0.051).summary_line().startswith("FAILED: calibrate h100-sxm: ")


def test_the_command_writes_everything_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpusched_env.experiments.calibrate import report

    targets = [tmp_path / name for name in ("c.yaml", "c.json", "c.md")]
    options = [str(part) for pair in zip(("--out", "--json", "--docs"), targets, strict=True) for part in pair]
    command = ["lab", "calibrate", str(tmp_path / "nowhere"), "--gpu", "h100-sxm", "--overwrite", *options]
    assert isinstance(CliRunner().invoke(app, command).exception, InputError)
    assert not any(path.exists() for path in targets)
    for after, code in ((0.01, 0), (0.06, 1)):
        monkeypatch.setattr(report, "calibrate", lambda folder, gpu, after=after: summary(after))
        result = CliRunner().invoke(app, command)
        assert result.exit_code == code
        assert result.output.strip().splitlines()[-1] == summary(after).summary_line()
    data = json.loads(targets[1].read_text())
    assert data["holds"] is False
    assert data["constants"]["block_us"]["value"] == 0.7
    page = targets[2].read_text()
    assert "| memory | 1024 | 8 |" in page
    assert "block_us ended at a bound" in page
    assert yaml.safe_load(targets[0].read_text())["fitted"]["folder"] == "h100"

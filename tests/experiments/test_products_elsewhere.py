"""Kernels that others measured on several GPUs: reading such tables, and what carrying over is worth on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.validate.products import LINEAR, judged, pairs, read_measured, shipped, sustained_tflops
from tests.refusals import refused

HEADS = "OPName,Latency,Device,Kernel Name,Grid x,Grid y,Grid z,Block x,Block y,Block z,B,M,N,K"


def table(folder: Path, *rows: str, heads: str = HEADS) -> Path:
    path = folder / "table.csv"
    path.write_text("\n".join([heads, *rows]) + "\n")
    return path


def row(latency_ms: float, device: str, name: str = "ampere_sgemm_128x64_tn", side: int = 4096) -> str:
    return f"linear,{latency_ms},{device},{name},64,32,1,128,1,1,1,{side},{side},{side}"


def test_a_product_takes_longer_as_boards_sustain_less(tmp_path: Path) -> None:
    """A 40-GB A100 sustains 15.8 and an L4 8.82 TFLOP/s: 10 ms become 17.9; unchanged times are off by 44 %."""
    found = read_measured(table(tmp_path, row(10.0, "NVIDIA A100-PCIE-40GB"), row(17.9, "NVIDIA L4")))
    there = next(each for each in pairs(found) if each.gpu == "l4")
    assert (there.recorded_on, there.same_kernel) == ("a100-pcie-40gb", True)
    assert there.ratios["carried over"] == pytest.approx([1.0], abs=0.02)
    assert there.ratios["unchanged"] == pytest.approx([10.0 / 17.9])
    assert there.ratios["peaks"] == pytest.approx([10.0 / 17.9 * 108 * 1410 * 128 / (58 * 2040 * 256)])
    assert there.skill > 0.95


def test_another_kernel_of_the_same_product_is_judged_apart(tmp_path: Path) -> None:
    found = read_measured(table(tmp_path, row(10.0, "NVIDIA L4"), row(5.0, "Tesla T4", "volta_sgemm_128x64_tn")))
    assert [each.same_kernel for each in pairs(found)] == [False, False]


def test_gpus_that_are_not_known_are_left_out(tmp_path: Path) -> None:
    found = read_measured(table(tmp_path, row(10.0, "NVIDIA L4"), row(5.0, "Tesla P4")))
    assert [spec.name for spec in shipped(found).values()] == ["l4"]
    with refused(InputError, "NVIDIA L4", "Tesla P4"):
        raise_of(tmp_path / "table.csv")


def raise_of(path: Path) -> None:
    error = CliRunner().invoke(app, ["lab", "carry-over", "--kernels", str(path)]).exception
    assert error is not None
    raise error


@pytest.mark.parametrize(
    ("rows", "heads", "said"),
    [
        ((row(0.0, "NVIDIA L4"),), HEADS, ("line 2", "Latency")),
        ((row(1.0, ""),), HEADS, ("line 2", "Device")),
        ((row(1.0, "NVIDIA L4").replace(",64,", ",x,"),), HEADS, ("line 2", "Grid x")),
        ((row(1.0, "NVIDIA L4") + ",1",), HEADS, ("line 2", "15 values")),
        ((), HEADS.replace("Latency", "Time"), ("Latency",)),
    ],
)
def test_broken_tables_are_one_sentence(tmp_path: Path, rows: tuple[str, ...], heads: str, said: tuple[str]) -> None:
    with refused(InputError, "table.csv", *said):
        read_measured(table(tmp_path, *rows, heads=heads))


def test_the_command_needs_two_folders_or_a_table(tmp_path: Path) -> None:
    for given in ([], [str(tmp_path)]):
        assert isinstance(CliRunner().invoke(app, ["lab", "carry-over", *given]).exception, InputError)


def test_what_boards_sustain_is_what_their_specifications_say() -> None:
    """Of the shapes that are not judged."""
    measured = read_measured(LINEAR)
    for device, spec in shipped(measured).items():
        assert spec.matrix_rates is not None
        assert spec.matrix_rates.vector_tflops == pytest.approx(sustained_tflops(measured, device), rel=0.01)


def test_the_error_of_unchanged_times_is_gone_by_half_and_more() -> None:
    """Of the pairs that have a kernel in common, on shapes that say nothing of what boards sustain."""
    measured = read_measured(LINEAR)
    same = [each for each in pairs(measured, judged(measured)) if each.same_kernel]
    assert {(each.recorded_on, each.gpu) for each in same} >= {("v100-pcie", "t4"), ("a100-pcie-40gb", "l4")}
    assert min(each.skill for each in same) > 0.5
    assert np.median([each.error("carried over") for each in same]) < 0.1

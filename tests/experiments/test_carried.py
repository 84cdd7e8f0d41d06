"""Carrying recordings over to another GPU, held against recordings there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from typer.testing import CliRunner

from gpusched_env.errors import InputError
from gpusched_env.experiments.cli import app
from gpusched_env.experiments.validate.carried import (
    KERNEL_LIMIT,
    both_ways,
    by_length,
    carry_over_result,
    markdown,
    summary,
    within_limits,
)
from gpusched_env.experiments.validate.products import read_measured
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Op, OpKind, Variant, Workload, encode_workload, read_workload
from tests.refusals import refused

RECORDINGS = Path("gpusched_env/data/measurements")
"""Of the checkout."""


def recorded(gpu: str, *times_us: float, names: tuple[str, ...] = ("gemm", "relu")) -> Workload:
    """A network of kernels that wait for latencies alone, one launch each an iteration."""
    kernels = tuple(
        Kernel(
            name=name, grid=(8, 1, 1), block=(128, 1, 1), registers=32, shared_bytes=0, duration_us=time_us,
            kind="latency", dram_bytes=0.0,
        )
        for name, time_us in zip(names, times_us, strict=True)
    )  # fmt: skip
    ops = tuple(Op(kind=OpKind.KERNEL, index=i, host_us=1.0, duration_us=time) for i, time in enumerate(times_us))
    return Workload(
        name="net", gpu=gpu, kernels=kernels, variants=(Variant(ops=ops),), source="by hand", iteration_us=(30.0,)
    )


def test_a_kernel_that_waits_takes_as_long_where_the_clock_is_the_same() -> None:
    found = carry_over_result(recorded("h100-sxm", 10.0, 4.0), recorded("h200-sxm", 8.0, 4.0))
    assert (found.recorded_on, found.gpu, found.distinct) == ("h100-sxm", "h200-sxm", 2)
    assert found.unchanged.tolist() == [1.25, 1.0]
    np.testing.assert_allclose(found.kernels, [1.25, 1.0], rtol=2e-3)
    assert found.network_unchanged == pytest.approx(14.0 / 12.0)
    assert found.network_ratio == pytest.approx(14.0 / 12.0, rel=2e-3)


def test_a_kernel_that_fits_into_the_l2_does_not_gain_by_a_faster_dram() -> None:
    """Without counters, by class: 20 us at 30 % of the H100's bandwidth are 20 MB, 80 us are 80 MB; its L2 has 50."""

    def streams(gpu: str, *times_us: float, footprint_bytes: int = 0) -> Workload:
        workload = recorded(gpu, *times_us)
        kernels = [
            structs.replace(kernel, grid=(8192, 1, 1), kind="memory", dram_bytes=None) for kernel in workload.kernels
        ]
        return structs.replace(workload, kernels=tuple(kernels), footprint_bytes=footprint_bytes)

    there = streams("h200-sxm", 20.0, 80.0)
    found = carry_over_result(streams("h100-sxm", 20.0, 80.0, footprint_bytes=100_000_000), there)
    assert (found.uncached < 0.97).all()
    assert found.kernels[0] == pytest.approx(1.0, rel=1e-9)
    assert found.kernels[1] == found.uncached[1]
    assert found.network_uncached < found.network_ratio < found.network_unchanged == 1.0
    unknown = carry_over_result(streams("h100-sxm", 20.0, 80.0), there)
    assert unknown.kernels.tolist() == unknown.uncached.tolist() == found.uncached.tolist()


def test_only_kernels_that_both_have_are_compared() -> None:
    there = recorded("h200-sxm", 10.0, 3.0, names=("gemm", "gelu"))
    found = carry_over_result(recorded("h100-sxm", 10.0, 4.0), there)
    assert found.lengths_us.tolist() == [10.0]
    with refused(InputError, "h100-sxm", "h200-sxm"):
        carry_over_result(recorded("h100-sxm", 1.0, names=("a",)), recorded("h200-sxm", 1.0, names=("b",)))
    with refused(InputError, "h100-sxm", "recordings"):
        carry_over_result(recorded("h100-sxm", 1.0, 1.0), recorded("h100-sxm", 1.0, 1.0))


def test_it_goes_both_ways_and_is_judged_in_each() -> None:
    one, other = recorded("h100-sxm", 10.0, 4.0), recorded("h200-sxm", 10.3, 4.1)
    ways = [carry_over_result(one, other), carry_over_result(other, one)]
    assert within_limits(ways)
    rows = summary(ways).rows
    assert [(row[0], row[1], row[6]) for row in rows] == [
        (way, which, "holds")
        for way in ("h100-sxm to h200-sxm", "h200-sxm to h100-sxm")
        for which in ("kernels", "networks")
    ]
    assert [row[1] for row in by_length(ways).rows] == ["below 5 us", "5 to 20 us"] * 2
    longer = recorded("h200-sxm", *(time * (1.0 + 1.1 * KERNEL_LIMIT) for time in (10.0, 4.0)))
    assert not within_limits([carry_over_result(one, other), carry_over_result(longer, one)])


def test_the_command_writes_a_page_and_says_whether_errors_are_within_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    for folder, workload in (("a", recorded("h100-sxm", 10.0, 4.0)), ("b", recorded("h200-sxm", 20.0, 4.0))):
        Path(folder).mkdir()
        Path(folder, "net.workload.json").write_bytes(encode_workload(workload))
    done = CliRunner().invoke(app, ["lab", "carry-over", "a", "b", "--docs", "page.md"])
    assert (done.exit_code, "h100-sxm to h200-sxm" in done.output) == (1, True)
    assert "| net | h100-sxm to h200-sxm | 2 of 2 |" in Path("page.md").read_text()
    refused = CliRunner().invoke(app, ["lab", "carry-over", "a", "c"]).exception
    assert isinstance(refused, InputError)
    assert str(refused) == "a and c have no recording (*.workload.json*) of the same name"


def test_the_page_is_what_the_shipped_recordings_say() -> None:
    page = Path("docs/carry-over.md").read_text()
    command = page.split("```sh\n")[1].partition("\n")[0]
    *folders, table = (Path(part) for part in command.split() if part.startswith(str(RECORDINGS)))
    assert markdown(both_ways(*folders), read_measured(table), command) == page


def test_an_h100_and_an_h200_ran_the_same_networks() -> None:
    """The shipped recordings: what the page says is computed from these."""
    name = "lstm_infer_b16_t50.workload.json.gz"
    one = read_workload(RECORDINGS / "h100" / "unseen_networks" / "traces" / name)
    other = read_workload(RECORDINGS / "h200" / "traces" / name)
    found = carry_over_result(one, other)
    assert len(found.kernels) == found.distinct == 4
    assert found.network_ratio == pytest.approx(1.02, abs=0.01)

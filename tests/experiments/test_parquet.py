"""Parquet files: rows, units and descriptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gpusched_env.experiments.comparison import Comparison, FrameOf
from gpusched_env.experiments.report.save import write_parquet


def test_jobs_of_all_seeds(comparison: Comparison, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write_parquet(comparison.to_frame("jobs"), tmp_path / "jobs.parquet")
    table = pq.read_table(tmp_path / "jobs.parquet")
    assert table.num_rows == 2 * 3 * 2 * 4
    rows = [r for r in table.to_pylist() if (r["scheduler"], r["seed"], r["tenant"]) == ("eager", 2, "urgent")]
    assert [r["job"] for r in rows] == [0, 1, 2, 3]
    assert rows[1]["arrived_us"] == 100.0
    assert rows[1]["started_us"] == 110.0
    assert rows[1]["turnaround_us"] == 70.0
    assert rows[1]["slowdown"] == pytest.approx(70.0 / 210.0)


def test_kernels_of_the_recorded_seed(comparison: Comparison, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    write_parquet(comparison.to_frame("kernels"), tmp_path / "kernels.parquet")
    rows = pq.read_table(tmp_path / "kernels.parquet").to_pylist()
    assert len(rows) == 2 * 8
    assert {r["seed"] for r in rows} == {0}
    first = comparison.problem.kernels[0].kernel
    patient = [r for r in rows if r["scheduler"] == "patient"]
    assert patient[0]["name"] == first.name
    assert (patient[0]["grid_x"], patient[0]["block_x"]) == (first.grid[0], first.block[0])
    assert [r["stream_priority"] for r in patient[:2]] == [0, -1]
    assert patient[3]["ended_us"] == 170.0


@pytest.mark.parametrize("of", ["jobs", "kernels"])
def test_every_column_says_what_it_is(comparison: Comparison, tmp_path: Path, of: FrameOf) -> None:
    import pyarrow.parquet as pq

    write_parquet(comparison.to_frame(of), tmp_path / "x.parquet")
    for field in pq.read_schema(tmp_path / "x.parquet"):
        assert field.metadata[b"description"]
        if field.name.endswith("_us"):
            assert field.metadata[b"unit"] == b"us"


def test_without_completed_jobs_the_columns_remain(run_fake: Callable[..., Comparison], tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    comparison = run_fake("IdleDevice")
    write_parquet(comparison.to_frame("jobs"), tmp_path / "jobs.parquet")
    table = pq.read_table(tmp_path / "jobs.parquet")
    assert table.num_rows == 0
    assert "turnaround_us" in table.column_names

"""The folder of a comparison: report, tables, traces and ``result.json``, at once when complete."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.episodes.frames import MEANINGS
from gpusched_env.experiments.compared import ComparedRuns
from gpusched_env.experiments.lib import comparison_frames
from gpusched_env.experiments.lib.files import RESULT, TRACE_SUFFIX, ResultFolder, encoded, file_name
from gpusched_env.experiments.report.page import report_html
from gpusched_env.experiments.report.perfetto import write_trace
from gpusched_env.experiments.report.result import kept_name, result_of, sha256
from gpusched_env.scheduling.timeline import Columns

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


JOBS, KERNELS, TIMELINES = "jobs.parquet", "kernels.parquet", "timelines.npz"
"""The last holds timelines as they were recorded, for :func:`~gpusched_env.experiments.report.load.load_comparison`."""


def save_results(
    comparison: ComparedRuns, folder: Path | str, *, traces: bool = False, overwrite: bool = False
) -> list[str]:
    """See :meth:`~gpusched_env.experiments.comparison.Comparison.save`."""
    with ResultFolder(Path(folder), overwrite=overwrite) as results:
        files = write_results(comparison, results.staging, traces=traces)
        results.publish()
    return files


def write_results(comparison: ComparedRuns, folder: Path, *, traces: bool = False) -> list[str]:
    """Write everything into the existing ``folder``; returns the names of the files."""
    write_parquet(comparison_frames.jobs(comparison), folder / JOBS)
    recorded = [run for run in map(comparison.recorded, comparison.schedulers) if run is not None]
    if recorded:
        write_parquet(comparison_frames.kernels(comparison), folder / KERNELS)
        write_timelines(comparison, folder / TIMELINES)
    for name, data in comparison.own_workloads.items():
        (folder / kept_name(name, sha256(data))).write_bytes(data)
    for run in recorded if traces else ():
        write_trace(comparison, run, folder / f"{file_name(run.scheduler)}{TRACE_SUFFIX}")
    result = result_of(comparison)
    (folder / "report.html").write_text(report_html(comparison, result), encoding="utf-8")
    (folder / RESULT).write_bytes(encoded(result))
    return sorted(file.name for file in folder.iterdir())


def write_timelines(comparison: ComparedRuns, path: Path) -> None:
    """Every table of the recorded timelines but the blocks: arrays named by scheduler's number, table and part."""
    arrays: dict[str, Any] = {}
    for number, run in enumerate(map(comparison.recorded, comparison.schedulers)):
        tables = {} if run is None else vars(run.timeline)
        for name, table in tables.items():
            if isinstance(table, Columns) and name != "blocks":
                arrays[f"{number}.{name}.whole"] = table.exact
                arrays[f"{number}.{name}.floats"] = table.array[:, table.whole :]
    np.savez_compressed(path, **arrays)


def write_parquet(table: DataFrame, path: Path, meanings: Mapping[str, str] = MEANINGS) -> None:
    """A frame of :mod:`gpusched_env.episodes.frames`; fields say what they are and in which unit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pa.Table.from_pandas(table, preserve_index=False)
    fields = []
    for column in found.schema:
        unit = next(({"unit": unit} for unit in ("us", "bytes") if column.name.endswith(f"_{unit}")), {})
        fields.append(column.with_metadata({"description": meanings[column.name], **unit}))
    pq.write_table(found.cast(pa.schema(fields, found.schema.metadata)), path, compression="zstd")

"""The folder of a comparison: report, tables, traces and ``result.json``, at once when complete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.files import RESULT, TRACE_SUFFIX, ResultFolder, encoded, file_name
from gpusched_env.experiments.report.page import report_html
from gpusched_env.experiments.report.perfetto import write_trace
from gpusched_env.experiments.report.result import result_dict
from gpusched_env.scheduling.frames import MEANINGS

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


def save_results(comparison: Comparison, folder: Path | str, *, traces: bool = False) -> list[str]:
    """See :meth:`~gpusched_env.experiments.comparison.Comparison.save`."""
    with ResultFolder(Path(folder)) as results:
        files = write_results(comparison, results.staging, traces=traces)
        results.publish()
    return files


def write_results(comparison: Comparison, folder: Path, *, traces: bool = False) -> list[str]:
    """Write everything into the existing ``folder``; returns the names of the files."""
    write_parquet(comparison.to_frame("jobs"), folder / "jobs.parquet")
    recorded = [run for run in map(comparison.recorded, comparison.schedulers) if run is not None]
    if recorded:
        write_parquet(comparison.to_frame("kernels"), folder / "kernels.parquet")
    for run in recorded if traces else ():
        write_trace(comparison, run, folder / f"{file_name(run.scheduler)}{TRACE_SUFFIX}")
    result = result_dict(comparison)
    (folder / "report.html").write_text(report_html(comparison, result), encoding="utf-8")
    (folder / RESULT).write_bytes(encoded(result))
    return sorted(file.name for file in folder.iterdir())


def write_parquet(table: DataFrame, path: Path) -> None:
    """A frame of :mod:`gpusched_env.scheduling.frames`; fields say what they are and in which unit."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = pa.Table.from_pandas(table, preserve_index=False)
    fields = []
    for column in found.schema:
        unit = next(({"unit": unit} for unit in ("us", "bytes") if column.name.endswith(f"_{unit}")), {})
        fields.append(column.with_metadata({"description": MEANINGS[column.name], **unit}))
    pq.write_table(found.cast(pa.schema(fields, found.schema.metadata)), path, compression="zstd")

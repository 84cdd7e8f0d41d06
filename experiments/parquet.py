"""Jobs and kernels as Parquet: one row each, units in column names, descriptions in the field metadata."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gpusched_env.experiments.comparison import Comparison

_TEXT = pa.dictionary(pa.int32(), pa.string())


def write_jobs(comparison: Comparison, path: Path) -> None:
    """Completed jobs of all seeds and schedulers."""
    tables = []
    alone_us = np.array([program.alone_us for program in comparison.problem.programs])
    for run in comparison.runs:
        tenant, job, arrived, started, completed = run.jobs.T
        rows = tenant.astype(np.int64)
        tables.append(
            _table(
                _column("scheduler", _TEXT, _repeat([run.scheduler], len(rows)), "scheduler"),
                _column("seed", pa.int64(), np.full(len(rows), run.seed), "seed of the episode"),
                _column("tenant", _TEXT, _pick(comparison.tenants, rows), "name of the tenant"),
                _column("job", pa.int64(), job.astype(np.int64), "number of the job within its tenant, from 0"),
                _column("arrived_us", pa.float64(), arrived, "arrival, since the start of the episode", "us"),
                _column("started_us", pa.float64(), started, "when the tenant's host took it up", "us"),
                _column("completed_us", pa.float64(), completed, "end of its last operation", "us"),
                _column("turnaround_us", pa.float64(), completed - arrived, "completion minus arrival", "us"),
                _column(
                    "slowdown", pa.float64(), (completed - arrived) / alone_us[rows], "turnaround over turnaround alone"
                ),
            )
        )
    _write(tables, path)


def write_kernels(comparison: Comparison, path: Path) -> None:
    """Finished kernels of the recorded seed of every scheduler; no rows without a recorded one."""
    kernels = [profile.kernel for profile in comparison.problem.kernels]
    names = [kernel.name for kernel in kernels]
    shapes = np.array([(*k.grid, *k.block, k.registers, k.shared_bytes) for k in kernels], dtype=np.int64)
    tables = []
    recorded = [comparison.recorded(name) for name in comparison.schedulers]
    for run in filter(None, recorded):
        assert run.timeline is not None
        data = run.timeline.kernels.dict()
        identity = data["identity"].astype(np.int64)
        count = len(identity)
        columns = [
            _column("scheduler", _TEXT, _repeat([run.scheduler], count), "scheduler"),
            _column("seed", pa.int64(), np.full(count, run.seed), "seed of the episode"),
            _column("tenant", _TEXT, _pick(comparison.tenants, data["tenant"].astype(np.int64)), "name of the tenant"),
            _column("job", pa.int64(), data["job"].astype(np.int64), "number of the job within its tenant"),
            _column("launch_id", pa.int64(), data["id"].astype(np.int64), "order of issue in the episode"),
            _column("name", _TEXT, _pick(names, identity), "kernel function"),
        ]
        for i, part in enumerate(("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")):
            what = "blocks of the grid" if part.startswith("grid") else "threads of a block"
            columns.append(_column(part, pa.int64(), shapes[identity, i], f"{what} in this dimension"))
        columns += [
            _column("registers", pa.int64(), shapes[identity, 6], "registers a thread"),
            _column("shared_bytes", pa.int64(), shapes[identity, 7], "shared memory a block", "bytes"),
            _column("issued_us", pa.float64(), data["issued_us"], "the host issued it", "us"),
            _column("launched_us", pa.float64(), data["launched_us"], "the scheduler launched it", "us"),
            _column("started_us", pa.float64(), data["started_us"], "start of its first block", "us"),
            _column("ended_us", pa.float64(), data["ended_us"], "end of its last block", "us"),
            _column("stream_priority", pa.int64(), data["stream_priority"].astype(np.int64), "0, or negative: urgent"),
            _column("preemptions", pa.int64(), data["preemptions"].astype(np.int64), "times it was preempted"),
        ]
        tables.append(_table(*columns))
    _write(tables, path)


def _column(name: str, kind: pa.DataType, values: Any, text: str, unit: str = "") -> tuple[pa.Field, Any]:
    metadata = {"description": text} | ({"unit": unit} if unit else {})
    return pa.field(name, kind, nullable=False, metadata=metadata), values


def _table(*columns: tuple[pa.Field, Any]) -> pa.Table:
    schema = pa.schema([field for field, _ in columns])
    return pa.Table.from_arrays([pa.array(values, field.type) for field, values in columns], schema=schema)


def _pick(names: Sequence[str], rows: NDArray[np.int64]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(rows, pa.int32()), pa.array(names, pa.string()))


def _repeat(names: Sequence[str], count: int) -> pa.DictionaryArray:
    return _pick(names, np.zeros(count, np.int64))


def _write(tables: Sequence[pa.Table], path: Path) -> None:
    """One file; an empty list leaves a table without columns."""
    whole = pa.concat_tables(tables).unify_dictionaries() if tables else pa.table({})
    pq.write_table(whole, path, compression="zstd")

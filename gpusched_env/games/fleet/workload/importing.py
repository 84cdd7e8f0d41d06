"""Jobs of published traces: tables of Alibaba's PAI trace (``cluster-trace-gpu-v2020``) and Microsoft's Philly trace.

What the tables do not say (SLOs, lengths of batches and iterations, with Philly also memory) is as in
:mod:`gpusched_env.games.fleet.workload.jobs`. As in GPUColo (ICDCS 2024, Section 6), jobs that failed or have no
utilisation or memory on the GPU are dropped, those above 100 % or 32 GB are split into parts of at most that, and what
uses 20 % of a GPU or runs for 50,000 s is training (the public code of a simulator whose content matches the paper).
Jobs without a start, an end or a time in between are dropped too. Philly's dates are taken as they stand, as UTC: the
log names no zone, and a day has 24 hours in it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.workload.jobs import BATCH_US, ITERATION_US, JOB, MOST_GB, SLO_STRETCH
from gpusched_env.reading import decoded, read_bytes, table_rows

INSTANCES: Final = (
    "job_name", "task_name", "inst_name", "worker_name", "inst_id", "status", "start_time", "end_time", "machine",
)  # fmt: skip
SENSORS: Final = (
    "job_name", "task_name", "worker_name", "inst_id", "machine", "gpu_name", "cpu_usage", "gpu_wrk_util", "avg_mem",
    "max_mem", "avg_gpu_wrk_mem", "max_gpu_wrk_mem", "read", "write", "read_count", "write_count",
)  # fmt: skip
"""Columns of the tables, which have no line of names."""
TRAINING_UTILISATION, TRAINING_S = 0.20, 50_000.0
MOST_GPUS: Final = 64
"""GPUs that one instance uses, at most."""
LATEST_S: Final = 1e10
"""Latest time in a trace: 317 years."""


class ImportedJobs:
    """Jobs of a trace while they are read, and how many of it are none of a fleet."""

    def __init__(self) -> None:
        self.jobs: list[tuple[float, float, float, float]] = []
        """Start and length in seconds, utilisation and memory in GB."""
        self.left_out: Counter[str] = Counter()
        """Jobs that are left out, by reason."""

    def add(
        self, where: str, start_s: float, end_s: float, utilisation: float, memory_gb: float, gpus: int = 1
    ) -> None:
        """A job on so many GPUs, with as much on each."""
        if end_s < start_s:
            raise InputError(f"{where}: end_time lies before start_time, by {start_s - end_s:g} s")
        if end_s == start_s:
            self.left_out["took no time"] += 1
        self.jobs += [(start_s, end_s - start_s, utilisation, memory_gb)] * (gpus if end_s > start_s else 0)

    def said(self) -> str:
        """What was left out, in words; empty: nothing was."""
        counts = ", ".join(f"{count} that {reason}" for reason, count in self.left_out.items())
        return f"left out: {counts}" if counts else ""

    def table(self, where: str) -> NDArray[np.void]:
        """The jobs in order of arrival, the first at 0."""
        if not self.jobs:
            raise InputError(f"{where}: no job that ended well and used a GPU; {self.said() or 'it is empty'}")
        rows = np.array(sorted(self.jobs))
        parts = np.ceil(np.maximum(rows[:, 2], rows[:, 3] / MOST_GB) - 1e-9).clip(1).astype(np.int64)
        training = (rows[:, 2] > TRAINING_UTILISATION) | (rows[:, 1] > TRAINING_S)
        table = np.zeros(len(rows), JOB)
        table["arrival_us"] = np.round((rows[:, 0] - rows[0, 0]) * 1e6)
        table["work_us"] = rows[:, 1] * 1e6
        table["utilisation"], table["memory_gb"] = rows[:, 2] / parts, rows[:, 3] / parts
        table["training"] = training
        table["step_us"] = np.where(training, sum(ITERATION_US) / 2.0, BATCH_US)
        table["slo_us"] = np.where(training, 0.0, BATCH_US * SLO_STRETCH)
        return np.repeat(table, parts)


def read_pai(instances: Path, sensors: Path, imported: ImportedJobs | None = None) -> NDArray[np.void]:
    """Jobs of ``pai_instance_table.csv`` and ``pai_sensor_table.csv``, (jobs,) in order of arrival; the first at 0.

    Args:
        instances: the table of instances.
        sensors: the table of what they used.
        imported: what was read; says afterwards what was left out.

    Raises:
        InputError: a file cannot be read, or a line of it is broken; names file, line and field.
    """
    used: dict[str, tuple[float, float]] = {}
    for where, row in _rows(sensors, SENSORS):
        utilisation = _number(where, row, "gpu_wrk_util", 100.0 * MOST_GPUS) / 100.0
        used[row["worker_name"]] = utilisation, _number(where, row, "avg_gpu_wrk_mem", MOST_GB * MOST_GPUS)
    found = imported or ImportedJobs()
    for where, row in _rows(instances, INSTANCES):
        utilisation, memory_gb = used.get(row["worker_name"], (0.0, 0.0))
        if row["status"] != "Terminated":
            found.left_out["did not end well"] += 1
        elif utilisation == 0.0 or memory_gb == 0.0:
            found.left_out["used no GPU"] += 1
        elif not (row["start_time"] and row["end_time"]):
            found.left_out["have no start or end"] += 1
        else:
            start_s, end_s = (_number(where, row, field, LATEST_S) for field in ("start_time", "end_time"))
            found.add(where, start_s, end_s, utilisation, memory_gb)
    return found.table(str(instances))


class _Machine(msgspec.Struct):
    gpus: list[str]


class _Attempt(msgspec.Struct):
    detail: list[_Machine]
    start_time: str | None = None
    end_time: str | None = None


class _Job(msgspec.Struct):
    status: str
    attempts: list[_Attempt]


def read_philly(
    jobs: Path, utilisation: float = 0.5, memory_gb: float = 8.0, imported: ImportedJobs | None = None
) -> NDArray[np.void]:
    """Jobs of ``cluster_job_log`` (JSON), the last attempt of each that passed, a part for each of its GPUs.

    Args:
        jobs: the file.
        utilisation: of each, in (0, 1]: the trace has it by machine and minute only.
        memory_gb: of each; it is not in the trace.
        imported: what was read; says afterwards what was left out.

    Raises:
        InputError: the file cannot be read, or a job of it is broken; names file, job and field.
    """
    found = imported or ImportedJobs()
    for number, job in enumerate(decoded(read_bytes(jobs), list[_Job], str(jobs))):
        where = f"{jobs}: job {number}"
        attempt = job.attempts[-1] if job.attempts else None
        if job.status != "Pass":
            found.left_out["did not pass"] += 1
        elif attempt is None or not _dated(attempt.start_time) or not _dated(attempt.end_time):
            found.left_out["have no start or end"] += 1
        elif not (gpus := sum(len(machine.gpus) for machine in attempt.detail)):
            found.left_out["used no GPU"] += 1
        else:
            start_s, end_s = _seconds(where, attempt.start_time), _seconds(where, attempt.end_time)
            found.add(where, start_s, end_s, utilisation, memory_gb, gpus)
    return found.table(str(jobs))


def _dated(date: str | None) -> bool:
    return date not in (None, "", "None")


def _seconds(where: str, date: str | None) -> float:
    """A date of Philly's log, in whatever zone the log is."""
    try:
        return datetime.strptime(str(date), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise InputError(f"{where}: start_time and end_time must be like 2017-10-07 01:01:59 ({error})") from error


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Lines of a table, each with its place."""
    for line, cells in table_rows(read_bytes(path), str(path)):
        if line == 1 and tuple(cells) == columns:
            continue
        if len(cells) != len(columns):
            raise InputError(
                f"{path}: line {line} has {len(cells)} fields, must have {len(columns)}: {', '.join(columns)}"
            )
        yield f"{path}: line {line}", dict(zip(columns, cells, strict=True))


def _number(where: str, row: dict[str, str], field: str, most: float) -> float:
    """A field that is a number from 0 to ``most``; 0 where it is empty."""
    try:
        value = float(row[field] or 0.0)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= most:
        raise InputError(f"{where}: {field} is {row[field][:40]!r}, must be a number from 0 to {most:g}")
    return value

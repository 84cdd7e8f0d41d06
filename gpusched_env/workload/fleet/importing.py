"""Jobs of published traces: tables of Alibaba's PAI trace (``cluster-trace-gpu-v2020``) and Microsoft's Philly trace.

What the tables do not say (SLOs, lengths of batches and iterations, with Philly also memory) is as in
:mod:`gpusched_env.workload.fleet.generated`. As in GPUColo (ICDCS 2024, Section 6), jobs that failed or have no
utilisation or memory on the GPU are dropped, those above 100 % or 32 GB are split into parts of at most that, and what
uses 20 % of a GPU or runs for 50,000 s is training (the public code of a simulator whose content matches the paper).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.reading import read_bytes
from gpusched_env.workload.fleet.generated import BATCH_US, ITERATION_US, MOST_GB, SLO_STRETCH
from gpusched_env.workload.fleet.jobs import JOB

INSTANCES: Final = (
    "job_name", "task_name", "inst_name", "worker_name", "inst_id", "status", "start_time", "end_time", "machine",
)  # fmt: skip
SENSORS: Final = (
    "job_name", "task_name", "worker_name", "inst_id", "machine", "gpu_name", "cpu_usage", "gpu_wrk_util", "avg_mem",
    "max_mem", "avg_gpu_wrk_mem", "max_gpu_wrk_mem", "read", "write", "read_count", "write_count",
)  # fmt: skip
"""Columns of the tables, which have no line of names."""
TRAINING_UTILISATION, TRAINING_S = 0.20, 50_000.0


def read_pai(instances: Path, sensors: Path) -> NDArray[np.void]:
    """Jobs of ``pai_instance_table.csv`` and ``pai_sensor_table.csv``, (jobs,) in order of arrival; the first at 0.

    Raises:
        InputError: a file cannot be read, or a line of it is broken; names file, line and field.
    """
    used: dict[str, tuple[float, float]] = {}
    for where, row in _rows(sensors, SENSORS):
        found = _number(where, row, "gpu_wrk_util") / 100.0, _number(where, row, "avg_gpu_wrk_mem")
        used[row["worker_name"]] = found
    jobs: list[tuple[float, float, float, float]] = []
    for where, row in _rows(instances, INSTANCES):
        utilisation, memory_gb = used.get(row["worker_name"], (0.0, 0.0))
        if row["status"] != "Terminated" or utilisation == 0.0 or memory_gb == 0.0:
            continue
        start_s, end_s = _number(where, row, "start_time"), _number(where, row, "end_time")
        if end_s < start_s:
            raise InputError(f"{where}: end_time is {end_s:g}, before start_time {start_s:g}")
        jobs.append((start_s, end_s - start_s, utilisation, memory_gb))
    return _table(jobs, str(instances))


def read_philly(jobs: Path, utilisation: float = 0.5, memory_gb: float = 8.0) -> NDArray[np.void]:
    """Jobs of ``cluster_job_log`` (JSON), the last attempt of each that passed, a part for each of its GPUs.

    Args:
        jobs: the file.
        utilisation: of each, in (0, 1]: the trace has it by machine and minute only.
        memory_gb: of each; it is not in the trace.

    Raises:
        InputError: the file cannot be read, or a job of it is broken; names file, job and field.
    """
    try:
        rows: Any = msgspec.json.decode(read_bytes(jobs))
    except msgspec.DecodeError as error:
        raise InputError(f"{jobs}: no JSON ({error})") from error
    if not isinstance(rows, list):
        raise InputError(f"{jobs}: must be a list of jobs, as in Philly's cluster_job_log")
    found: list[tuple[float, float, float, float]] = []
    for number, row in enumerate(rows):
        where = f"{jobs}: job {number}"
        try:
            if row["status"] != "Pass" or not row["attempts"]:
                continue
            attempt = row["attempts"][-1]
            start_s, end_s = (
                datetime.strptime(attempt[field], "%Y-%m-%d %H:%M:%S").timestamp()
                for field in ("start_time", "end_time")
            )
            gpus = sum(len(machine["gpus"]) for machine in attempt["detail"])
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise InputError(f"{where}: field {error} is missing or of another kind, see Philly's README") from error
        except ValueError as error:
            raise InputError(f"{where}: start_time and end_time must be like 2017-10-07 01:01:59 ({error})") from error
        if end_s < start_s:
            raise InputError(f"{where}: end_time lies before start_time")
        found += [(start_s, end_s - start_s, utilisation, memory_gb)] * gpus
    return _table(found, str(jobs))


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    """Lines of a table, each with its place."""
    text = io.StringIO(read_bytes(path).decode("utf-8", "replace"), newline="")
    for line, cells in enumerate(csv.reader(text), start=1):
        if line == 1 and tuple(cells) == columns:
            continue
        if len(cells) != len(columns):
            raise InputError(
                f"{path}: line {line} has {len(cells)} fields, must have {len(columns)}: {', '.join(columns)}"
            )
        yield f"{path}: line {line}", dict(zip(columns, cells, strict=True))


def _number(where: str, row: dict[str, str], field: str) -> float:
    """A field that is a number of at least 0; 0 where it is empty."""
    try:
        value = float(row[field] or 0.0)
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise InputError(f"{where}: {field} is {row[field]!r}, must be a number of at least 0")
    return value


def _table(jobs: list[tuple[float, float, float, float]], where: str) -> NDArray[np.void]:
    """Of start and length in seconds, utilisation and memory."""
    if not jobs:
        raise InputError(f"{where}: no job that ended well and used a GPU")
    rows = np.array(sorted(jobs))
    rows = rows[rows[:, 1] > 0.0]
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

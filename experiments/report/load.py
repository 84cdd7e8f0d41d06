"""A comparison again, from the folder that it was saved in: its figures are those of the file, nothing is simulated."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import msgspec
import numpy as np

from gpusched_env.episodes.metrics import Metrics
from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.files import RESULT, read_struct
from gpusched_env.experiments.report.result import SCHEMA, Result, kept_name, sha256
from gpusched_env.experiments.report.save import JOBS, TIMELINES
from gpusched_env.reading import read_bytes
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scheduling.timeline import Columns, Timeline
from gpusched_env.workload.workload import decode_workload

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


def load_comparison(folder: Path | str) -> Comparison:
    """What ``gpusched compare`` or :meth:`Comparison.save` wrote to ``folder``.

    Figures, intervals, differences, jobs, kernels and charts are as they were; what ran on every SM within the window
    is in the report alone.

    Raises:
        InputError: a file is missing, damaged or of another version.
    """
    folder = Path(folder)
    how = "load the folder that gpusched compare or Comparison.save wrote"
    found = read_struct(folder / RESULT, Result, SCHEMA, "not a comparison", how)
    workloads = {
        name: kept_workload(folder / kept_name(name, digest), digest) for name, digest in found.workloads.items()
    }
    read = {name: decode_workload(data, name) for name, data in workloads.items()}
    episodes = {name: scheduler.per_seed for name, scheduler in found.schedulers.items()}
    try:
        runs = runs_of(episodes, _jobs(folder), _timelines(folder / TIMELINES, list(episodes)), found.seeds[0])
    except (ValueError, LookupError, OSError, EOFError, RuntimeError, BadZipFile, zlib.error) as error:
        raise InputError(f"{folder}: damaged or incomplete ({error}); {how}") from error
    about = found.provenance
    return Comparison(
        problem=build_problem(found.scenario, gpu=found.gpu, workloads=read),
        device=found.device,
        descriptions={n: found.schedulers[n].description if n in found.schedulers else "" for n in found.asked},
        seeds=tuple(found.seeds),
        runs=tuple(runs),
        interrupted=found.interrupted,
        started=about.started,
        wall_s=about.wall_s,
        command=about.command,
        window_us=found.window_us,
        clairvoyant=frozenset(name for name, scheduler in found.schedulers.items() if scheduler.clairvoyant),
        own_workloads=workloads,
        versions=about.versions,
        platform=about.platform,
    )


def kept_workload(file: Path, digest: str) -> bytes:
    """A workload's file that was kept with a result.

    Raises:
        InputError: it is missing, or another.
    """
    data = read_bytes(file)
    if sha256(data) != digest:
        raise InputError(f"{file}: is not the workload that was compared (SHA-256 {digest[:12]}... is)")
    return data


def runs_of(
    episodes: Mapping[str, Sequence[dict[str, Any]]], jobs: DataFrame, timelines: Mapping[str, Timeline], recorded: int
) -> list[Run]:
    """Runs as they were.

    Args:
        episodes: by scheduler, the figures of every seed, as ``result.json`` has them.
        jobs: the frame of completed jobs.
        timelines: by scheduler, of the seed ``recorded``.
    """
    jobs = jobs.assign(tenant=jobs["tenant"].cat.codes)
    columns = jobs[["tenant", "job", "arrived_us", "started_us", "completed_us"]].to_numpy(np.float64)
    of = {key: columns[rows] for key, rows in jobs.groupby(["scheduler", "seed"], observed=True).indices.items()}
    return [
        Run(
            scheduler=name,
            seed=episode["seed"],
            metrics=msgspec.convert(_with_nan(episode), Metrics),
            jobs=of.get((name, episode["seed"]), columns[:0]),
            timeline=timelines.get(name) if episode["seed"] == recorded else None,
            wall_s=episode["wall_s"],
        )
        for name, per_seed in episodes.items()
        for episode in per_seed
    ]


def _jobs(folder: Path) -> DataFrame:
    from pandas import read_parquet

    return read_parquet(folder / JOBS)


def _timelines(file: Path, schedulers: list[str]) -> dict[str, Timeline]:
    """By scheduler, if kernels were recorded."""
    if not file.exists():
        return {}
    with file.open("rb") as opened, np.load(opened) as arrays:
        found: dict[str, Timeline] = {}
        for key in arrays.files:
            number, table, part = key.split(".")
            if part == "whole":
                timeline = found.setdefault(schedulers[int(number)], Timeline("kernels"))
                columns: Columns = getattr(timeline, table)
                columns.extend(arrays[key], arrays[f"{number}.{table}.floats"])
    return found


def _with_nan(value: Any) -> Any:
    """Undefined figures are ``None`` in the file."""
    if isinstance(value, dict):
        return {key: _with_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_nan(inner) for inner in value]
    return math.nan if value is None else value

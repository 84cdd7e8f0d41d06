"""A comparison again, from the folder that it was saved in: its figures are those of the file, nothing is simulated."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.episodes.metrics import Metrics
from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.files import MOST, RESULT, read_struct
from gpusched_env.experiments.report.result import SCHEMA, Provenance, Result, kept_name, sha256
from gpusched_env.experiments.report.save import JOBS, TIMELINES
from gpusched_env.reading import check_unzipped, opened, read_bytes
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.timeline import Columns, Timeline
from gpusched_env.workload.workload import Workload, decode_workload

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
    workloads, read = kept_workloads(folder, found.workloads)
    problem = build_problem(found.scenario, gpu=found.gpu, workloads=read)
    episodes = {name: scheduler.per_seed for name, scheduler in found.schedulers.items()}
    with whole(folder, how):
        timelines = _timelines(folder / TIMELINES, list(episodes))
        runs = runs_of(episodes, read_jobs(folder / JOBS), timelines, found.seeds[0])
        check_runs(runs, problem, found.asked, found.seeds)
    return comparison_of(
        found.provenance,
        problem=problem,
        device=found.device,
        descriptions={n: found.schedulers[n].description if n in found.schedulers else "" for n in found.asked},
        seeds=tuple(found.seeds),
        runs=tuple(runs),
        interrupted=found.interrupted,
        window_us=found.window_us,
        clairvoyant=frozenset(name for name, scheduler in found.schedulers.items() if scheduler.clairvoyant),
        own_workloads=workloads,
    )


def comparison_of(about: Provenance, **fields: Any) -> Comparison:
    """A comparison that was made as ``about`` says."""
    return Comparison(
        **fields,
        started=about.started,
        wall_s=about.wall_s,
        command=about.command,
        versions=about.versions,
        platform=about.platform,
        made=about.made,
    )


@contextlib.contextmanager
def whole(folder: Path, how: str) -> Iterator[None]:
    """Whatever damaged files lead to is one error; ``how`` says what would be right.

    Raises:
        InputError: anything else was raised.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{folder}: damaged or incomplete ({error}); {how}") from error


def kept_workloads(folder: Path, digests: Mapping[str, str]) -> tuple[dict[str, bytes], dict[str, Workload]]:
    """The workloads' files that were kept with a result, by name: as they are, and read.

    Raises:
        InputError: one is missing, or another.
    """
    found = {}
    for name, digest in digests.items():
        file = folder / kept_name(name, digest)
        found[name] = read_bytes(file)
        if sha256(found[name]) != digest:
            raise InputError(f"{file}: is not the workload that was compared (SHA-256 {digest[:12]}... is)")
    return found, {name: decode_workload(data, name) for name, data in found.items()}


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


def check_runs(runs: Sequence[Run], problem: Problem, schedulers: Collection[str], seeds: Collection[int]) -> None:
    """Whether runs are of a problem, so that whatever is made of them finds what it looks for.

    Args:
        runs: as they were read.
        problem: they should be of.
        schedulers, seeds: that were asked for.

    Raises:
        ValueError: what is not.
    """
    names = [program.tenant.name for program in problem.programs]
    if len({(run.scheduler, run.seed) for run in runs}) < len(runs):
        raise ValueError("an episode is there twice")
    for run in runs:
        who = f"{run.scheduler}, seed {run.seed}"
        if run.scheduler not in schedulers or run.seed not in seeds:
            raise ValueError(f"{who}: was not asked for")
        if [tenant.name for tenant in run.metrics.tenants] != names:
            raise ValueError(f"{who}: its figures are of other tenants")
        jobs = [int((run.jobs[:, 0] == row).sum()) for row in range(len(names))]
        if jobs != [tenant.completed for tenant in run.metrics.tenants] or sum(jobs) < len(run.jobs):
            raise ValueError(f"{who}: it completed other jobs than {JOBS} has")
        if run.timeline is not None:
            _check_timeline(run.timeline, len(names), len(problem.kernels), who)


def _check_timeline(timeline: Timeline, tenants: int, kernels: int, who: str) -> None:
    ends = {"tenant": tenants, "context": tenants, "identity": kernels}
    for name, table in vars(timeline).items():
        for column in ends.keys() & set(table.names) if isinstance(table, Columns) else ():
            found, first = table.ps(column), -1 if column == "context" else 0
            if ((found < first) | (found >= ends[column])).any():
                raise ValueError(f"{who}: its {name} have a {column} that is not there")


JOB_COLUMNS = ("scheduler", "seed", "tenant", "job", "arrived_us", "started_us", "completed_us")
MOST_ROWS = 2**24
"""Most rows of a small file: a row takes more than a quarter of a byte there."""


def read_jobs(path: Path, *more: str) -> DataFrame:
    """The frame of completed jobs that was saved: :data:`JOB_COLUMNS`, and ``more`` of them.

    Raises:
        InputError: it cannot be read, or has more rows than a file of its size can have.
        Exception: of pyarrow and pandas, which have many.
    """
    from pyarrow.parquet import ParquetFile

    with opened(path) as file:
        table = ParquetFile(file)
        rows, most = table.metadata.num_rows, max(MOST_ROWS, 4 * path.stat().st_size)
        if rows > most:
            raise InputError(f"{path}: {rows} rows, must be at most {most}")
        return table.read([*JOB_COLUMNS, *more]).to_pandas()


def _timelines(file: Path, schedulers: list[str]) -> dict[str, Timeline]:
    """The timelines by scheduler, if kernels were recorded."""
    if not file.exists():
        return {}
    found: dict[str, Timeline] = {}
    with opened(file) as opened_file:
        if not is_zipfile(opened_file):
            raise InputError(f"{file}: damaged or incomplete (no archive)")
        opened_file.seek(0)
        arrays = np.load(opened_file)
        check_unzipped(arrays.zip, file.stat().st_size, str(file))
        for key in arrays.files:
            number, table, part = key.split(".")
            if part == "whole":
                timeline = found.setdefault(schedulers[int(number)], Timeline("kernels"))
                _extend(getattr(timeline, table), arrays[key], arrays[f"{number}.{table}.floats"])
    return found


def _extend(columns: Columns, whole: NDArray[Any], floats: NDArray[Any]) -> None:
    """Append what was saved of columns.

    Raises:
        ValueError: it is of other ones.
    """
    shapes = (len(whole), columns.whole), (len(whole), columns.floats)
    if (whole.shape, floats.shape) != shapes or (whole.dtype.str, floats.dtype.str) != ("<i8", "<f8"):
        raise ValueError(f"{TIMELINES} has other columns")
    columns.extend(whole, floats)


def _with_nan(value: Any) -> Any:
    """Undefined figures are ``None`` in the file."""
    if isinstance(value, dict):
        return {key: _with_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_nan(inner) for inner in value]
    if isinstance(value, int | float) and not -MOST <= value <= MOST:
        raise ValueError(f"a figure is {value:g}, must be between {-MOST:g} and {MOST:g}")
    return math.nan if value is None else value

"""A load curve again, from the folder that it was saved in: its figures are those of the file, nothing is simulated."""

from __future__ import annotations

from pathlib import Path

from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.files import RESULT, read_struct
from gpusched_env.experiments.load_curve.axis import axis_of
from gpusched_env.experiments.load_curve.curve import LoadCurve
from gpusched_env.experiments.load_curve.save import SCHEMA, CurveResult
from gpusched_env.experiments.report.load import check_runs, kept_workload, read_jobs, runs_of, whole
from gpusched_env.experiments.report.result import kept_name
from gpusched_env.experiments.report.save import JOBS
from gpusched_env.scenarios.building import build_problem
from gpusched_env.workload.workload import decode_workload

HOW = "load the folder that gpusched compare --sweep or LoadCurve.save wrote"


def load_sweep(folder: Path | str) -> LoadCurve:
    """What ``gpusched compare --sweep`` or :meth:`LoadCurve.save` wrote to ``folder``; nothing is simulated.

    Raises:
        InputError: a file is missing, damaged or of another version.
    """
    folder = Path(folder)
    found = read_struct(folder / RESULT, CurveResult, SCHEMA, "not a load curve", HOW)
    workloads = {n: kept_workload(folder / kept_name(n, digest), digest) for n, digest in found.workloads.items()}
    axis = axis_of({found.field: found.values})
    read = {name: decode_workload(data, name) for name, data in workloads.items()}
    values = [point.value for point in found.points]
    if not values or not set(values) <= set(axis.values) or values != sorted(set(values)):
        raise InputError(f"{folder / RESULT}: has no points, or others than its values; {HOW}")
    problems = {v: build_problem(axis.at(found.scenario, v), gpu=found.gpu, workloads=read) for v in values}
    with whole(folder, HOW):
        jobs = read_jobs(folder / JOBS, axis.field)
        of = {value: rows.drop(columns=axis.field) for value, rows in jobs.groupby(axis.field)}
        empty = jobs.iloc[:0].drop(columns=axis.field)
        runs = {p.value: runs_of(p.per_seed, of.get(p.value, empty), {}, found.seeds[0]) for p in found.points}
        for value, problem in problems.items():
            check_runs(runs[value], problem, found.schedulers, found.seeds)
    return LoadCurve(
        found.scenario,
        axis,
        found.share,
        {
            point.value: Comparison(
                problem=problems[point.value],
                device=found.device,
                descriptions=found.schedulers,
                seeds=tuple(found.seeds),
                runs=tuple(runs[point.value]),
                interrupted=point.interrupted,
                started=point.provenance.started,
                wall_s=point.provenance.wall_s,
                command=point.provenance.command,
                clairvoyant=frozenset(found.clairvoyant),
                own_workloads=workloads,
                versions=point.provenance.versions,
                platform=point.provenance.platform,
                made=point.provenance.made,
            )
            for point in found.points
        },
    )

"""A comparison over the values of a field: run, saved in a folder, and loaded again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import yaml

from gpusched_env.display.words import counted
from gpusched_env.episodes.session import MEANINGS
from gpusched_env.errors import InputError
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.files import RESULT, encoded, read_struct
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.experiments.load_curve.figures import SHARE, Axis, LoadCurve, axis_of
from gpusched_env.experiments.load_curve.tables import picture_svg, tables
from gpusched_env.experiments.report.load import check_runs, comparison_of, kept_workloads, read_jobs, runs_of, whole
from gpusched_env.experiments.report.result import Provenance, episode_of, kept_name, provenance_of, sha256
from gpusched_env.experiments.report.save import JOBS, write_parquet
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario, load_scenario

SCHEMA = "gpusched-load-curve/1"


class CurvePoint(msgspec.Struct):
    """The episodes at one value of the field."""

    value: float
    interrupted: bool
    provenance: Provenance
    per_seed: dict[str, list[dict[str, Any]]]
    """Figures of every finished episode, by scheduler."""


class CurveResult(msgspec.Struct):
    """The content of ``result.json``; units are in the names, undefined figures are ``null`` there."""

    schema: str
    interrupted: bool
    field: str
    values: list[float]
    """Values that were asked for."""
    share: float
    """Share of each tenant's jobs that must be within its objective."""
    capacity: dict[str, dict[str, Any]]
    """Capacities by scheduler; empty if the field is no load, or no tenant has an objective."""
    device: str
    seeds: list[int]
    schedulers: dict[str, str]
    """Schedulers with what they are."""
    clairvoyant: list[str]
    scenario: Scenario
    gpu: GpuSpec
    workloads: dict[str, str]
    """Files of workloads that do not come with the package, and their SHA-256."""
    points: list[CurvePoint]


def write_curve(curve: LoadCurve, folder: Path) -> list[str]:
    """Write everything into the existing ``folder``; returns the names of the files."""
    field = curve.axis.field
    write_parquet(curve.to_frame("jobs"), folder / JOBS, {**MEANINGS, field: f"the scenario's {field}"})
    curve.to_frame().to_csv(folder / "sweep.csv", index=False)
    picture = picture_svg(curve)
    (folder / "sweep.svg").write_bytes(picture)
    result = result_of(curve)
    (folder / "sweep.html").write_text(_page(curve, result, picture.decode()), encoding="utf-8")
    for name, data in next(iter(curve.comparisons.values())).own_workloads.items():
        (folder / kept_name(name, sha256(data))).write_bytes(data)
    (folder / RESULT).write_bytes(encoded(result))
    return sorted(file.name for file in folder.iterdir())


def result_of(curve: LoadCurve) -> CurveResult:
    """All of a load curve but its jobs."""
    first = next(iter(curve.comparisons.values()))
    found = {name: curve.capacity(name) for name in curve.schedulers} if curve.has_capacity else {}
    return CurveResult(
        schema=SCHEMA,
        interrupted=curve.interrupted,
        field=curve.axis.field,
        values=list(curve.axis.values),
        share=curve.share,
        capacity={name: {"value": of.value, "where": of.where} for name, of in found.items()},
        device=first.device,
        seeds=list(first.seeds),
        schedulers=dict(first.descriptions),
        clairvoyant=sorted(first.clairvoyant),
        scenario=curve.scenario,
        gpu=first.problem.gpu,
        workloads={name: sha256(data) for name, data in first.own_workloads.items()},
        points=[
            CurvePoint(
                value,
                at.interrupted,
                provenance_of(at),
                {name: [episode_of(run) for run in at.of(name)] for name in at.schedulers},
            )
            for value, at in curve.comparisons.items()
        ],
    )


def _page(curve: LoadCurve, result: CurveResult, picture: str) -> str:
    about = result.points[0].provenance
    ends = f"{curve.values[0]:g} to {curve.values[-1]:g}"
    return page(
        "load-curve.html",
        title=f"{curve.scenario.name}: {curve.axis.field} {ends}, {counted(len(curve.schedulers), 'scheduler')}",
        curve=curve,
        tables=tables(curve),
        picture=picture[picture.index("<svg") :],
        provenance={
            "Command": about.command or "(called from Python)",
            "Started": f"{about.started:%Y-%m-%d %H:%M:%S} UTC",
            "GPU, seeds": f"{result.gpu.name}, {len(result.seeds)}",
            "Versions": ", ".join(f"{package} {version}" for package, version in about.versions.items()),
        },
        scenario=yaml.safe_dump(msgspec.to_builtins(result.scenario), sort_keys=False, allow_unicode=True),
    )


def compare_over(
    compare: Callable[..., Comparison],
    sweep: Axis | Mapping[str, Sequence[float]],
    scenario: Scenario | str | Path,
    *,
    share: float = SHARE,
    on_progress: Progress | None = None,
    **options: Any,
) -> LoadCurve:
    """Repeat ``compare`` at every value; an interrupt keeps what is finished.

    Args:
        compare: what runs one comparison.
        sweep: the field and its values.
        scenario: as for ``compare``.
        share: of each tenant's jobs that must be within its objective, see :meth:`LoadCurve.capacity`.
        on_progress: called with the number of finished episodes and their share of all values' episodes.
        options: of ``compare``.

    Raises:
        InputError: as from ``compare``; a field that the scenario has not, before anything runs.
        KeyboardInterrupt: before the first episode had finished.
    """
    axis = sweep if isinstance(sweep, Axis) else axis_of(sweep)
    if not 0.0 < share <= 1.0:
        raise InputError(f"share is {share:g}, must be above 0 and at most 1")
    if options.get("record", "jobs") != "jobs" or options.get("window_us") is not None:
        raise InputError("a sweep keeps jobs alone: leave record and window_us (--traces, --window-us) out")
    base = load_scenario(scenario)
    scenarios = {value: axis.at(base, value) for value in axis.values}
    for of in (scenarios[axis.values[0]], scenarios[axis.values[-1]]):
        build_problem(of)
    found: dict[float, Comparison] = {}
    finished = 0
    for number, (value, of) in enumerate(scenarios.items()):

        def tell(runs: int, part: float, before: int = finished, number: int = number) -> None:
            if on_progress is not None:
                on_progress(before + runs, (number + part) / len(scenarios))

        comparison = compare(of, **options, on_progress=tell)
        finished += len(comparison.runs)
        if comparison.runs:
            found[value] = comparison
        if comparison.interrupted:
            break
    if not found:
        raise KeyboardInterrupt
    return LoadCurve(base, axis, share, found)


HOW = "load the folder that gpusched compare --sweep or LoadCurve.save wrote"


def load_sweep(folder: Path | str) -> LoadCurve:
    """What ``gpusched compare --sweep`` or :meth:`LoadCurve.save` wrote to ``folder``; nothing is simulated.

    Raises:
        InputError: a file is missing, damaged or of another version.
    """
    folder = Path(folder)
    found = read_struct(folder / RESULT, CurveResult, SCHEMA, "not a load curve", HOW)
    workloads, read = kept_workloads(folder, found.workloads)
    axis = axis_of({found.field: found.values})
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
            point.value: comparison_of(
                point.provenance,
                problem=problems[point.value],
                device=found.device,
                descriptions=found.schedulers,
                seeds=tuple(found.seeds),
                runs=tuple(runs[point.value]),
                interrupted=point.interrupted,
                clairvoyant=frozenset(found.clairvoyant),
                own_workloads=workloads,
            )
            for point in found.points
        },
    )

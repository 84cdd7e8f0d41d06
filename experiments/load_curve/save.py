"""The folder of a load curve: page, picture, figures as CSV, jobs, and ``result.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import yaml

from gpusched_env.display.words import counted
from gpusched_env.episodes.frames import MEANINGS
from gpusched_env.experiments.lib.files import RESULT, ResultFolder, encoded
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.load_curve.figures import CurveFigures
from gpusched_env.experiments.load_curve.picture import picture_svg
from gpusched_env.experiments.load_curve.tables import tables
from gpusched_env.experiments.report.result import Provenance, episode_of, kept_name, provenance_of, sha256
from gpusched_env.experiments.report.save import JOBS, write_parquet
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.scenario import Scenario

SCHEMA = "gpusched-load-curve/1"


class CurvePoint(msgspec.Struct):
    """The episodes at one value of the field."""

    value: float
    interrupted: bool
    provenance: Provenance
    per_seed: dict[str, list[dict[str, Any]]]
    """By scheduler: figures of every finished episode."""


class CurveResult(msgspec.Struct):
    """The content of ``result.json``; units are in the names, undefined figures are ``null`` there."""

    schema: str
    interrupted: bool
    field: str
    values: list[float]
    """Asked for."""
    share: float
    """Of each tenant's jobs that must be within its objective."""
    capacity: dict[str, dict[str, Any]]
    """By scheduler; empty if the field is no load, or no tenant has an objective."""
    device: str
    seeds: list[int]
    schedulers: dict[str, str]
    """With what they are."""
    clairvoyant: list[str]
    scenario: Scenario
    gpu: GpuSpec
    workloads: dict[str, str]
    """Files of workloads that do not come with the package, and their SHA-256."""
    points: list[CurvePoint]


def save_curve(curve: CurveFigures, folder: Path, *, overwrite: bool = False) -> list[str]:
    """See :meth:`~gpusched_env.experiments.load_curve.curve.LoadCurve.save`."""
    with ResultFolder(folder, overwrite=overwrite) as results:
        files = write_curve(curve, results.staging)
        results.publish()
    return files


def write_curve(curve: CurveFigures, folder: Path) -> list[str]:
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


def result_of(curve: CurveFigures) -> CurveResult:
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


def _page(curve: CurveFigures, result: CurveResult, picture: str) -> str:
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

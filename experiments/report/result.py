"""``result.json``: everything that a comparison found, with what is needed to repeat it."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from gpusched_env.devices import device_names
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.games.kernels import made_of_one
from gpusched_env.experiments.lib.episodes import Run
from gpusched_env.experiments.lib.figures import GLOBAL_FIGURES, TENANT_FIGURES
from gpusched_env.experiments.lib.statistics import LEVEL, METHOD, RESAMPLES
from gpusched_env.experiments.ranking.made import Fingerprints
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.scenario import Scenario

SCHEMA = "gpusched-comparison/2"


class Provenance(msgspec.Struct):
    """How the comparison was made."""

    command: str
    started: datetime
    wall_s: float
    platform: str
    versions: dict[str, str]
    made: Fingerprints = Fingerprints()
    """Hashes of what made the episodes, as in results of rankings and as it was when they were saved; that is not known
    of schedulers without a name of their own."""


class SchedulerResult(msgspec.Struct):
    """What one scheduler came to."""

    description: str
    clairvoyant: bool
    seeds: list[int]
    """Seeds of finished episodes."""
    figures: dict[str, Any]
    """Means over seeds (percentiles: of the jobs of all seeds together) with 95 % bootstrap intervals."""
    cost_difference: dict[str, Any]
    """The difference from the first scheduler's cost, paired by seed."""
    per_seed: list[dict[str, Any]]
    """Figures of every finished episode."""


class Result(msgspec.Struct):
    """The content of ``result.json``; units are in the names, undefined figures are ``null`` there."""

    schema: str
    interrupted: bool
    provenance: Provenance
    device: str
    seeds: list[int]
    asked: list[str]
    """Schedulers that were asked for."""
    intervals: dict[str, Any]
    scenario: Scenario
    gpu: GpuSpec
    workloads: dict[str, str]
    """Files of workloads that do not come with the package, and their SHA-256."""
    remarks: list[str]
    tenants: dict[str, dict[str, float]]
    window_us: tuple[float, float] | None
    schedulers: dict[str, SchedulerResult]


def result_of(comparison: Comparison) -> Result:
    """All of a comparison but its jobs and timelines."""
    return Result(
        schema=SCHEMA,
        interrupted=comparison.interrupted,
        provenance=provenance_of(comparison),
        device=comparison.device,
        seeds=list(comparison.seeds),
        asked=list(comparison.descriptions),
        intervals={"level": LEVEL, "resamples": RESAMPLES, "method": METHOD},
        scenario=comparison.problem.scenario,
        gpu=comparison.problem.gpu,
        workloads={name: sha256(data) for name, data in comparison.own_workloads.items()},
        remarks=comparison.remarks,
        tenants={p.tenant.name: {"alone_us": p.alone_us} for p in comparison.problem.programs},
        window_us=comparison.window_us,
        schedulers={name: _scheduler(comparison, name) for name in comparison.schedulers},
    )


def provenance_of(comparison: Comparison) -> Provenance:
    """The provenance of a comparison."""
    about, made = comparison, comparison.made
    if made is None:
        names = [name for name in about.descriptions if name in about.named]
        known = about.device in device_names()
        made = made_of_one(about.problem.scenario, about.device, names) if known else Fingerprints()
        # Once: the files that it is of may be gone the next time.
        object.__setattr__(about, "made", made)
    return Provenance(about.command, about.started, round(about.wall_s, 3), about.platform, about.versions, made)


def sha256(data: bytes) -> str:
    """The SHA-256 of a file's content, hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def kept_name(workload: str, digest: str) -> str:
    """What a workload's file is called in the folder of a comparison."""
    return f"{digest[:8]}-{Path(workload).name}"


def _scheduler(comparison: Comparison, name: str) -> SchedulerResult:
    runs = comparison.of(name)
    figures: dict[str, Any] = {f.key: comparison.interval(name, f.key) for f in GLOBAL_FIGURES}
    figures["tenants"] = {
        tenant: {f.key: comparison.interval(name, f.key, tenant) for f in TENANT_FIGURES}
        for tenant in comparison.tenants
    }
    return SchedulerResult(
        description=comparison.descriptions[name],
        clairvoyant=name in comparison.clairvoyant,
        seeds=[run.seed for run in runs],
        figures=figures,
        cost_difference={"against": comparison.schedulers[0], **asdict(comparison.difference(name))},
        per_seed=[episode_of(run) for run in runs],
    )


def episode_of(run: Run) -> dict[str, Any]:
    """The figures of one episode as a file has them."""
    return {"seed": run.seed, "wall_s": round(run.wall_s, 4), **asdict(run.metrics)}

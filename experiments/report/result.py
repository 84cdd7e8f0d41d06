"""``result.json``: everything that a comparison found, with what is needed to repeat it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.lib.figures import GLOBAL_FIGURES, TENANT_FIGURES
from gpusched_env.experiments.lib.statistics import LEVEL, METHOD, RESAMPLES

SCHEMA = "gpusched-comparison/2"


def result_dict(comparison: Comparison) -> dict[str, Any]:
    """The content of ``result.json``: plain values, undefined figures as ``None``.

    Units are in the names; ``figures`` are means over seeds (percentiles: of the jobs of all seeds together) with 95 %
    bootstrap intervals, ``per_seed`` the figures of every finished episode, ``asked`` the schedulers that were asked
    for, ``workloads`` those that do not come with the package, with the SHA-256 of their files.
    """
    seeds = list(comparison.seeds)
    return {
        "schema": SCHEMA,
        "interrupted": comparison.interrupted,
        "provenance": {
            "command": comparison.command,
            "started": comparison.started.isoformat(timespec="seconds"),
            "wall_s": round(comparison.wall_s, 3),
            "platform": comparison.platform,
            "versions": comparison.versions,
        },
        "device": comparison.device,
        "seeds": seeds,
        "asked": list(comparison.descriptions),
        "intervals": {"level": LEVEL, "resamples": RESAMPLES, "method": METHOD},
        "scenario": msgspec.to_builtins(comparison.problem.scenario),
        "gpu": msgspec.to_builtins(comparison.problem.gpu),
        "workloads": {name: sha256(data) for name, data in comparison.own_workloads.items()},
        "remarks": comparison.remarks,
        "tenants": {p.tenant.name: {"alone_us": p.alone_us} for p in comparison.problem.programs},
        "window_us": comparison.window_us,
        "schedulers": {name: _scheduler(comparison, name) for name in comparison.schedulers},
    }


def sha256(data: bytes) -> str:
    """Of a file's content, hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def kept_name(workload: str, digest: str) -> str:
    """What a workload's file is called in the folder of a comparison."""
    return f"{digest[:8]}-{Path(workload).name}"


def _scheduler(comparison: Comparison, name: str) -> dict[str, Any]:
    runs = comparison.of(name)
    figures: dict[str, Any] = {f.key: comparison.interval(name, f.key).as_dict() for f in GLOBAL_FIGURES}
    figures["tenants"] = {
        tenant: {f.key: comparison.interval(name, f.key, tenant).as_dict() for f in TENANT_FIGURES}
        for tenant in comparison.tenants
    }
    paired = comparison.difference(name)
    return {
        "description": comparison.descriptions[name],
        "clairvoyant": name in comparison.clairvoyant,
        "seeds": [run.seed for run in runs],
        "figures": figures,
        "cost_difference": {
            "against": comparison.schedulers[0],
            "difference": paired.difference.as_dict(),
            "relative": paired.relative.as_dict(),
        },
        "per_seed": [{"seed": r.seed, "wall_s": round(r.wall_s, 4), **r.metrics.as_dict()} for r in runs],
    }

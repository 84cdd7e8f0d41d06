"""``result.json``: everything that a comparison found, with what is needed to repeat it."""

from __future__ import annotations

import math
import platform
from typing import Any

import msgspec

from gpusched_env.experiments.bootstrap import LEVEL, RESAMPLES, Interval
from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.figures import GLOBAL_FIGURES, TENANT_FIGURES
from gpusched_env.versions import versions

SCHEMA = "gpusched-comparison/1"


def result_dict(comparison: Comparison) -> dict[str, Any]:
    """The content of ``result.json``: plain values, undefined figures as ``None``.

    Units are in the names; ``figures`` are means over seeds with 95 % bootstrap intervals, ``per_seed`` the
    figures of every finished episode.
    """
    seeds = list(comparison.seeds)
    return {
        "schema": SCHEMA,
        "interrupted": comparison.interrupted,
        "provenance": {
            "command": comparison.command,
            "started": comparison.started.isoformat(timespec="seconds"),
            "wall_s": round(comparison.wall_s, 3),
            "platform": platform.platform(),
            "versions": versions(),
        },
        "device": comparison.device,
        "seeds": seeds,
        "intervals": {"level": LEVEL, "resamples": RESAMPLES, "method": "percentile bootstrap over seeds"},
        "scenario": msgspec.to_builtins(comparison.problem.scenario),
        "gpu": msgspec.to_builtins(comparison.problem.gpu),
        "tenants": {p.tenant.name: {"alone_us": p.alone_us} for p in comparison.problem.programs},
        "window_us": comparison.window_us,
        "schedulers": {name: _scheduler(comparison, name) for name in comparison.schedulers},
    }


def encode_result(result: dict[str, Any]) -> bytes:
    """Indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(result), indent=2) + b"\n"


def _scheduler(comparison: Comparison, name: str) -> dict[str, Any]:
    runs = comparison.of(name)
    figures: dict[str, Any] = {f.key: _interval(comparison.interval(name, f)) for f in GLOBAL_FIGURES}
    figures["tenants"] = {
        tenant: {f.key: _interval(comparison.interval(name, f, row)) for f in TENANT_FIGURES}
        for row, tenant in enumerate(comparison.tenants)
    }
    cost = next(f for f in GLOBAL_FIGURES if f.key == "cost")
    paired = comparison.against_first(name, cost)
    return {
        "description": comparison.descriptions[name],
        "clairvoyant": name in comparison.clairvoyant,
        "seeds": [run.seed for run in runs],
        "figures": figures,
        "cost_difference": {
            "against": comparison.schedulers[0],
            "difference": _interval(paired.difference),
            "relative": _interval(paired.relative),
        },
        "per_seed": [{"seed": r.seed, "wall_s": round(r.wall_s, 4), **r.metrics.as_dict()} for r in runs],
    }


def _interval(interval: Interval) -> dict[str, Any]:
    mean = interval.mean if math.isfinite(interval.mean) else None
    return {"mean": mean, "low": interval.low, "high": interval.high, "seeds": interval.seeds}

"""The figures of a validation as plain data, and whether they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpusched_env import __version__
from gpusched_env.experiments.validate.ablation import EVERY
from gpusched_env.experiments.validate.dataset import MODEL_PAIRS
from gpusched_env.experiments.validate.run import Validation
from gpusched_env.experiments.validate.scoring import halves, score, score_pairs
from gpusched_env.experiments.validate.worst import worst_launches

CALIBRATED_ON = "h100-sxm"
"""The GPU whose recordings the constants were read off."""
TRANSFER = 1.3
"""Errors on other GPUs may be this many times as large."""
LIMITS: dict[str, dict[str, float]] = {
    "pairs": {"median": 0.012, "p90": 0.07, "makespan median": 0.012},
    "mixes": {"median": 0.022, "p90": 0.11, "makespan median": 0.025},
    "sequences": {"median": 0.03, "p90": 0.09, "makespan median": 0.025},
    MODEL_PAIRS: {"median": 0.08, "p90": 0.18},
}
"""Largest errors that hold: of reproducible end times, of makespans; of slowdowns for pairs of networks."""


@dataclass(frozen=True, slots=True)
class Bound:
    """An error and what it may be."""

    set_name: str
    figure: str
    error: float
    limit: float

    @property
    def holds(self) -> bool:
        return self.error <= self.limit


def results_dict(validation: Validation) -> dict[str, Any]:
    """Everything that was found, as plain values; errors are relative (0.01: 1 %).

    The sets that the folder has are keys of their own; ``halves`` are scenarios of even and odd number.
    """
    data: dict[str, Any] = {
        "gpu": validation.gpu.name,
        "version": __version__,
        "folder": str(validation.recordings.folder),
    }
    for name, predictions in validation.sets.items():
        data[name] = {**score(predictions), "scenarios": len(predictions), "halves": halves(predictions)}
    if validation.recordings.model_pairs is not None:
        found = score_pairs(validation.model_pairs) if validation.model_pairs else {"n": 0}
        data[MODEL_PAIRS] = {**found, "skipped": len(validation.recordings.skipped)}
    if validation.ablation:
        data["ablation"] = {
            "every": {name: EVERY.get(name, 1) for name in validation.sets},
            "without": {
                label: {name: _brief(score(predictions)) for name, predictions in sets.items()}
                for label, sets in validation.ablation.items()
            },
        }
    data["worst"] = [
        {"set": w.set_name, "scenario": w.prediction.scenario.id, "launch": w.launch, "error": w.error}
        for w in worst_launches(validation)
    ]
    checks = bounds(data)
    data["holds"] = all(bound.holds for bound in checks)
    data["limits"] = [
        {"set": b.set_name, "figure": b.figure, "error": b.error, "limit": b.limit, "holds": b.holds} for b in checks
    ]
    return data


def _brief(figures: dict[str, Any]) -> dict[str, float | None]:
    """What an ablation table shows of a set."""
    ends = figures["reproducible_end_error"]
    return {
        "median": ends["median"] if ends else None,
        "p90": ends["p90"] if ends else None,
        "makespan_median": figures["makespan_error"]["median"],
    }


def bounds(data: dict[str, Any]) -> list[Bound]:
    """Errors of :func:`results_dict` with their limits, of the sets that are there."""
    factor = 1.0 if data["gpu"] == CALIBRATED_ON else TRANSFER
    return [
        Bound(name, figure, error, limits[figure] * factor)
        for name, limits in LIMITS.items()
        for figure, error in _limited(data.get(name, {}))
    ]


def _limited(figures: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The figures of a set that have limits."""
    ends = figures.get("reproducible_end_error") or figures.get("slowdown_error")
    if ends:
        yield "median", ends["median"]
        yield "p90", ends["p90"]
    if "makespan_error" in figures:
        yield "makespan median", figures["makespan_error"]["median"]


def summary_line(data: dict[str, Any]) -> str:
    """One line that sums up: how many figures hold, and the one nearest to its limit or furthest beyond it."""
    checks = bounds(data)
    if not checks:
        return f"FAILED: validation on {data['gpu']}: nothing to compare"
    worst = max(checks, key=lambda bound: bound.error / bound.limit)
    verdict = "OK" if all(bound.holds for bound in checks) else "FAILED"
    held = sum(bound.holds for bound in checks)
    return (
        f"{verdict}: validation on {data['gpu']}: {held} of {len(checks)} errors within limits; "
        f"worst {worst.set_name}, {worst.figure}: {worst.error:.2%} (limit {worst.limit:.2%})"
    )

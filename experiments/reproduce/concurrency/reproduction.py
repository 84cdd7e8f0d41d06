"""The whole reproduction: runs, observations, published figures, recorded pairs; as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpusched_env import __version__
from gpusched_env.experiments.lib.workers import run_tasks
from gpusched_env.experiments.reproduce.concurrency.model_pairs import LIMIT, Side, sides
from gpusched_env.experiments.reproduce.concurrency.observations import Finding, findings
from gpusched_env.experiments.reproduce.concurrency.published import Compared, compared
from gpusched_env.experiments.reproduce.concurrency.runs import PAPERS, Runs
from gpusched_env.experiments.reproduce.concurrency.setting import Cell, all_cells
from gpusched_env.experiments.reproduce.concurrency.simulate import Figures, Simulate

SCHEMA = "gpusched-concurrency/1"
HORIZON_US = 500_000.0
"""Of each run: about a hundred requests, and one and a half training steps at full batch."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What was found."""

    horizon_us: float
    runs: Runs
    findings: list[Finding]
    published: list[Compared]
    sides: list[Side]

    @property
    def holds(self) -> bool:
        """Every scored claim, and every side of a recorded pair."""
        return all(f.holds is not False for f in self.findings) and all(s.holds for s in self.sides)

    def as_dict(self) -> dict[str, Any]:
        """Table values, for JSON."""
        scored = [f for f in self.findings if f.holds is not None]
        return {
            "schema": SCHEMA,
            "version": __version__,
            "holds": self.holds,
            "horizon_us": self.horizon_us,
            "judged_in": str(PAPERS),
            "observations": {
                "hold": sum(bool(f.holds) for f in scored),
                "scored": len(scored),
                "each": [asdict(f) for f in self.findings],
            },
            "published": [{**asdict(row), "difference": row.difference} for row in self.published],
            "recorded_pairs": {
                "limit": LIMIT,
                "within": sum(s.holds for s in self.sides),
                "sides": len(self.sides),
                "each": [{**asdict(s), "error": s.error, "holds": s.holds} for s in self.sides],
            },
            "runs": self.runs.rows(),
        }

    def summary_line(self) -> str:
        """One line that sums up."""
        scored = [f for f in self.findings if f.holds is not None]
        held, within = sum(bool(f.holds) for f in scored), sum(s.holds for s in self.sides)
        return (
            f"{'OK' if self.holds else 'FAILED'}: concurrency: {held} of {len(scored)} claims come out; "
            f"{within} of {len(self.sides)} sides of recorded pairs within {LIMIT:.0%}"
        )


def reproduce(
    workers: int,
    device: str = "compiled",
    on_progress: Callable[[int, float], None] | None = None,
    cells: Sequence[Cell] | None = None,
    horizon_us: float = HORIZON_US,
) -> Reproduction:
    """Run everything; ``on_progress`` is called with the number of finished runs and their share."""
    cells = all_cells() if cells is None else cells
    found: dict[Cell, Figures] = {}
    for index, figures in run_tasks(Simulate(horizon_us, device), cells, workers):
        found[cells[index]] = figures
        if on_progress is not None:
            on_progress(len(found), len(found) / len(cells))
    runs = Runs({cell: found[cell] for cell in cells})
    return Reproduction(horizon_us, runs, findings(runs), compared(runs, horizon_us), sides(workers))

"""All runs together, each related to its tenants alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from gpusched_env.experiments.reproduce.concurrency.setting import ALONE, MECHANISMS, PRIMARY, Arrival, Cell
from gpusched_env.experiments.reproduce.concurrency.simulate import Figures


@dataclass(frozen=True, slots=True)
class Setting:
    """What all mechanisms are compared on."""

    gpu: str
    pair: str
    arrivals: Arrival

    def __str__(self) -> str:
        return f"{self.pair}, {self.arrivals}, {self.gpu}"


PAPERS = Setting("rtx-3090", PRIMARY, "sequential")
"""The paper's own: the sign of an observation is judged there."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A mechanism in a setting."""

    figures: Figures
    slowdown: float
    """Mean turnaround of a request over the one alone."""
    speed: float
    """Training work done in the time of the run over that alone, about 0 to 1."""

    @property
    def progress(self) -> float:
        """Sum of both tasks' progress: 1 is what taking turns without loss gives."""
        return self.speed + 1.0 / self.slowdown


class Runs:
    """Figures by run."""

    def __init__(self, figures: Mapping[Cell, Figures]) -> None:
        self.figures = dict(figures)
        found = [Setting(cell.gpu, cell.pair, cell.arrivals) for cell in self.figures]
        self.settings = list(dict.fromkeys(found))
        """In order."""

    def alone(self, setting: Setting) -> Figures:
        """The setting's inference alone."""
        return self.figures[Cell(setting.gpu, setting.pair, setting.arrivals, ALONE[0])]

    def outcome(self, setting: Setting, mechanism: str) -> Outcome:
        """A mechanism against the same requests, and the same training, alone."""
        figures = self.figures[Cell(setting.gpu, setting.pair, setting.arrivals, mechanism)]
        training = self.figures[Cell(setting.gpu, setting.pair, "sequential", ALONE[1])]
        return Outcome(
            figures=figures,
            slowdown=figures.turnaround_us / self.alone(setting).turnaround_us,
            speed=figures.training_rate / training.training_rate,
        )

    def rows(self) -> list[dict[str, Any]]:
        """Table records, one a run, NaN as ``None``."""
        rows = []
        for cell, figures in self.figures.items():
            row: dict[str, Any] = {**asdict(cell), **asdict(figures)}
            if cell.mechanism in MECHANISMS:
                outcome = self.outcome(Setting(cell.gpu, cell.pair, cell.arrivals), cell.mechanism)
                row |= {"slowdown": outcome.slowdown, "training_speed": outcome.speed}
            rows.append({key: None if value != value else value for key, value in row.items()})
        return rows

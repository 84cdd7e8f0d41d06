"""Results that are right or wrong: simulated in worker processes, shown as tables, and summed up in a line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.shown import Shown
from gpusched_env.experiments.lib.verdicts import Judged
from gpusched_env.experiments.lib.workers import Progress, run_all


class Simulation(Protocol):
    """One simulation: hashable, and can be sent to another process."""

    def run(self, device: str) -> Any:
        """What it finds; ``device`` simulates the kernels."""
        ...


def run_cells(
    cells: Sequence[Simulation],
    device: str = "compiled",
    workers: int | None = None,
    on_progress: Progress | None = None,
) -> dict[Any, Any]:
    """What every cell finds, by cell; in worker processes (default: one a CPU core)."""
    return dict(zip(cells, run_all(_Simulate(device), cells, workers, on_progress), strict=True))


@dataclass(frozen=True, slots=True)
class _Simulate:
    """The task of worker processes."""

    device: str

    def __call__(self, cell: Simulation) -> Any:
        return cell.run(self.device)


class JudgedResult(Shown, ABC):
    """What was found, and whether it holds."""

    name: str

    @abstractmethod
    def checks(self) -> Sequence[Judged]:
        """What the exit status depends on."""

    @abstractmethod
    def summary(self) -> str:
        """What comes out, in half a line."""

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """Of the page, in order; some may have no rows."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""

    @abstractmethod
    def markdown(self) -> str:
        """The page."""

    def printed(self) -> Sequence[Table]:
        """The tables for the terminal, the most important last."""
        return self.tables()

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return all(check.holds is not False for check in self.checks())

    def summary_line(self) -> str:
        """One line that sums up."""
        return f"{'OK' if self.holds else 'FAILED'}: {self.name}: {self.summary()}"

    def in_notebook(self) -> Sequence[Table]:
        """All tables."""
        return self.tables()

    def headline(self) -> str:
        """Whether it holds, and what comes out."""
        return f"{type(self).__name__}: {self.summary_line()}"

"""What all reproductions share: runs in worker processes, verdicts, and how both become tables, JSON and a page.

A paper is a module of this folder, with a docstring that introduces it and a class ``Paper``, a
:class:`Reproduction`. What it simulates are cells: frozen dataclasses, each with a method ``run`` that gives another
dataclass of figures.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from gpusched_env import __version__
from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table, printed
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.lib.workers import Progress, run_all
from gpusched_env.experiments.papers.verdicts import Judged

if TYPE_CHECKING:
    from typing import Self

    from gpusched_env.display.frame import DataFrame


class Cell(Protocol):
    """One simulation: hashable, and can be sent to another process."""

    def run(self, device: str) -> Any:
        """Its figures, a dataclass; ``device`` simulates the kernels."""
        ...


class Reproduction(ABC):
    """A paper's cells, simulated, and what comes out of them."""

    name: ClassVar[str]
    title: ClassVar[str]
    legend: ClassVar[str] = ""
    """How to read the page's tables."""

    def __init__(self, runs: Mapping[Any, Any]) -> None:
        self.runs = dict(runs)
        """Figures by cell."""

    @classmethod
    def introduction(cls) -> str:
        """The docstring of the module: what the page begins with, and before that what it is in a line."""
        return sys.modules[cls.__module__].__doc__ or ""

    @classmethod
    def simulate(
        cls,
        device: str = "compiled",
        workers: int | None = None,
        on_progress: Progress | None = None,
        cells: Sequence[Cell] | None = None,
    ) -> Self:
        """Run ``cells``, by default all, in worker processes (default: one a CPU core)."""
        cells = cls.cells() if cells is None else cells
        figures = run_all(_Run(device), cells, workers, on_progress)
        return cls(dict(zip(cells, figures, strict=True)))

    @staticmethod
    @abstractmethod
    def cells() -> Sequence[Cell]:
        """Everything that is simulated."""

    @abstractmethod
    def checks(self) -> Sequence[Judged]:
        """What the exit status depends on."""

    @abstractmethod
    def summary(self) -> str:
        """What comes out, in half a line."""

    @abstractmethod
    def tables(self) -> Sequence[Table]:
        """Of the page, in order."""

    def details(self) -> Sequence[Table]:
        """Further ones of the page, which show single runs."""
        return ()

    def printed(self) -> Sequence[Table]:
        """Those for the terminal, the most important last."""
        return self.tables()

    @abstractmethod
    def data(self) -> dict[str, Any]:
        """Figures of the tables, for JSON."""

    @property
    def holds(self) -> bool:
        """Whether nothing is wrong."""
        return all(check.holds is not False for check in self.checks())

    def summary_line(self) -> str:
        """One line that sums up."""
        return f"{'OK' if self.holds else 'FAILED'}: {self.name}: {self.summary()}"

    def of(self, kind: type) -> dict[Any, Any]:
        """The runs of one kind of cell."""
        return {cell: figures for cell, figures in self.runs.items() if isinstance(cell, kind)}

    def to_frame(self, kind: type | None = None) -> DataFrame:
        """The runs of one kind of cell (by default the first one's), a row each: fields of cell and figures."""
        found = self.of(kind or type(next(iter(self.runs))))
        return frame([{**asdict(cell), **asdict(figures)} for cell, figures in found.items()])

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        head = {"schema": f"gpusched-{self.name}/1", "name": self.name, "version": __version__, "holds": self.holds}
        return {**head, **self.data()}

    def markdown(self) -> str:
        """The page."""
        return page("reproduction.md.j2", paper=self)

    def __repr__(self) -> str:
        return f"<Reproduction: {self.summary_line()}>"

    def __rich__(self) -> Any:
        return printed(self.printed())

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


@dataclass(frozen=True, slots=True)
class _Run:
    """The task of worker processes."""

    device: str

    def __call__(self, cell: Cell) -> Any:
        return cell.run(self.device)

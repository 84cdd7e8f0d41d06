"""What all reproductions share.

A paper is a module of this folder, with a docstring that introduces it and a class ``Paper``, a
:class:`Reproduction`. What it simulates are cells: frozen dataclasses, each with a method ``run`` that gives another
dataclass of figures.
"""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from gpusched_env.closure import closure
from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.lib.criteria import CriterionMark, criteria_csv, marks_table, missed_of, tally_of
from gpusched_env.experiments.lib.figures import tables_csv
from gpusched_env.experiments.lib.kept_cells import KeptCells
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.lib.verdicts import JudgedByName, JudgedResult, Simulation, as_row, run_cells
from gpusched_env.experiments.lib.workers import Progress
from gpusched_env.sources import hash_of
from gpusched_env.versions import versions

if TYPE_CHECKING:
    from typing import Self

    from gpusched_env.display.frame import DataFrame


PICTURE: Final = re.compile(r"^!\[[^\]]*\]\([^)]*\)$", flags=re.MULTILINE)


class Reproduction(JudgedResult):
    """A paper's cells, simulated, and what comes out of them."""

    title: ClassVar[str]
    legend: ClassVar[str] = ""
    """How to read the page's tables."""
    marks: ClassVar[Sequence[CriterionMark]] = ()
    """What each criterion is worth; of each there is exactly one."""
    shows: ClassVar[int] = 1
    """How many of its tables the page shows."""
    packed: ClassVar[Sequence[str]] = ()
    """Attachments that are long, and stored gzipped."""

    def __init__(self, runs: Mapping[Any, Any]) -> None:
        self.runs = dict(runs)
        """The figures of each cell."""

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
        cells: Sequence[Simulation] | None = None,
        kept: KeptCells | None = None,
        ray_address: str | None = None,
    ) -> Self:
        """Run ``cells``, by default all, and what follows from them, in processes (default: one a CPU core), or on the
        Ray cluster at ``ray_address``.

        Those that are ``kept`` are not run, all others are kept as they finish.
        """
        found = run_cells(cls.cells() if cells is None else cells, device, workers, on_progress, kept, ray_address)
        further = cls.further(found)
        if further:
            found |= run_cells(further, device, workers, kept=kept, ray_address=ray_address)
        return cls(found)

    @classmethod
    def kept(cls, folder: Path, device: str) -> KeptCells:
        """Cells that have finished on a device, in a file of the folder; one by other sources or data is refused."""
        made = hash_of([*closure([cls.__module__]), *cls.reads()], device)
        return KeptCells(folder, cls.name, made)

    @staticmethod
    def reads() -> Sequence[Path]:
        """Files of data that the cells read, and the sources do not name."""
        return ()

    @staticmethod
    @abstractmethod
    def cells() -> Sequence[Simulation]:
        """Everything that is simulated."""

    @classmethod
    def further(cls, found: Mapping[Any, Any]) -> Sequence[Simulation]:
        """What is simulated besides, by what the cells have come to."""
        return ()

    def checks(self) -> Sequence[JudgedByName]:
        """The checks of the page; none, as nothing is published."""
        return ()

    def tally(self) -> str:
        """How many of the predictions come out: what a summary begins with. Other criteria do not count."""
        return tally_of((check.as_criterion() for check in self.checks()), self.marks)

    def missed(self) -> str:
        """Which predictions do not come out, in a sentence: the page's second; empty where nothing is published."""
        criteria = [check.as_criterion() for check in self.checks()]
        return missed_of(criteria, self.marks) if criteria else ""

    def outcome(self) -> str:
        """Why that is so: what the page says next."""
        return ""

    def details(self) -> Sequence[Table]:
        """Further tables of the page, which show single runs."""
        return ()

    def pictures(self) -> dict[str, bytes]:
        """SVG by name, for the page: it refers to them as ``NAME-PICTURE.svg`` beside it."""
        return {}

    def attachments(self) -> dict[str, DataFrame]:
        """Long tables by name: CSV files beside the page, which links them."""
        return {}

    def attachment_file(self, attachment: str) -> str:
        """The name of an attachment's file."""
        return f"{self.name}-{attachment}.csv{'.gz' if attachment in self.packed else ''}"

    def data(self) -> dict[str, Any]:
        """Figures of the tables, for JSON; by default all that was simulated, with the checks."""
        cells = [{"cell": as_row(cell), "figures": as_row(found)} for cell, found in self.runs.items()]
        return {"checks": [as_row(check) for check in self.checks()], "runs": cells}

    def leads(self) -> list[Table]:
        """The tables that the page shows: the first ones."""
        return [replace(table, note=PICTURE.sub("", table.note).strip()) for table in self._filled()[: self.shows]]

    def below(self) -> list[Table]:
        """All others, which are long, or say more than most want to know."""
        return self._filled()[self.shows :]

    def marked(self) -> Table:
        """What counts, what does not, and why; no rows where nothing is published."""
        return marks_table([check.as_criterion() for check in self.checks()], self.marks)

    def criteria_csv(self) -> str:
        """All criteria with their outcomes, as they are stored beside the page."""
        return criteria_csv(check.as_criterion() for check in self.checks())

    def shown(self) -> list[str]:
        """Pictures of the page, as Markdown; notes of tables have them."""
        return [found for table in self._filled() for found in PICTURE.findall(table.note)]

    def remarks(self) -> list[tuple[str, str]]:
        """What there is to say of the tables that the page does not show, by their titles."""
        notes = [(table.title, PICTURE.sub("", table.note)) for table in self.below()]
        return [(title, " ".join(note.split())) for title, note in notes if note.strip()]

    def tables_csv(self) -> str:
        """The tables that the page does not show, one below the other."""
        return tables_csv([({"table": table.title}, table) for table in self.below()])

    def _filled(self) -> list[Table]:
        return [table for table in (*self.tables(), *self.details()) if table.rows]

    def of(self, kind: type) -> dict[Any, Any]:
        """The runs of one kind of cell."""
        return {cell: figures for cell, figures in self.runs.items() if isinstance(cell, kind)}

    def to_frame(self, kind: type | None = None) -> DataFrame:
        """The runs of one kind of cell (by default the first one's), a row each: fields of cell and figures."""
        found = self.of(kind or type(next(iter(self.runs))))
        return frame([{**asdict(cell), **asdict(figures)} for cell, figures in found.items()])

    def as_dict(self) -> dict[str, Any]:
        made_with = versions()["gpusched-env"]
        head = {"schema": f"gpusched-{self.name}/1", "name": self.name, "version": made_with, "holds": self.holds}
        return {**head, **self.data()}

    def markdown(self) -> str:
        return page("reproduction.md.j2", paper=self)

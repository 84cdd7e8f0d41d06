"""The board: rows of a track, the best first, against the plain GPU."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpusched_env.display.table import NONE, Table
from gpusched_env.experiments.submission.protocol import protocol
from gpusched_env.experiments.submission.row import Row, score

SCORE: Final = "{:.3f}"


@dataclass(frozen=True)
class Board:
    """Rows of a track that the same simulator and problems made."""

    track: str
    rows: list[Row]
    """The best first: by sealed seeds once they are known, else by open ones."""
    left: list[Row]
    """Rows that something else made than the plain GPU's, and that have to be played again."""
    plain: Row

    def score(self, row: Row, workloads: str | None = None, *, sealed: bool = False) -> float | None:
        """The score of a row, of one set of workloads or all; ``None``: it has not played them."""
        own, plain = row.costs(sealed), self.plain.costs(sealed)
        wanted = {key: cost for key, cost in plain.items() if workloads in (None, key[1])}
        return score(own, wanted) if wanted and wanted.keys() <= own.keys() else None

    def table(self, files: Mapping[str, str]) -> Table:
        """The board; ``files``: links to what is behind each row, by its name."""
        sealed = self.score(self.plain, sealed=True) is not None
        sets = [workloads for workloads in protocol().tracks[self.track].seeds if len(self._sets()) > 1]
        heads = ["place", "scheduler", "kind", *(["sealed"] if sealed else []), "score"]
        heads += [of.replace("_", "-") for of in sets]
        told = protocol().tracks[self.track].game.means(self.plain.scheduler) is not None
        rows = []
        for place, row in enumerate(self.rows, 1):
            figures = [self.score(row, sealed=True)] if sealed else []
            figures += [self.score(row), *(self.score(row, of) for of in sets)]
            cells = [NONE if one is None else SCORE.format(one) for one in figures]
            reads = [f"{len(row.reads)}"] if told else []
            rows.append([str(place), f"`{row.name}`", row.kind, *cells, *reads, files[row.name]])
        return Table("", [*heads, *(["reads"] if told else []), "files"], rows)

    def _sets(self) -> set[str]:
        return {workloads for _, workloads in self.plain.costs()}


def boards(rows: Iterable[Row]) -> list[Board]:
    """A board for each track that has a row of the plain GPU."""
    found = []
    everybody = list(rows)
    for name, track in protocol().tracks.items():
        of = [row for row in everybody if row.track == name]
        plain = next((row for row in of if row.scheduler == track.game.plain_gpu), None)
        if plain is not None:
            alike = [row for row in of if row.is_comparable(plain)]
            found.append(ranked(name, alike, [row for row in of if row not in alike], plain))
    return found


def ranked(track: str, rows: list[Row], left: list[Row], plain: Row) -> Board:
    """The board of these rows."""
    board = Board(track, rows, left, plain)
    return Board(track, sorted(rows, key=lambda row: _order(board, row)), left, plain)


def _order(board: Board, row: Row) -> tuple[bool, float, str]:
    """Who has not played the sealed seeds, where others have, comes last."""
    sealed = board.score(row, sealed=True)
    waiting = sealed is None and board.score(board.plain, sealed=True) is not None
    return waiting, sealed or board.score(row) or 0.0, row.name


def links(path: Path, row: Row, docs: Path) -> str:
    """Links to a row and to the files beside it."""
    parts = [("row", path), *((name, path.parent / name) for name in row.files)]
    return ", ".join(f"[{name}]({Path(os.path.relpath(of, docs)).as_posix()})" for name, of in parts)


def names(rows: Iterable[Row]) -> str:
    """The names of rows, for a sentence."""
    return ", ".join(f"`{row.name}`" for row in rows)

"""Cells that have finished, in a file, from which a run that was ended goes on."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec

from gpusched_env.experiments.lib.rows import Rows
from gpusched_env.reading import checked


class KeptCells:
    """The file ``NAME.jsonl`` of a folder: a line for each finished cell, complete or not there.

    Figures come out of it equal to the last bit. Those that JSON cannot hold, such as NaN, are not kept: their cells
    are simulated again.
    """

    def __init__(self, folder: Path, name: str, made: str) -> None:
        """
        Args:
            folder: is made if it is not there.
            name: of what is simulated.
            made: by what, as a hash; a file that something else made is refused.

        Raises:
            InputError: the file cannot be written, or is of something else.
        """
        self._rows = Rows(folder, name, {"schema": "gpusched-cells/1", "name": name, "made": made}, resume=True)
        self._found = {_key(row.get("cell")): row.get("figures") for row in self._rows.rows}

    def of(self, cells: Sequence[Any]) -> dict[Any, Any]:
        """The figures of those of ``cells`` that have finished.

        Raises:
            InputError: a line is not as cells of this kind leave it; names the file.
        """
        kept = {cell: self._found[key] for cell in cells if (key := _key(_named(cell))) in self._found}
        return {cell: checked(raw, _kind(cell), str(self._rows.path)) for cell, raw in kept.items()}

    def add(self, cell: Any, figures: Any) -> None:
        """Write down a finished cell.

        Raises:
            InputError: the file cannot be written.
        """
        written = _written(figures, cell)
        if written is not None:
            self._rows.add({"cell": _named(cell), "figures": msgspec.Raw(written)})


def _written(figures: Any, cell: Any) -> bytes | None:
    """Figures as JSON that gives the same; ``None``: there is none."""
    try:
        written = msgspec.json.encode(figures)
        return written if msgspec.json.decode(written, type=_kind(cell)) == figures else None
    except (NameError, TypeError, ValueError):
        return None


def _named(cell: Any) -> dict[str, Any]:
    return {"kind": type(cell).__name__, **asdict(cell)}


def _key(named: Any) -> bytes:
    return msgspec.json.encode(named, order="sorted")


def _kind(cell: Any) -> Any:
    """What a cell's ``run`` says that it gives."""
    return typing.get_type_hints(type(cell).run)["return"]

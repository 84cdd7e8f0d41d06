"""Tables that are too long to be read, one below the other as CSV."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence

from gpusched_env.display.table import NONE, Cell, Row, Table
from gpusched_env.experiments.lib.figures import find_figure

INTERVAL = re.compile(r"(?P<value>\S+) \[(?P<low>[^,\]]+), (?P<high>[^\]]+)\]")
AGAINST = "against "
"""Begins a head that names what rows are compared with: a column of its own here, where there is one such head."""
KEYS = {find_figure(key, of_tenant=False).label: key for key in ("best_effort",)}
"""Columns that are named by their figure's key, where that says something else than its label."""


def tables_csv(tables: Sequence[tuple[Mapping[str, str], Table]]) -> str:
    """A row of each row of ``tables``, behind what is said of its table.

    A cell with an interval, ``1.5 [1.2, 1.8]``, becomes three columns; percentages become shares, and what is not
    defined stays empty. Columns that a table lacks are empty as well.
    """
    rows = [{**said, **_cells(table.heads, row)} for said, table in tables for row in table.rows]
    names = list(dict.fromkeys(name for row in rows for name in _with_bounds(row)))
    written = io.StringIO()
    filled = [name for name in names if any(row.get(name) for row in rows)]
    writer = csv.DictWriter(written, filled, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return written.getvalue()


def _with_bounds(row: Mapping[str, str]) -> list[str]:
    """Columns of a row; those of an interval stay together even where a row before has none."""
    values = (name for name in row if name.removesuffix("_low").removesuffix("_high") not in {*row} - {name})
    return [f"{name}{bound}" for name in values for bound in ("", "_low", "_high")]


def _cells(heads: Sequence[str], row: Row) -> dict[str, str]:
    found: dict[str, str] = {}
    alone = sum(head.startswith(AGAINST) for head in heads) == 1
    for head, cell in zip(_distinct(heads), row, strict=True):
        text = cell.text if isinstance(cell, Cell) else cell
        name = KEYS.get(head) or head.replace("/s", "_per_s").replace(" ", "_")
        if head.startswith(AGAINST) and alone:
            found["against"], name = head.removeprefix(AGAINST), "difference"
        interval = INTERVAL.fullmatch(text)
        parts = interval.groupdict() if interval else {"value": text}
        found |= {name if part == "value" else f"{name}_{part}": _plain(value) for part, value in parts.items()}
    return found


def _distinct(heads: Sequence[str]) -> list[str]:
    """Heads that a table has several times, behind the one of its own that they belong to; numbered if that has two."""
    found: list[str] = []
    owner = ""
    for head in heads:
        repeated = heads.count(head) > 1
        name = f"{owner} {head}".strip() if repeated else head
        again = sum(other == name or other.startswith(f"{name} ") for other in found) if repeated else 0
        found.append(f"{name} {again + 1}" if again else name)
        owner = owner if repeated else head
    return found


def _plain(text: str) -> str:
    if text == NONE:
        return ""
    share = re.fullmatch(r"([+-]?[\d.]+) ?%", text)
    return f"{float(share[1]) / 100.0:.6g}" if share else text

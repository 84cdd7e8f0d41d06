"""Plain tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpusched_env.experiments.validate.tables import Plain


def plain_tables(plains: Iterable[Plain], styles: Mapping[str, str]) -> Any:
    """Tables one after the other, columns of numbers to the right; empty tables are left out.

    Cells whose text is in ``styles`` get its style.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    parts: list[Any] = []
    for plain in plains:
        if not plain.rows:
            continue
        parts.append(Text(f"\n{plain.title}", style="bold"))
        table = Table(box=None, header_style="dim", padding=(0, 1), pad_edge=False)
        for i, head in enumerate(plain.heads):
            table.add_column(head, justify="right" if all(_is_number(row[i]) for row in plain.rows) else "left")
        for row in plain.rows:
            table.add_row(*(Text(cell, style=styles.get(cell, "")) for cell in row))
        parts.append(table)
    return Group(*parts)


def _is_number(cell: str) -> bool:
    return cell == "–" or cell.lstrip("+-")[:1].isdigit()

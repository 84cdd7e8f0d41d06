"""Tables of text: written once, shown on the terminal, in a notebook, in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from gpusched_env.display.words import FEW

NONE = "–"
"""The sign for a figure that is not defined."""
_SIGNS = f"+-−{FEW}"
_BESIDE = 1
"""Spaces on either side of a column on the terminal."""
_MARKED = ' class="marked" style="background:#f3f4f6"'
STYLES = {"holds": "green", "off": "red", "misses": "red", "contradicted": "red", "not scored": "dim"}
"""How the terminal colours verdicts."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure with how far it may be off."""

    text: str
    spread: str = ""
    """How far the figure may be off, shown smaller, behind or below it."""
    best: bool = False
    """Whether it is the best of its column."""
    faint: bool = False
    """Whether the figure is not to be relied on."""

    def __str__(self) -> str:
        return f"{self.text} {self.spread}".rstrip()


Row = Sequence[str | Cell]


@dataclass(frozen=True)
class Table:
    """Rows of cells under heads; columns of numbers stand to the right."""

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    note: str = ""
    """What stands between title and rows."""
    help: Sequence[str] = ()
    """What heads mean, for those who hover over them in HTML."""
    marked: int | None = None
    """The row that stands out in HTML."""
    extra: frozenset[int] = frozenset()
    """Columns that HTML may hide until they are asked for: they are of the class ``extra``."""

    def numeric(self, column: int) -> bool:
        """Whether a column holds nothing but numbers."""
        texts = (_text(row[column]) for row in self.rows)
        return all(text == NONE or text.lstrip(_SIGNS)[:1].isdigit() or text == "nan" for text in texts)

    def __str__(self) -> str:
        cells = [[str(head) for head in self.heads], *([str(cell) for cell in row] for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        right = [self.numeric(column) for column in range(len(self.heads))]
        lines = [
            "  ".join(c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)).rstrip()
            for row in cells
        ]
        return "\n".join([self.title, *lines] if self.title else lines)

    def markdown(self) -> str:
        """The rows, without title and note."""
        ruler = ["---:" if self.numeric(column) else "---" for column in range(len(self.heads))]
        lines = (self.heads, ruler, *(tuple(map(_bold, row)) for row in self.rows))
        return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"

    def html(self) -> str:
        """The rows, without title and note."""
        sides = [self._classes(column) for column in range(len(self.heads))]
        helps = [*self.help, *[""] * (len(self.heads) - len(self.help))]
        titles = [f' title="{escape(text)}"' if text else "" for text in helps]
        heads = zip(self.heads, sides, titles, strict=True)
        head = "".join(f'<th scope="col"{side}{title}>{escape(text)}</th>' for text, side, title in heads)
        body = "".join(
            f'<tr{_MARKED if number == self.marked else ""}><th scope="row">{_html(row[0])}</th>'
            + "".join(f"<td{side}>{_html(cell)}</td>" for cell, side in zip(row[1:], sides[1:], strict=True))
            + "</tr>"
            for number, row in enumerate(self.rows)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _classes(self, column: int) -> str:
        of = [*([] if self.numeric(column) else ["text"]), *(["extra"] if column in self.extra else [])]
        return f' class="{" ".join(of)}"' if of else ""

    def _repr_html_(self) -> str:
        title = f"<h4>{escape(self.title)}</h4>" if self.title else ""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return title + note + self.html()

    def width(self) -> int:
        """Letters in the longest line on the terminal, if none is wrapped."""
        from rich.cells import cell_len

        rows = [self._folded_heads(), *([str(cell) for cell in row] for row in self.rows)]
        columns = [
            max(cell_len(line) for cell in column for line in cell.split("\n")) for column in zip(*rows, strict=True)
        ]
        return max(sum(columns) + 2 * _BESIDE * (len(columns) - 1), cell_len(self.title), cell_len(self.note))

    def _folded_heads(self) -> Sequence[str]:
        """Left to itself, a wide table would cut words to keep other headings on one line."""
        return [head.replace(" ", "\n") for head in self.heads] if len(self.heads) > 8 else self.heads

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        table = RichTable(box=None, header_style="dim", padding=(0, _BESIDE), pad_edge=False)
        for column, head in enumerate(self._folded_heads()):
            table.add_column(head, justify="right" if self.numeric(column) else "left")
        for row in self.rows:
            table.add_row(*map(_rich, row))
        note = [Text(self.note, style="dim")] if self.note else []
        return Group(Text(f"\n{self.title}", style="bold"), *note, table)


def of_columns(title: str, names: Sequence[str], array: Any, limit: int = 8) -> Table:
    """A table of numbers turned on its side: a line a column, so that many columns can be read.

    Args:
        names: of the columns, in lower or upper case.
        array: shape ``(rows, columns)``.
        limit: rows that are shown.
    """
    shown = array[:limit]
    more = f" (the first {limit} of {len(array)} rows)" if len(array) > limit else ""
    rows = [(name.lower(), *(f"{value:g}" for value in column)) for name, column in zip(names, shown.T, strict=True)]
    return Table(f"{title}{more}", ("column", *(f"row {i}" for i in range(len(shown)))), rows)


def printed(tables: Iterable[Table]) -> Any:
    """Tables one after the other, for the terminal; empty ones are left out."""
    from rich.console import Group

    return Group(*(table for table in tables if table.rows))


def _text(cell: str | Cell) -> str:
    return cell if isinstance(cell, str) else cell.text


def _bold(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"**{cell.text}** {cell.spread}".rstrip() if cell.best else str(cell)


def _html(cell: str | Cell) -> str:
    if isinstance(cell, str):
        return {"holds": "<b>holds</b>", "off": '<span class="off">off</span>'}.get(cell, escape(cell))
    shown = escape(cell.text)
    if cell.best or cell.faint:
        shown = f"<b>{shown}</b>" if cell.best else f'<span class="faint" style="color:#999">{shown}</span>'
    return f"{shown} <small>{escape(cell.spread)}</small>" if cell.spread else shown


def _rich(cell: str | Cell) -> Any:
    from rich.text import Text

    if isinstance(cell, str):
        return Text(cell, style=STYLES.get(cell, ""))
    shown = Text(cell.text, style="bold green" if cell.best else "dim" if cell.faint else "")
    return shown.append(f" {cell.spread}", style="dim not bold") if cell.spread else shown

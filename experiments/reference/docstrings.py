"""Docstrings as Markdown: literals, roles and the tables of published rules."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from typing import Any, Final

Row = list[str]
_BORDER: Final = re.compile(r"=+( +=+)+")
_ROLE: Final = re.compile(r":[a-z:]+:`~?([^`]+)`")
_NEW_ROW: Final = re.compile(r"(?!SMs,)([A-Z`]|\.\.\. )")
"""How the first cell of a row begins. Rows go over several lines, and nothing else tells where one ends."""


def markdown(docstring: str) -> str:
    """A docstring, or a part of one, as Markdown: with pipe tables, and names in place of roles."""
    lines: list[str] = []
    rest = docstring.splitlines()
    while rest:
        line = rest.pop(0)
        if _BORDER.fullmatch(line):
            borders = [row for row, other in enumerate(rest) if _BORDER.fullmatch(other)]
            head, *rows = table_rows([line, *rest[: borders[1] + 1]])
            lines += [*pipe_table(head, rows)]
            rest = rest[borders[1] + 1 :]
        else:
            lines.append(line)
    return literals("\n".join(lines)).strip()


def literals(text: str) -> str:
    """Roles and double backticks as single ones."""
    return _ROLE.sub(lambda found: f"`{_short(found[1])}`", text).replace("``", "`")


def _short(target: str) -> str:
    """What Sphinx shows of a target: all of it, without a leading dot."""
    return target.lstrip(".")


def table_rows(lines: list[str]) -> list[Row]:
    """Cells of a table between its borders of ``=``, the head first."""
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    rows: list[Row] = []
    for line in lines[1:]:
        if _BORDER.fullmatch(line):
            continue
        cells = [line[first:last].strip() for first, last in spans]
        if (len(rows) < 2 and (not rows or cells[0])) or _NEW_ROW.match(cells[0]):
            rows.append(cells)
        else:
            rows[-1] = [_joined(above, cell) for above, cell in zip(rows[-1], cells, strict=True)]
    return rows


def _joined(above: str, cell: str) -> str:
    """Two lines of a cell; a name that was broken after an underscore becomes one again."""
    if above.endswith("_``") and cell.startswith("``"):
        return above[:-2] + cell[2:]
    return f"{above} {cell}".strip()


def pipe_table(head: Row, rows: list[Row]) -> list[str]:
    """A Markdown table, line by line."""
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *(_line(row) for row in rows)]


def _line(row: Row) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"


def attribute_docstrings(owner: type[Any]) -> dict[str, str]:
    """The docstrings below the attributes of a class, in one line each."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for above, below in zip(tree.body, tree.body[1:], strict=False):
        name = _target(above)
        if name and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[name] = " ".join(str(below.value.value).split())
    return found


def _target(statement: ast.stmt) -> str:
    target: ast.expr | None = statement.target if isinstance(statement, ast.AnnAssign) else None
    if isinstance(statement, ast.Assign):
        (target,) = statement.targets
    return target.id if isinstance(target, ast.Name) else ""

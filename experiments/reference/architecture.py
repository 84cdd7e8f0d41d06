"""The picture of ``ARCHITECTURE.md``: rooms, and who imports whom, read from the code and from the import contract.

``python -m gpusched_env.experiments.reference.architecture`` draws it into ``docs/architecture.svg``, and writes the
tables of that page and the layers of ``CONTRIBUTING.md`` between their markers.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from gpusched_env.display.palette import COLOURS
from gpusched_env.experiments.reference.docstrings import literals, pipe_table

ROOT: Final = Path(__file__).resolve().parents[2]
PACKAGE: Final = "gpusched_env"
PICTURE: Final = ROOT / "docs" / "architecture.svg"
PAGES: Final = (ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md")
WIDTH, HEIGHT, GAP, ROW = 210, 34, 30, 72
"""Pixels: of a room, between rooms of a layer, and from layer to layer."""

Imports = Mapping[str, set[str]]
"""The rooms that a room imports, by room."""


def layers() -> list[list[str]]:
    """The rooms, the uppermost layer first, as the import contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    found = next(contract for contract in contracts if contract.get("containers") == [PACKAGE])
    return [[room.strip() for room in re.split(r"[|:]", layer)] for layer in found["layers"]]


def imports() -> Imports:
    """Rooms that each room imports, anywhere in it; not for types alone."""
    rooms = {room for layer in layers() for room in layer}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for room in rooms:
        place = ROOT / PACKAGE / room
        for file in place.resolve().rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]:
            found[room] |= _imported(ast.parse(file.read_text(encoding="utf-8"))) & rooms - {room}
    return found


def _imported(tree: ast.AST) -> set[str]:
    """Rooms that a module imports."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        else:
            names |= {f"{PACKAGE}.{room}" for room in _imported(node)}
    return {name.split(".")[1] for name in names if name.startswith(f"{PACKAGE}.")}


def direct(found: Imports) -> Imports:
    """The imports without what follows: a room that imports another through a third has no arrow of its own."""
    below: dict[str, set[str]] = {}

    def reached(room: str) -> set[str]:
        if room not in below:
            below[room] = set(found[room]).union(*(reached(other) for other in found[room]))
        return below[room]

    return {room: others - set().union(*(reached(other) for other in others)) for room, others in found.items()}


def drawn(rows: Sequence[Sequence[str]], arrows: Imports) -> str:
    """The picture, as SVG: a row a layer, an arrow from each room to those that it imports."""
    across = max(len(row) for row in rows) * (WIDTH + GAP) + 2 * WIDTH
    at = {
        room: (across // 2 + int((place - (len(row) - 1) / 2) * (WIDTH + GAP)), GAP + level * ROW)
        for level, row in enumerate(rows)
        for place, room in enumerate(row)
    }
    level = {room: number for number, row in enumerate(rows) for room in row}
    lines, boxes = [], []
    for room in sorted(arrows):
        for other in sorted(arrows[room], key=lambda name: (level[name], name)):
            (x, y), (to_x, to_y) = at[room], at[other]
            # An arrow over several layers goes round the rooms between.
            span = level[other] - level[room]
            bend = 0 if span == 1 else (WIDTH // 2 + 14 * span) * (1 if (level[room] + span) % 2 else -1)
            lines.append(
                f'<path d="M{x},{y + HEIGHT} C{x + bend},{y + HEIGHT + ROW // 3} {to_x + bend},{to_y - ROW // 3} '
                f'{to_x},{to_y - 4}" fill="none" stroke="#888" marker-end="url(#head)"/>'
            )
    for room, (x, y) in at.items():
        boxes.append(
            f'<rect x="{x - WIDTH // 2}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#eef3fa" '
            f'stroke="{COLOURS[0]}"/><text x="{x}" y="{y + 22}" text-anchor="middle">{room}</text>'
        )
    head = '<marker id="head" markerWidth="8" markerHeight="8" refX="4" refY="3" orient="auto">'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {2 * GAP + len(rows) * ROW}" '
            'font-family="sans-serif" font-size="14">',
            f'<defs>{head}<path d="M0,0 L6,3 L0,6 z" fill="#888"/></marker></defs>',
            '<rect width="100%" height="100%" fill="white"/>',
            *lines,
            *boxes,
            "</svg>\n",
        ]
    )


def rooms_table(rows: Sequence[Sequence[str]], arrows: Imports) -> str:
    """A row a room: what it is, as its docstring says, and what it builds on."""
    cells = [
        [f"`{room}`", about(room), ", ".join(f"`{other}`" for other in sorted(arrows[room]))]
        for row in rows
        for room in row
    ]
    return "\n".join(pipe_table(["room", "what it is", "builds on"], cells))


def about(room: str) -> str:
    place = ROOT / PACKAGE / room
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return literals(text.partition("\n\n")[0].replace("\n", " "))


def layers_line(rows: Sequence[Sequence[str]]) -> str:
    """The layers in one line, the lowest first."""
    return " → ".join(", ".join(f"`{room}`" for room in row) for row in reversed(rows))


def updated(text: str, parts: Mapping[str, str]) -> str:
    """``text`` with each part between its markers, ``<!-- name -->`` and ``<!-- /name -->``."""
    for name, part in parts.items():
        marked = re.compile(rf"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
        text = marked.sub(f"\n{part}\n\n".replace("\\", "\\\\"), text)
    return text


def files() -> dict[Path, str]:
    """What the command writes, by file."""
    rows, arrows = layers(), direct(imports())
    parts = {"rooms": rooms_table(rows, arrows), "layers": layers_line(rows)}
    pages = {page: updated(page.read_text(encoding="utf-8"), parts) for page in PAGES}
    return {PICTURE: drawn(rows, arrows), **pages}


if __name__ == "__main__":
    for path, content in files().items():
        path.write_text(content, encoding="utf-8")

"""Graphs from files: MatrixMarket, and the shortest-path format of the ninth DIMACS challenge, plain or gzipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.reading import read_bytes, unzipped
from gpusched_env.workload.graphs import Graph, simple_graph

MOST_ALONE = 2**22
MOST_AN_ENTRY = 64
"""Vertices of a small file, and of a large one for each of its entries: hardly any may have no edge."""


def read_graph(path: str | Path) -> Graph:
    """A graph as an undirected one without loops and multiple edges; weights are left out.

    Args:
        path: ``.mtx`` or ``.gr``, also with ``.gz`` behind.

    Raises:
        InputError: it cannot be read, or is no such file; names the file and the line.
    """
    path = Path(path)
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if kind not in (".mtx", ".gr"):
        raise InputError(f"{path}: is no .mtx (MatrixMarket) or .gr (DIMACS) file, plain or .gz")
    try:
        text = unzipped(read_bytes(path), str(path)).decode("ascii")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: {error}") from error
    return _matrix_market(path, text) if kind == ".mtx" else _dimacs(path, text)


def _matrix_market(path: Path, text: str) -> Graph:
    lines = text.splitlines()
    if not lines or not lines[0].lower().startswith("%%matrixmarket matrix coordinate"):
        raise InputError(f"{path}, line 1: must begin with '%%MatrixMarket matrix coordinate'")
    head = next((number for number, line in enumerate(lines) if not line.startswith("%")), len(lines))
    sizes = lines[head].split() if head < len(lines) else []
    if len(sizes) != 3 or not all(map(_is_count, sizes)):
        raise InputError(f"{path}, line {head + 1}: must be rows, columns and entries, three whole numbers")
    rows, columns, entries = map(int, sizes)
    if rows != columns:
        raise InputError(f"{path}, line {head + 1}: {rows} rows and {columns} columns; a graph has as many of both")
    return _graph(path, rows, entries, lines[head + 1 :], head + 2, 0)


def _is_count(word: str) -> bool:
    return word.isdigit() and len(word) < 20


def _dimacs(path: Path, text: str) -> Graph:
    lines = text.splitlines()
    head = next((number for number, line in enumerate(lines) if line.startswith("p ")), len(lines))
    sizes = lines[head].split() if head < len(lines) else []
    if len(sizes) != 4 or sizes[1] != "sp" or not all(map(_is_count, sizes[2:])):
        raise InputError(f"{path}, line {head + 1}: must be 'p sp VERTICES ARCS'")
    arcs = [line for line in lines[head + 1 :] if line.startswith("a ")]
    return _graph(path, int(sizes[2]), int(sizes[3]), arcs, head + 2, 1)


def _graph(path: Path, vertices: int, entries: int, lines: list[str], first: int, skip: int) -> Graph:
    """Of lines that name two vertices behind ``skip`` other words."""
    kept = [line for line in lines if line.strip()]
    if len(kept) != entries:
        raise InputError(f"{path}: has {len(kept)} entries, its head says {entries}")
    most = max(MOST_ALONE, MOST_AN_ENTRY * entries)
    if not 1 <= vertices <= most:
        raise InputError(f"{path}: a graph of {vertices} vertices and {entries} entries; must be 1 to {most} vertices")
    try:
        pairs = np.array([line.split()[skip : skip + 2] for line in kept], np.int64).reshape(-1, 2)
    except (ValueError, OverflowError) as error:
        raise InputError(f"{path}, from line {first} on: every entry must name two vertices ({error})") from error
    outside = np.flatnonzero(((pairs < 1) | (pairs > vertices)).any(axis=1))
    if len(outside):
        raise InputError(
            f"{path}: entry {outside[0] + 1} names vertex {pairs[outside[0]].max()}, they are 1 to {vertices}"
        )
    return simple_graph(vertices, pairs[:, 0] - 1, pairs[:, 1] - 1)

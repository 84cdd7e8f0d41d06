"""Hashes of what something is made by: sources with all that they import, comments, docstrings and formatting apart.

A data file counts with the module that has its name as a string, if it lies beside it or in the package's data.
"""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpusched_env.closure import PACKAGE, ROOT, closure

APART: Final = tuple(
    f"{PACKAGE}.{name}"
    for name in (
        *("baselines.registry", "caching", "closure", "display", "errors", "reading", "versions"),
        *("devices.cuda", "episodes.cautions", "episodes.charts", "episodes.films", "episodes.frames"),
        *("episodes.scenes", "experiments", "workload.importers"),
    )
)
"""Modules, with all below them, that no episode on a simulated device depends on."""
LENGTH: Final = 12
"""Hexadecimal digits of a hash."""


def closure_of(roots: Iterable[str | Path], known: frozenset[Path] = frozenset()) -> frozenset[Path]:
    """All files that modules of this package, or files of a user, are made by, but for those that are ``known``."""
    files = frozenset(closure(roots, apart=APART, known=known))
    return files | {file for path in files for file in _read(path).data if file not in known}


def hash_of(files: Iterable[Path], *texts: str) -> str:
    """Of files, in whatever order they come, and of texts, such as options."""
    digest = hashlib.sha256()
    for name, content in sorted((_name(path), _read(path).digest) for path in files):
        digest.update(f"{name} {content}\n".encode())
    for text in texts:
        digest.update(f"{len(text)} {text}\n".encode())
    return digest.hexdigest()[:LENGTH]


@dataclass(frozen=True)
class _Source:
    digest: str
    data: tuple[Path, ...] = ()


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def _read(path: Path) -> _Source:
    about = path.stat()
    return _parsed(path, about.st_mtime_ns, about.st_size)


@functools.cache
def _parsed(path: Path, written_ns: int, size: int) -> _Source:
    content = path.read_bytes()
    if path.suffix != ".py":
        return _Source(hashlib.sha256(content).hexdigest())
    found = _Plain()
    try:
        found.add(ast.parse(content))
    except (SyntaxError, ValueError, RecursionError):  # Nothing that ran: it is only named in an import.
        return _Source(hashlib.sha256(content).hexdigest())
    named = (file for text in sorted(found.strings) for file in _data_files(text, path))
    return _Source(hashlib.sha256("\n".join(found.parts).encode()).hexdigest(), tuple(named))


@dataclass
class _Plain:
    """A syntax tree as lines, without what changes nothing; and the strings that are found on the way.

    Only what is there is written, so that versions of Python that add fields to the tree agree.
    """

    parts: list[str] = field(default_factory=list)
    strings: set[str] = field(default_factory=set)

    def add(self, node: Any) -> None:
        if isinstance(node, list):
            self.parts.append("[")
            for item in node:
                self.add(item)
            self.parts.append("]")
        elif isinstance(node, ast.AST):
            self._add_node(node)
        else:
            self.parts.append(repr(node))

    def _add_node(self, node: ast.AST) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return  # A docstring, of whatever it stands behind.
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            self.add(node.orelse)
            return
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.strings.add(node.value)
        self.parts.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
                self.parts.append(name)
                self.add(value)


def _data_files(text: str, path: Path) -> Iterator[Path]:
    if not text or len(text) > 80 or "/" in text or text.startswith(".") or Path(text).suffix in ("", ".py"):
        return
    if path.is_relative_to(ROOT):
        yield from _shipped_data().get(text, ())
    elif (beside := path.with_name(text)).is_file():
        yield beside


@functools.cache
def _shipped_data() -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "data").rglob("*.json")):
        found.setdefault(path.name, []).append(path)
    return found

"""Hashes of what something is made by: sources with all that they import, comments, docstrings and formatting apart.

Imports are found in the syntax tree, so that nothing has to be imported: those of functions as well, but not those for
type checkers. Of a package that a module only lies in, what its functions import is not followed: those lead from one
device to all others. A data file counts with the module that has its name as a string, if it lies beside it or in the
package's data. What is imported from outside the package counts where it is the user's own, not an installed library.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gpusched_env.closure import PACKAGE, ROOT, source

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
    found: dict[Path, bool] = {}
    ahead = [(_file(root), True) for root in roots]
    while ahead:
        path, late = ahead.pop()
        if path in known or (path in found and found[path] >= late):
            continue
        found[path] = late
        read = _read(path)
        found.update((file, True) for file in read.data if file not in known)
        for imported, is_late in read.imports:
            if late or not is_late:
                ahead += _places(imported, path)
    return frozenset(found)


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
    imports: tuple[tuple[str, bool], ...] = ()
    """Modules, or what is imported from them, and whether only a function does it."""
    data: tuple[Path, ...] = ()


def _file(root: str | Path) -> Path:
    found = source(root) if isinstance(root, str) else root.resolve()
    if found is None:
        raise FileNotFoundError(f"no source of {root}")
    return found


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
        found.add(ast.parse(content), late=False)
    except (SyntaxError, ValueError, RecursionError):  # Nothing that ran: it is only named in an import.
        return _Source(hashlib.sha256(content).hexdigest())
    named = (file for text in sorted(found.strings) for file in _data_files(text, path))
    return _Source(
        hashlib.sha256("\n".join(found.parts).encode()).hexdigest(), tuple(dict.fromkeys(found.imports)), tuple(named)
    )


@dataclass
class _Plain:
    """A syntax tree as lines, without what changes nothing; and what is found on the way.

    Only what is there is written, so that versions of Python that add fields to the tree agree.
    """

    parts: list[str] = field(default_factory=list)
    imports: list[tuple[str, bool]] = field(default_factory=list)
    strings: set[str] = field(default_factory=set)

    def add(self, node: Any, *, late: bool) -> None:
        if isinstance(node, list):
            self.parts.append("[")
            for item in node:
                self.add(item, late=late)
            self.parts.append("]")
        elif isinstance(node, ast.AST):
            self._add_node(node, late)
        else:
            self.parts.append(repr(node))

    def _add_node(self, node: ast.AST, late: bool) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None  # A docstring, of whatever it stands behind.
        if isinstance(node, ast.If) and ast.unparse(node.test).rpartition(".")[2] == "TYPE_CHECKING":
            return self.add(node.orelse, late=late)
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.imports += [(name, late) for name in _imported(node)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self.strings.add(node.value)
        self.parts.append(type(node).__name__)
        late = late or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != [] and name not in ("ctx", "kind", "type_comment"):
                self.parts.append(name)
                self.add(value, late=late)
        return None


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    base = "." * node.level + (node.module or "")
    return [f"{base}:{alias.name}" for alias in node.names]


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


def _places(imported: str, path: Path) -> Sequence[tuple[Path, bool]]:
    """The files that an import of ``path`` leads to, and whether what their functions import is followed."""
    base, _, name = imported.partition(":")
    if base.partition(".")[0] == PACKAGE:
        return _shipped(base, name)
    level = len(base) - len(base.lstrip("."))
    return _own(base[level:], name, [path.parents[level - 1]] if level else [path.parent, *_own_folders()])


@functools.cache
def _shipped(base: str, name: str) -> Sequence[tuple[Path, bool]]:
    below = f"{base}.{name}" if name and source(f"{base}.{name}") else base
    parts = below.split(".")
    # The package itself offers names from everywhere; nothing is made by those.
    modules = [".".join(parts[:length]) for length in range(2, len(parts) + 1)]
    return [(_file(module), module == below) for module in modules if source(module) and not _is_apart(below)]


def _own(base: str, name: str, folders: Sequence[Path]) -> Sequence[tuple[Path, bool]]:
    parts = [*filter(None, base.split(".")), name]
    for folder in folders:
        modules = [folder.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]
        files = [file for place in modules for file in (place / "__init__.py", place.with_suffix(".py"))]
        if found := [(file.resolve(), True) for file in files if file.is_file()]:
            return found
    return []


def _is_apart(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in APART)


def _own_folders() -> list[Path]:
    """Where a user's own modules are found: not those of Python and of what is installed."""
    libraries = [Path(place).resolve() for place in (sys.prefix, sys.base_prefix)]
    folders = [Path(place or ".").resolve() for place in sys.path]
    return [folder for folder in folders if not any(folder.is_relative_to(library) for library in libraries)]

"""Which sources something is made by: files with all that they import, directly or through others.

Imports are found in the text: nothing has to be imported for that. Those for type checkers do not count, nor those from
outside the package, unless they are a user's own and no installed library. What is imported under a name made at run
time is not found.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from gpusched_env.sources import PACKAGE, ROOT, is_shipped, read, remember


def closure(
    roots: Iterable[str | Path],
    *,
    at_once: bool = False,
    apart: tuple[str, ...] = (),
    known: frozenset[Path] = frozenset(),
) -> list[Path]:
    """The files of modules, of all that they import, and of the packages that imported ones lie in, by name.

    Of such a package, what its functions import is not followed: those of some lead from one device to all others.

    Args:
        roots: modules of this package (``gpusched_env.hardware.solo``), or files of a user.
        at_once: only what is imported when a module is, not what its functions import when they run.
        apart: modules that do not count, with all below them.
        known: files that do not count, nor what they import.

    Raises:
        FileNotFoundError: there is no such module.
    """
    found: dict[Path, bool] = {}
    ahead = [(_file(root), not at_once) for root in roots]
    while ahead:
        path, late = ahead.pop()
        if path in known or (path in found and found[path] >= late):
            continue
        found[path] = late
        for imported, is_late in read(path).imports:
            if late or not is_late:
                ahead += [(file, whole and not at_once) for file, whole in _places(imported, path, apart)]
    remember()
    return sorted(found)


def modules_of(folder: str) -> list[str]:
    """The modules in a folder of the package (``devices/compiled``) and in all folders below it."""
    return sorted(
        ".".join((PACKAGE, *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
        for path in (ROOT / folder).rglob("*.py")
    )


@functools.cache
def source(module: str) -> Path | None:
    """The file of a module of this package; ``None``: there is none."""
    path = ROOT.joinpath(*module.split(".")[1:])
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.is_file():
            return file
    return None


def _file(root: str | Path) -> Path:
    found = source(root) if isinstance(root, str) else root.resolve()
    if found is None:
        raise FileNotFoundError(f"no source of {root} under {ROOT}")
    return found


def _places(imported: str, path: Path, apart: tuple[str, ...]) -> Sequence[tuple[Path, bool]]:
    """The files that an import of ``path`` leads to, and whether what their functions import is followed."""
    base, _, name = imported.partition(":")
    if base.partition(".")[0] == PACKAGE:
        return _shipped(base, name, apart)
    if is_shipped(path):
        return ()
    level = len(base) - len(base.lstrip("."))
    return _own(base[level:], name, [path.parents[level - 1]] if level else [path.parent, *_own_folders()])


@functools.cache
def _shipped(base: str, name: str, apart: tuple[str, ...]) -> Sequence[tuple[Path, bool]]:
    below = f"{base}.{name}" if name and source(f"{base}.{name}") else base
    if any(below == other or below.startswith(f"{other}.") for other in apart):
        return ()
    parts = below.split(".")
    # The package itself offers names from everywhere; nothing is made by those.
    modules = [".".join(parts[:length]) for length in range(2, len(parts) + 1)]
    return [(_file(module), module == below) for module in modules if source(module)]


def _own(base: str, name: str, folders: Sequence[Path]) -> Sequence[tuple[Path, bool]]:
    parts = [*filter(None, base.split(".")), name]
    for folder in folders:
        modules = [folder.joinpath(*parts[:length]) for length in range(1, len(parts) + 1)]
        files = [file for place in modules for file in (place / "__init__.py", place.with_suffix(".py"))]
        if found := [(file.resolve(), True) for file in files if file.is_file()]:
            return found
    return ()


def _own_folders() -> list[Path]:
    """Where a user's own modules are found: not those of Python and of what is installed."""
    libraries = [Path(place).resolve() for place in (sys.prefix, sys.base_prefix)]
    folders = [Path(place or ".").resolve() for place in sys.path]
    return [folder for folder in folders if not any(folder.is_relative_to(library) for library in libraries)]

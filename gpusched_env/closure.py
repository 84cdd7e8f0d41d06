"""What a module can be built from: the sources of this package that it imports, directly or through others.

Imports are found in the text, so that nothing has to be imported to find them. What is imported under a name made at
run time is not found.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent
PACKAGE: Final = ROOT.name

_IMPORTS: Final = re.compile(
    rf"^([ \t]*)(?:from[ \t]+({PACKAGE}[\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)|import[ \t]+({PACKAGE}[\w., \t]*))",
    re.MULTILINE,
)
_NAMES: Final = re.compile(r"#[^\n]*|(\w+)(?:[ \t]+as[ \t]+\w+)?")


def closure(modules: Iterable[str], *, at_once: bool = False) -> list[Path]:
    """The source files of modules (``gpusched_env.hardware.solo``), of all that they import, and of the packages that
    these lie in, sorted by name.

    Args:
        at_once: only what is imported when a module is, not what its functions import when they run.

    Raises:
        FileNotFoundError: there is no such module.
    """
    found: set[Path] = set()
    ahead = list(modules)
    for module in ahead:
        if source(module) is None:
            raise FileNotFoundError(f"no source of {module} under {ROOT}")
    while ahead:
        module = ahead.pop()
        path = source(module)
        if path is None or path in found:
            continue
        found.add(path)
        if module != PACKAGE:
            # The package itself offers names from everywhere; no module is built from those.
            ahead += [*imports(path, at_once), module.rpartition(".")[0]]
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


@functools.cache
def imports(path: Path, at_once: bool) -> tuple[str, ...]:
    """The modules of this package that a file names in its imports; what is imported from them may be modules too."""
    named: list[str] = []
    for indent, base, names, plain in _IMPORTS.findall(path.read_text(encoding="utf-8")):
        if at_once and indent:
            continue
        if plain:
            named += [part.split()[0] for part in plain.split(",") if part.split()]
            continue
        named.append(base)
        # A name that is no module has no source of its own.
        named += [f"{base}.{name}" for name in _NAMES.findall(names) if name]
    return tuple(named)

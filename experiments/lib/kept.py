"""What is kept on disk of compiled functions: to list and to clear."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from gpusched_env.caching import trusted_folders
from gpusched_env.closure import modules_of, source
from gpusched_env.compiling import sources_key
from gpusched_env.display.table import Table
from gpusched_env.sources import ROOT

LINKED: Final = ("agents", "baselines", "experiments")
"""Rooms that lie beside the package, and are imported through it."""


class KeptRuns(NamedTuple):
    """A file with a function that was compiled for some types."""

    folder: str
    """Of the sources, in the package."""
    unit: str
    """Module and function."""
    size: int
    """Bytes."""
    stale: bool
    """Whether a source has changed since."""
    file: Path


def list_kept() -> list[KeptRuns]:
    """All files, by folder and name. Folders that others can write to are not looked at."""
    found: list[KeptRuns] = []
    for package in dict.fromkeys(module.rpartition(".")[0] for room in ("", *LINKED) for module in modules_of(room)):
        folder = "/".join(package.split(".")[1:])
        for place in trusted_folders(ROOT / folder / "__init__.py"):
            found += [_kept(file, folder, package) for file in place.glob("*-py*.nbc")]
    return sorted(found)


def _kept(file: Path, folder: str, package: str) -> KeptRuns:
    unit, key, _ = file.name.rsplit("-", 2)
    module = f"{package}.{unit.partition('.')[0]}"
    return KeptRuns(folder, unit, file.stat().st_size, source(module) is None or key != sources_key(module), file)


def clear_kept() -> list[KeptRuns]:
    """Remove all files, and give what they were."""
    found = list_kept()
    for each in found:
        each.file.unlink(missing_ok=True)
    return found


def kept_table(found: Sequence[KeptRuns]) -> Table:
    """A line a file."""
    rows = [[each.folder, each.unit, f"{each.size / 1e3:.0f}", "stale" if each.stale else ""] for each in found]
    total = f"{len(found)} units, {sum(each.size for each in found) / 1e6:.1f} MB"
    return Table(f"Compiled: {total}", ("sources", "unit", "kB", ""), rows)

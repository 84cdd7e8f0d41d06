"""Recorded workloads and measurements shipped with the package; ``README.md`` says how they were made."""

from __future__ import annotations

import functools
import json
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.workload.workload import Workload, decode_workload

_SUFFIXES = (".workload.json.gz", ".workload.json")
"""Recordings are gzipped; small hand-written workloads stay readable."""


def _files() -> dict[str, Traversable]:
    folder = resources.files("gpusched_env.data") / "workloads"
    files = {}
    for file in folder.iterdir():
        for suffix in _SUFFIXES:
            if file.name.endswith(suffix):
                files[file.name.removesuffix(suffix)] = file
    return files


def recorded_names() -> list[str]:
    """Names of the shipped workloads, sorted."""
    return sorted(_files())


@functools.lru_cache(maxsize=32)
def read_recorded(name: str) -> Workload:
    """A shipped workload.

    Raises:
        InputError: no workload of that name.
    """
    files = _files()
    if name not in files:
        raise InputError(f"unknown workload {name!r}; {did_you_mean(name, files)}")
    return decode_workload(files[name].read_bytes(), f"data/workloads/{files[name].name}")


@functools.cache
def stored(folder: str, file: str) -> Any:
    """What a JSON file of one of the folders here holds: figures that were published, or fitted to measurements.

    Whoever names a file by its name alone has it in the hash of what made its results.
    """
    return json.loads((resources.files("gpusched_env.data") / folder / file).read_text(encoding="utf-8"))

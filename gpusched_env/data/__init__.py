"""Recorded workloads and measurements shipped with the package; ``README.md`` says how they were made."""

from __future__ import annotations

import functools
from importlib import resources

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.workload.workload import Workload, decode_workload

_SUFFIX = ".workload.json.gz"


def recorded_names() -> list[str]:
    """Names of the shipped workloads, sorted."""
    folder = resources.files("gpusched_env.data") / "workloads"
    return sorted(p.name.removesuffix(_SUFFIX) for p in folder.iterdir() if p.name.endswith(_SUFFIX))


@functools.lru_cache(maxsize=32)
def read_recorded(name: str) -> Workload:
    """A shipped workload.

    Raises:
        InputError: no workload of that name.
    """
    if name not in recorded_names():
        raise InputError(f"unknown workload {name!r}; {did_you_mean(name, recorded_names())}")
    data = (resources.files("gpusched_env.data") / "workloads" / f"{name}{_SUFFIX}").read_bytes()
    return decode_workload(data, f"data/workloads/{name}{_SUFFIX}")

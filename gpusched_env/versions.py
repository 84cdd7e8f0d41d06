"""What a result was made with."""

from __future__ import annotations

import functools
import importlib.metadata
import platform

_PACKAGES = (
    *("gpusched-env", "numpy", "numba", "simpy", "gymnasium", "msgspec", "torch", "cupy-cuda13x"),
    *("stable-baselines3", "sb3-contrib", "cmaes"),
)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that can change a result, where installed."""
    return dict(_versions())


@functools.cache
def _versions() -> dict[str, str]:
    """The versions, read once: every candidate of a search gets them, and files of packages are slow to parse."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found

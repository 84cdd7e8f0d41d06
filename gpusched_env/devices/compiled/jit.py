"""How the functions of this device are compiled.

``inlined`` functions are small and become part of their callers; ``called`` ones are left to the compiler's
judgement. Neither can be called from Python, nor is cached: only the functions that they end up in are (see
:mod:`~gpusched_env.devices.compiled.entry`). No function allocates, so Numba's reference counting is off
(``_nrt``, three times as fast).
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from numba import njit

inlined = njit(_nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
called = njit(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)

F = TypeVar("F", bound=Callable[..., object])

SOURCES = ("devices/compiled", "envs", "hardware", "scheduling", "workload")
"""Folders whose files end up in compiled functions."""


def cached_by_source(function: F) -> F:
    """Make Numba's cache of a function depend on all sources, not only on the file that the function is in.

    The name of the cache file is made of the function's qualified name.
    """
    function.__qualname__ = f"{function.__qualname__}-{_stamp()}"
    return function


@functools.cache
def _stamp() -> str:
    """A hash that changes when a source file does."""
    root = Path(__file__).parents[2]
    files = sorted(path for folder in SOURCES for path in (root / folder).glob("*.py"))
    states = [(path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in files]
    return hashlib.sha256(repr(states).encode()).hexdigest()[:12]


@contextlib.contextmanager
def notice_compilation(what: str) -> Iterator[None]:
    """Say on stderr what is being compiled if the block takes more than a second (then nothing was cached)."""
    text = f"gpusched: compiling {what} (about half a minute, once after an installation) ...\n"
    timer = threading.Timer(1.0, lambda: sys.stderr.write(text))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()

"""How the functions of this device are compiled.

``inlined`` functions are small and become part of their callers; ``called`` ones are left to the compiler's
judgement. Neither can be called from Python, nor is cached: only the functions that they end up in are (see
:mod:`~gpusched_env.devices.compiled.entry`). No function allocates, so Numba's reference counting is off
(``_nrt``, three times as fast).
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from numba import njit

inlined = njit(_nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
called = njit(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


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

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
from numba.core import event

inlined = njit(_nrt=False, forceinline=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
called = njit(_nrt=False, no_cpython_wrapper=True, no_cfunc_wrapper=True)


@contextlib.contextmanager
def notice_compilation(what: str) -> Iterator[None]:
    """Say on stderr what is being compiled, if the block compiles anything and that takes more than a second."""
    listener = _Notice(f"gpusched: compiling {what} (about half a minute, once after an installation) ...\n")
    with event.install_listener("numba:compile", listener):
        try:
            yield
        finally:
            listener.stop()


class _Notice(event.Listener):
    """Writes a text a second after the first compilation began. What is read from the cache is no compilation."""

    def __init__(self, text: str) -> None:
        self._timer = threading.Timer(1.0, lambda: sys.stderr.write(text))
        self._timer.daemon = True
        self._begun = False

    def on_start(self, event: object) -> None:
        if not self._begun:
            self._begun = True
            self._timer.start()

    def on_end(self, event: object) -> None:
        """The first of many compilations may take less than a second."""

    def stop(self) -> None:
        self._timer.cancel()

"""A notice while functions of this device are compiled."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

from gpusched_env.numba_internals import event


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

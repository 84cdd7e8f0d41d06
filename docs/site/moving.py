"""A Sphinx extension: a build says every few seconds how long it has taken, however long a page takes."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from sphinx.application import Sphinx

EVERY_S = 4.0


def tell(app: Sphinx) -> None:
    """Begin to say it, until the build ends."""
    began, ended = time.monotonic(), threading.Event()

    def lines() -> None:
        while not ended.wait(EVERY_S):
            print(f"make docs: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    threading.Thread(target=lines, daemon=True).start()
    app.connect("build-finished", lambda app, error: ended.set())


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("builder-inited", tell, priority=1)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}

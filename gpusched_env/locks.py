"""Files that one process at a time holds: it lets go of them when it ends, however it ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

try:
    import fcntl

    LOCKS = True
except ImportError:  # Of POSIX only: elsewhere nobody holds anything.
    LOCKS = False

QUIETLY_S: Final = 1.0
"""Waits for another process that are shorter are not worth a line."""


def hold(path: Path, say: Callable[[str], object] | None = None) -> IO[bytes]:
    """Hold a lock file, which is made, until what is returned is closed.

    Args:
        path: of the file; it may be removed while it is held.
        say: is told the number of the process that holds it, if that lasts, before it is waited for.

    Raises:
        BlockingIOError: another process holds it, and without ``say`` it is not waited for.
        OSError: it cannot be opened.
    """
    with contextlib.ExitStack() as undo:
        while True:
            file = undo.enter_context(path.open("a+b"))
            _take(file, say)
            with contextlib.suppress(FileNotFoundError):
                # It is another file by now if the one who had it has just removed it.
                if os.path.samestat(path.stat(), os.fstat(file.fileno())):
                    break
        file.truncate(0)
        file.write(b"%d" % os.getpid())
        file.flush()
        undo.pop_all()
        return file


def _take(file: IO[bytes], say: Callable[[str], object] | None) -> None:
    until = time.monotonic() + QUIETLY_S
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if say is None:
                raise
        if time.monotonic() >= until:
            break
        time.sleep(QUIETLY_S / 20)
    file.seek(0)
    say(file.read().decode())
    fcntl.flock(file, fcntl.LOCK_EX)

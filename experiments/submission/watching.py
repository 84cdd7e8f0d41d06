"""What a submitted scheduler does besides deciding: files that it opens, the time that it takes, and what is refused.

The interpreter tells of files, connections, processes and looks into its memory (:func:`sys.addaudithook`). What code
of the submission's folder causes is looked at. That finds mistakes and simple cheats. It is no prison, as Python has
none: a row names the hash of its file, for others to read.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final

from gpusched_env.errors import GpuschedError, InputError
from gpusched_env.sources import ROOT

AT_ONCE: Final = {
    "ctypes.": "addresses memory (ctypes)",
    "gc.": "searches the interpreter's objects (gc)",
    "sys._getframe": "looks through the interpreter's frames",
    "sys._current_frames": "looks through the interpreter's frames",
    "sys.settrace": "traces other code",
    "sys.setprofile": "traces other code",
}
"""Refused where the submission's own code asks for it: events by how their names begin, and what they mean."""
ANYHOW: Final = {
    "socket.": "uses the network",
    "subprocess.": "starts a process",
    "os.system": "starts a process",
    "os.exec": "starts a process",
    "os.fork": "starts a process",
    "os.posix_spawn": "starts a process",
    "os.remove": "deletes a file",
    "os.rename": "moves a file",
}
"""Refused also where a library does it for the submission."""
WRITES: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
AGAIN_S: Final = 1.0
"""Processor seconds after which whoever has caught the end of its time is ended again."""
PYTHON: Final = tuple({sys.prefix, sys.base_prefix, str(ROOT), "/proc", "/sys", "/dev", "/etc"})
"""Folders of Python, its libraries, this package and the system."""


@dataclass
class Watch:
    """What was seen of the code in a folder."""

    folder: Path
    opened: set[str] = field(default_factory=set)
    """Names of the data files beside it that were opened."""
    refused: str = ""
    """What it did that is refused; empty: nothing."""

    def told(self, event: str, arguments: tuple[Any, ...], frame: FrameType | None) -> None:
        """Something happened that the interpreter tells of.

        Raises:
            InputError: the submission did it, and it is refused.
        """
        while frame is not None and frame.f_globals.get("__name__") == "ctypes":
            frame = frame.f_back
        if frame is None:
            return
        if event == "open":
            self._open(arguments, frame)
        elif (what := _meaning(event, AT_ONCE)) and self._is_own(frame):
            self._refuse(what, frame)
        elif (what := _meaning(event, ANYHOW)) and (own := self._own(frame)):
            self._refuse(what, own)

    def check(self) -> None:
        """
        Raises:
            InputError: something was refused, whether or not the submission caught the error.
        """
        if self.refused:
            raise InputError(self.refused)

    def _open(self, arguments: tuple[Any, ...], frame: FrameType) -> None:
        name, _, flags = arguments
        if not isinstance(name, str) or "__pycache__" in name or not (own := self._own(frame)):
            return
        path = Path(os.path.abspath(name))
        if isinstance(flags, int) and flags & WRITES:
            self._refuse(f"writes {path.name}", own)
        if path.is_relative_to(self.folder):
            if path.suffix != ".py":
                self.opened.add(path.relative_to(self.folder).as_posix())
        elif not str(path).startswith(PYTHON):
            self._refuse(f"reads {path.name}, which does not lie beside it", own)

    def _own(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the submission, if it has one."""
        while frame is not None and not self._is_own(frame):
            frame = frame.f_back
        return frame

    def _is_own(self, frame: FrameType) -> bool:
        name = frame.f_code.co_filename
        return name.startswith(f"{self.folder}{os.sep}") and not name.startswith(PYTHON)

    def _refuse(self, what: str, frame: FrameType) -> None:
        where = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno}"
        self.refused = self.refused or f"{where}: {what}; a submission decides by what it is shown and files beside it"
        raise InputError(self.refused)


def _meaning(event: str, of: dict[str, str]) -> str:
    return next((meaning for start, meaning in of.items() if event.startswith(start)), "")


class _Hook:
    """The one hook of this process, as none can be taken away; it looks while there is a watch."""

    def __init__(self) -> None:
        self.watch: Watch | None = None
        self._installed = False
        self._thread = 0

    def begin(self, watch: Watch) -> None:
        """Tell ``watch`` from now on, of this thread."""
        self.watch, self._thread = watch, threading.get_ident()
        if not self._installed:
            self._installed = True
            sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        watch, self.watch = self.watch, None  # What is done here is not told.
        try:
            if watch is not None and threading.get_ident() == self._thread:
                watch.told(event, arguments, sys._getframe(1))
        finally:
            self.watch = watch


_HOOK: Final = _Hook()


@contextlib.contextmanager
def watching(folder: Path | None) -> Iterator[Watch]:
    """Watch the code in a folder within the context; ``None``: nothing is submitted that has code.

    Raises:
        InputError: it did what is refused.
    """
    watch = Watch((folder or ROOT).resolve())
    if folder is None:
        yield watch
        return
    _HOOK.begin(watch)
    try:
        yield watch
    except GpuschedError:
        watch.check()
        raise
    finally:
        _HOOK.watch = None
    watch.check()


@contextlib.contextmanager
def limited(limit_s: float, what: str) -> Iterator[None]:
    """Within the context, so many processor seconds are allowed.

    Raises:
        InputError: it took longer; an endless loop is ended.
    """
    said = f"{what}: took more than {limit_s:g} s of processor time, which the protocol allows an episode"

    def end(number: int, frame: FrameType | None) -> None:
        raise InputError(said)

    can_end = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
    begun_s = time.process_time()
    before = signal.signal(signal.SIGPROF, end) if can_end else None
    try:
        if can_end:
            signal.setitimer(signal.ITIMER_PROF, limit_s, AGAIN_S)
        yield
    finally:
        if can_end:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, before)
    if time.process_time() - begun_s > limit_s:
        raise InputError(said)

"""When compiled code is built: in other processes, while this one goes on without it or waits.

What is built are *units*: compiled functions that are kept on disk. A process that plays can do without them, on the
reference device and with plain Python, as both give the same to the last digit. So the first call answers at once,
and the next episode after the build is a fast one. The environment variable ``GPUSCHED_COMPILE`` says what is wanted:

* ``background``, as without it: go on meanwhile.
* ``wait``: whoever needs compiled code waits until it is built.
* ``off``: nothing compiled is used, and nothing is built.

As many processes build as there are cores, side by side, each what no other has begun. They go on when the process
ends that has started them: what they build serves the next one. Of several that are started for the same program one
works and the others wait, so that nobody builds twice.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import os
import pickle
import subprocess
import sys
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from multiprocessing import current_process
from pathlib import Path
from typing import IO, Any, Final

from gpusched_env.caching import KeptFunctions, keeping_folder
from gpusched_env.errors import GpuschedError, InputError, did_you_mean
from gpusched_env.locks import LOCKS, hold

VARIABLE: Final = "GPUSCHED_COMPILE"
WAIT, BACKGROUND, OFF = "wait", "background", "off"
LOOK_S: Final = 0.2
"""How often a process that waits looks what was built."""
TELL_S: Final = 4.0
"""How often it tells, where a line cannot be written over."""
LEAST_URGENT: Final = 19


@functools.cache
def choice() -> str:
    """What ``GPUSCHED_COMPILE`` says, when this process first asks.

    Raises:
        InputError: it says something else.
    """
    chosen = os.environ.get(VARIABLE, "") or BACKGROUND
    if chosen not in (WAIT, BACKGROUND, OFF):
        raise InputError(f"{VARIABLE} is {chosen!r}; {did_you_mean(chosen, (WAIT, BACKGROUND, OFF))}")
    return chosen


@dataclass(frozen=True)
class Unit:
    """A compiled function and the types of its arguments."""

    kept: KeptFunctions
    build: Callable[[], object]
    """Compiles it, or finds it on disk."""
    one_of_several: bool = False
    """Whether it may be kept for other types."""

    def is_kept(self) -> bool:
        """Whether nothing is to be built."""
        return not self.one_of_several and self.kept.is_kept()


Units = Sequence[Unit]
"""Where they stand is written ``module:name``, for other processes."""


def units_at(places: Iterable[str]) -> list[Unit]:
    """The units that stand in modules, as ``module:name``; with ``@`` and types, a function that was wanted."""
    found: list[Unit] = []
    for place in places:
        place, _, kinds = place.partition("@")
        module, _, name = place.partition(":")
        stands = getattr(importlib.import_module(module), name)
        if kinds:
            stands = [Unit(stands.kept, functools.partial(stands.whole.compile, pickle.loads(b64decode(kinds))), True)]
        found += stands
    return found


def is_built(units: Units) -> bool:
    """Whether all are kept on disk, or have no place there: then each process compiles for itself."""
    return all(unit.is_kept() for unit in units)


class Build:
    """The build of the units at some places, for this process."""

    def __init__(self, places: Sequence[str]) -> None:
        self.places = places
        self.units = units_at(places)
        self._began = time.monotonic()
        self._told = self._looked = 0.0
        self._owner = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None
        self.failed = False
        """Whether it has ended without success."""
        self._done = False

    def is_ready(self) -> bool:
        """Whether compiled code is to be used now; begins to build it if it is not there.

        Raises:
            InputError: ``GPUSCHED_COMPILE`` is neither of its values.
        """
        if choice() == OFF or self._done:
            return self._done
        if self._process is not None and time.monotonic() - self._looked < LOOK_S:
            return False
        self._looked = time.monotonic()
        if is_built(self.units):
            if self._process is not None:
                self._tell(f"the compiled device is built ({self._seconds()}) and takes over")
            self._done = True
            return True
        if choice() == WAIT:
            self.wait()
            return True
        self._go_on_meanwhile()
        return False

    def wait(self) -> None:
        """Return when all units are kept on disk; what cannot be kept, or fails, this process compiles itself.

        Raises:
            InputError: nothing is to be built, as ``GPUSCHED_COMPILE`` says.
        """
        if choice() == OFF:
            raise InputError(f"{VARIABLE} is {OFF!r}, and this needs compiled code: use {WAIT!r} or {BACKGROUND!r}")
        if self._done or is_built(self.units):
            self._done = True
            return
        if self._process is None:
            self._start()
        line = _Line()
        with contextlib.closing(line):
            while self._process is not None and self._process.poll() is None and not is_built(self.units):
                line.show(f"gpusched: waiting for the compiled device: {self._progress()}")
                time.sleep(LOOK_S)
        self._done = is_built(self.units)

    def _go_on_meanwhile(self) -> None:
        if self._process is None or self._owner != os.getpid():
            self._start()
            self._tell(
                f"the reference device answers while the compiled one is built in the background: {self._progress()} "
                f"({VARIABLE}={WAIT} waits for it)"
            )
        elif self._process.poll() is None:
            if time.monotonic() - self._told >= TELL_S:
                self._tell(f"the compiled device is being built: {self._progress()}")
        elif not self.failed:
            self.failed = True
            self._tell(f"the compiled device could not be built; the reference device goes on: {self._reason()}")

    def _start(self) -> None:
        self._began, self._owner = time.monotonic(), os.getpid()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the build)
        self._process = start_builder(self.places, LEAST_URGENT if choice() == BACKGROUND else 0, self._said)

    def _progress(self) -> str:
        built = sum(unit.is_kept() for unit in self.units)
        return f"{built} of {len(self.units)} parts, {self._seconds()}"

    def _seconds(self) -> str:
        return f"{time.monotonic() - self._began:.0f} s"

    def _reason(self) -> str:
        assert self._said is not None
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        told = [line for line in lines if "rror" in line] or lines
        return told[-1] if told else f"the process that built it ended with status {self._process_status()}"

    def _process_status(self) -> int | None:
        return None if self._process is None else self._process.returncode

    def _tell(self, text: str) -> None:
        self._told = time.monotonic()
        if is_first():
            sys.stderr.write(f"gpusched: {text}\n")


@functools.cache
def build_of(*places: str) -> Build:
    """The build of the units at some places: one a process."""
    return Build(places)


def is_first() -> bool:
    """Whether this process is none of those that libraries start for a part of the work: these say nothing."""
    return current_process().name == "MainProcess"


_wanted: Final[dict[str, bool]] = {}
"""Functions that Python runs as they stand, and whether they are being built."""
_builders: Final[list[subprocess.Popen[bytes]]] = []


def want(place: str, kinds: Any) -> None:
    """Let a function be built for arguments of some types, soon: with others that are wanted by then.

    Nothing is begun at the first call. A process that ends before a second one needs none of them.
    """
    if choice() == OFF:
        return
    place = f"{place}@{b64encode(pickle.dumps(kinds)).decode()}"
    if place in _wanted and not any(builder.poll() is None for builder in _builders):
        begun = [each for each, is_begun in _wanted.items() if not is_begun]
        _wanted.update(dict.fromkeys(begun, True))
        if begun:
            _builders[:] = [start_builder(begun, LEAST_URGENT)]
    _wanted.setdefault(place, False)


class _Line:
    """A line on stderr that is written over; where it cannot be, one now and then."""

    def __init__(self) -> None:
        self._over = sys.stderr.isatty()
        self._length = 0
        self._next = time.monotonic() + LOOK_S

    def show(self, text: str) -> None:
        """Write the line anew, if it is time."""
        now = time.monotonic()
        if now < self._next or not is_first():
            return
        self._next = now + (LOOK_S if self._over else TELL_S)
        sys.stderr.write(f"\r{text.ljust(self._length)}" if self._over else f"{text}\n")
        sys.stderr.flush()
        self._length = len(text)

    def close(self) -> None:
        """Leave the line to others."""
        if self._over and self._length:
            sys.stderr.write(f"\r{' ' * self._length}\r")
            sys.stderr.flush()


# ---- the processes that build ----------------------------------------------------------------------------------------


def start_builder(places: Sequence[str], nice: int, said: Any = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A process that builds what stands at ``places``; it goes on when this one ends.

    Args:
        nice: how much less urgent it is than this one.
        said: file of its complaints.
    """
    return subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import main; main()", str(nice), *places],
        env={**os.environ, VARIABLE: WAIT, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
    )


def main() -> None:
    """What such a process does: with others, each builds what nobody else builds, in turn."""
    nice, *places = sys.argv[1:]
    with contextlib.suppress(OSError, AttributeError):
        os.nice(int(nice))
    # A compiler makes millions of objects, and throws few away before it ends.
    gc.disable()
    if places[0] == _HELPER:
        build(units_at(places[1:]))
        return
    with _alone():
        units = units_at(places)
        if is_built(units):
            return
        helpers = [start_builder([_HELPER, *places], 0) for _ in range((os.cpu_count() or 1) - 1)]
        build(units)
        for helper in helpers:
            helper.wait()


_HELPER: Final = "-"
"""In place of the first of the places: the process is one of several."""


@contextlib.contextmanager
def _alone() -> Any:
    """While no other process builds."""
    folder = keeping_folder(Path(__file__))
    if not LOCKS or folder is None:
        yield
        return
    with hold(folder / "building.lock", lambda _: None):
        yield


def build(units: Units) -> None:
    """Compile those that nobody else compiles at this moment, then all that are still left.

    Raises:
        GpuschedError: one cannot be kept.
    """
    for unit in units:
        if not unit.is_kept() and not unit.kept.is_compiled_elsewhere():
            unit.build()
    for unit in units:
        if not unit.is_kept():
            unit.build()
            if not unit.kept.is_kept():
                raise GpuschedError(f"{unit.kept.name} cannot be kept on disk")

"""The first compilation of the device, on two cores: some of its units in another process.

The other process leaves them in Numba's cache on disk. Where nothing can be kept there, or there is one core only, this
process compiles everything.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
from typing import Final

from gpusched_env.compiling import is_kept

ELSEWHERE: Final = ("settle", "end", "dispatch")
"""Units of :func:`gpusched_env.devices.compiled.entry.compile_units` that the other process compiles: half the work."""

_other: subprocess.Popen[bytes] | None = None


def start_building() -> None:
    """Begin to build, without waiting, unless that has begun or was done before."""
    global _other
    from gpusched_env.devices.compiled.entry import UNITS

    if _other is None and (os.cpu_count() or 1) > 1 and not all(is_kept(UNITS[name]) for name in ELSEWHERE):
        _other = subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import build; build()"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(_stop_other_process)


def await_building() -> None:
    """Wait until the other process has ended; whatever it could not do is left to this one."""
    if _other is not None:
        _other.wait()


def _stop_other_process() -> None:
    """End the other process, as this one ends and nobody waits for it any more."""
    if _other is not None and _other.poll() is None:
        _other.terminate()
        _other.wait()


def build() -> None:
    """What the other process does."""
    from gpusched_env.devices.compiled.entry import compile_unit

    for name in ELSEWHERE:
        compile_unit(name)

"""How functions of this package are compiled, and when what Numba has kept on disk is used again.

* :func:`law` marks arithmetic that plain Python and compiled functions share, :func:`procedure` larger pieces.
* :func:`inlined` and :func:`called` mark functions that only other compiled functions call: small ones, which become
  part of their callers, and those that are left to the compiler's judgement; :func:`part` those with other options.
* :func:`cached` and :func:`cached_callback` are for compiled functions that Python calls. The others end up in these,
  and need no cache of their own.

Compiled functions write into arrays that they are given, and neither make nor return any. So Numba's reference counting
is off: on arrays it takes a tenth to a quarter of a step's time, on the records of the device two thirds. The exception
says ``_nrt=True``.

Numba by itself looks at the file that a function is in. Here the name of a cache file holds a hash of the contents of
all sources that can end up in the function, so that an edit to any of them is seen by the next process.

With ``GPUSCHED_CHECK_INDICES=1`` in the environment everything is compiled so that it checks every index of an array,
and of the compiled device's tables (:mod:`gpusched_env.devices.compiled.memory`): several times slower, for hunting
faults. Such builds are kept beside the usual ones.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

from numba import config, njit
from numba.extending import register_jitable

from gpusched_env.caching import KeptFunctions
from gpusched_env.closure import ROOT, closure, modules_of
from gpusched_env.numba_internals import PartCompiler, WholeCompiler, callback, event, keep_in

F = TypeVar("F", bound=Callable[..., Any])

CHECK_INDICES: Final = os.environ.get("GPUSCHED_CHECK_INDICES", "") not in ("", "0")
"""Whether this process runs compiled code that checks every index."""
if CHECK_INDICES:
    config.BOUNDSCHECK = 1  # type: ignore[attr-defined]  # Of all functions; numba.config is filled at run time.
BUILD: Final = "checked-" if CHECK_INDICES else ""
"""Prefix of the names under which compiled functions are kept: those that check indices are kept apart."""

_INNER: Final[dict[str, Any]] = {
    "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": PartCompiler,
}  # fmt: skip


def part(**options: Any) -> Callable[[F], F]:
    """Mark a function that only compiled functions call, with ``options`` of ``njit``."""
    return functools.partial(_part, options)


def _part(options: dict[str, Any], function: F) -> F:
    compiled: F = njit(**{**_INNER, **options})(function)
    return compiled


def called(function: F) -> F:
    """Mark a function that only compiled functions call; the compiler decides whether it becomes part of them."""
    return _part({}, function)


def inlined(function: F) -> F:
    """Mark a small function that becomes part of the compiled functions that call it."""
    return _part({"forceinline": True}, function)


def law(function: F) -> F:
    """A function of plain numbers that stays one of Python, and becomes part of compiled functions that call it.

    Both compute the same, bit by bit, as long as Python raises no ``OverflowError``. It gets numbers, sequences of
    numbers (or arrays) and named tuples of numbers, and gives numbers or named tuples.
    """
    register_jitable(forceinline=True, **_INNER)(function)
    return function


def procedure(function: F) -> F:
    """A function on records or objects that stays one of Python, and is compiled where compiled functions call it.

    For what both kinds of devices do step by step (:mod:`gpusched_env.workload.host`); the compiler decides whether it
    becomes part of its callers.
    """
    register_jitable(**_INNER)(function)
    return function


def cached(signature: Any = None, **options: Any) -> Callable[[F], F]:
    """Compile a function with Numba's ``njit`` and keep the result on disk.

    Args:
        signature: the only one to compile, at once; none: those that are called.
        options: of ``njit``, without ``cache``.
    """
    return functools.partial(_njit, signature, {"_nrt": False, "pipeline_class": WholeCompiler, **options})


def cached_callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function, at once, with Numba's ``cfunc`` and keep the result on disk, with its ``address``."""
    return functools.partial(_cfunc, signature)


def _njit(signature: Any, options: dict[str, Any], function: F) -> F:
    compiled: Any = njit(**options)(function)
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # It is told to compile nothing.
        return function
    _keep(compiled, function)
    if signature is not None:
        compiled.compile(signature)
        compiled.disable_compile()
    made: F = compiled
    return made


def _cfunc(signature: Any, function: Callable[..., Any]) -> Any:
    compiled: Any = callback(function, signature)
    _keep(compiled, function)
    compiled.compile()
    return compiled


def _keep(compiled: Any, function: Any) -> None:
    kept = _kept(function)
    keep_in(compiled, kept, kept.releasing(compiled.compile))


def _kept(function: Any) -> KeptFunctions:
    name = f"{function.__module__.split('.')[-1]}.{BUILD}{function.__qualname__}"
    return KeptFunctions(function, re.sub("[<>]", "", name), sources_key(function.__module__))


def is_kept(function: Any) -> bool:
    """Whether a function to be compiled was kept on disk before, as its sources are now, or none can be kept."""
    return _kept(function).is_kept()


@functools.cache
def sources_key(module: str) -> str:
    """A hash of all that compiled functions of a module can be built from: the modules of its folder, and all that
    these import.

    Compiled functions know what their module has imported; what a function imports when it runs does not get into them.
    """
    folder = "/".join(module.split(".")[1:-1])
    return _digest(closure(modules_of(folder), at_once=True)).hex()[:12]


def _digest(files: list[Path]) -> bytes:
    digest = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(ROOT)} {len(content)}\n".encode() + content)
    return digest.digest()


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
        """Nothing is stopped here: the first of many compilations may take less than a second."""

    def stop(self) -> None:
        self._timer.cancel()

"""How functions of this package are compiled, and when what Numba has kept on disk is used again.

* :func:`law` marks arithmetic that plain Python and compiled functions share, :func:`procedure` larger pieces.
* :func:`inlined` and :func:`called` mark functions that only other compiled functions call: small ones, which become
  part of their callers, and those that are left to the compiler's judgement; :func:`part` those with other options.
* :func:`cached`, :func:`native` and :func:`cached_callback` are for compiled functions that Python calls. The others
  end up in these, and need no cache of their own. Of what is :func:`cached`, Python runs the text as long as it is not
  built (:mod:`gpusched_env.building`); what is :func:`native` works on addresses, and is always compiled.

Compiled functions write into arrays that they are given, and neither make nor return any. So Numba's reference counting
is off: on arrays it takes a tenth to a quarter of a step's time, on the records of the device two thirds. The exception
says ``_nrt=True``.

Numba by itself looks at the file that a function is in, and at when it was written. Here the name of a cache file holds
a hash of what all sources say that can end up in the function. An edit to any of them is seen by the next process; one
to a comment, a docstring or a module that the function's own does not import is none. Only the lines that errors of
compiled code name are those of its compilation.

With ``GPUSCHED_CHECK_INDICES=1`` in the environment everything is compiled so that it checks every index of an array,
and of the compiled device's tables (:mod:`gpusched_env.devices.compiled.memory`): several times slower, for hunting
faults. Such builds are kept beside the usual ones.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
from numba import config, njit

from gpusched_env.building import OFF, WAIT, Unit, choice, want
from gpusched_env.caching import KeptFunctions, NotKept
from gpusched_env.closure import closure
from gpusched_env.numba_internals import PartDispatcher, WholeCompiler, callback, compile_as, event, keep_in
from gpusched_env.sources import PACKAGE, hash_of

F = TypeVar("F", bound=Callable[..., Any])

CHECK_INDICES: Final = os.environ.get("GPUSCHED_CHECK_INDICES", "") not in ("", "0")
"""Whether this process runs compiled code that checks every index."""
if CHECK_INDICES:
    config.BOUNDSCHECK = 1  # type: ignore[attr-defined]  # Of all functions; numba.config is filled at run time.
BUILD: Final = "checked-" if CHECK_INDICES else ""
"""Prefix of the names under which compiled functions are kept: those that check indices are kept apart."""

APART: Final = tuple(
    f"{PACKAGE}.{name}"
    for name in ("building", "caching", "closure", "display", "errors", "locks", "reading", "sources", "syntax")
)
"""Modules of which nothing gets into compiled functions: they say when these are built, and how people read and write.
"""
AGAIN_S: Final = 2.0
"""How long Python runs the text of a function before it looks again whether that was compiled."""

_INNER: Final[dict[str, Any]] = {"_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def part(**options: Any) -> Callable[[F], F]:
    """Mark a function that only compiled functions call, with ``options`` of ``njit``."""
    return functools.partial(_part, options)


def _part(options: dict[str, Any], function: F) -> F:
    compiled: Any = PartDispatcher(function, {**_INNER, **options})
    return compiled  # type: ignore[no-any-return]


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
    compile_as(function, inlined(function))
    return function


def procedure(function: F) -> F:
    """A function on records or objects that stays one of Python, and is compiled where compiled functions call it.

    For what both kinds of devices do step by step (:mod:`gpusched_env.workload.host`); the compiler decides whether it
    becomes part of its callers.
    """
    compile_as(function, called(function))
    return function


def cached(**options: Any) -> Callable[[F], F]:
    """Compile a function for the types that it is called with, and keep the result on disk.

    As long as that is not there, and is being built elsewhere, Python runs the text; both compute the same, bit by bit.

    Args:
        options: of ``njit``, without ``cache``.
    """
    return functools.partial(_cached, options)


def native(signature: Any = None, **options: Any) -> Callable[[F], F]:
    """Compile a function on addresses, which has no meaning in Python, and keep the result on disk.

    Args:
        signature: the only one to compile, at once; none: those that are called.
        options: of ``njit``, without ``cache``.
    """
    return functools.partial(_native, signature, options)


def cached_callback(signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function, at once, with Numba's ``cfunc`` and keep the result on disk, with its ``address``."""
    return functools.partial(_cfunc, signature)


class _Cached(PartDispatcher):
    """A function that Python calls, too: compiled, if that is there, and as it stands otherwise."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        super().__init__(function, {**_INNER, **options})
        self.kept = _kept(function, self._may_compile)
        self.whole = _whole(function, options, self.kept)
        self._plain_until = 0.0

    def __call__(self, *arguments: Any) -> Any:
        if time.monotonic() >= self._plain_until:
            if choice() == OFF:
                self._plain_until = math.inf
            else:
                try:
                    return self.whole(*arguments)
                except NotKept as missing:
                    want(f"{self.py_func.__module__}:{self.py_func.__qualname__}", missing.types)
                    self._plain_until = time.monotonic() + AGAIN_S
        return self.py_func(*map(_with_fields, arguments))

    def _may_compile(self) -> bool:
        """Whether there is no other process that could do it."""
        is_elsewhere = self.py_func.__module__ != "__main__" and "<locals>" not in self.py_func.__qualname__
        return choice() == WAIT or not is_elsewhere or not self.kept.has_place()


def _with_fields(value: Any) -> Any:
    """A value of which Python reads and writes the fields of records as compiled functions do: as attributes."""
    if isinstance(value, np.void):
        return value.view(np.dtype((np.record, value.dtype)))
    if isinstance(value, np.ndarray) and value.dtype.names:
        return value.view(np.recarray)
    return value


def _cached(options: dict[str, Any], function: F) -> F:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # It is told to compile nothing.
        return function
    made: Any = _Cached(function, options)
    return made  # type: ignore[no-any-return]


def _whole(function: Callable[..., Any], options: dict[str, Any], kept: KeptFunctions) -> Any:
    compiled: Any = njit(**{"_nrt": False, "pipeline_class": WholeCompiler, **options})(function)
    keep_in(compiled, kept, kept.releasing(compiled.compile))
    return compiled


def _native(signature: Any, options: dict[str, Any], function: F) -> F:
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # numba.config is filled at run time.
        return function
    compiled = _whole(function, {"nogil": True, **options}, _kept(function))
    if signature is not None:
        compiled.compile(signature)
        compiled.disable_compile()
    made: F = compiled
    return made


def unit(compiled: Any, *kinds: Any) -> Unit:
    """An :func:`native` for arguments of these types, to be built beforehand."""
    if config.DISABLE_JIT:  # type: ignore[attr-defined]  # It stayed a function of Python.
        return Unit(_kept(compiled), lambda: None)
    return Unit(compiled._cache, functools.partial(compiled.compile, kinds))


def callback_unit(function: Callable[..., Any], build: Callable[[], object]) -> Unit:
    """A function that ``build`` compiles with :func:`cached_callback`."""
    return Unit(_kept(function), build)


def _cfunc(signature: Any, function: Callable[..., Any]) -> Any:
    compiled: Any = callback(function, signature)
    kept = _kept(function)
    keep_in(compiled, kept, kept.releasing(compiled.compile))
    compiled.compile()
    return compiled


def _kept(function: Any, may_compile: Callable[[], bool] = lambda: True) -> KeptFunctions:
    name = f"{function.__module__.split('.')[-1]}.{BUILD}{function.__qualname__}"
    is_ours = function.__module__.startswith(f"{PACKAGE}.")
    key = sources_key(function.__module__ if is_ours else Path(inspect.getfile(function)))
    return KeptFunctions(function, re.sub("[<>]", "", name), key, may_compile)


@functools.cache
def sources_key(root: str | Path) -> str:
    """A hash of all that compiled functions of a module of this package, or of a file, can be built from: the module,
    and all that it imports.

    Compiled functions know what their module has imported; what a function imports when it runs does not get into them.
    """
    return hash_of(closure([root], at_once=True, apart=APART))


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

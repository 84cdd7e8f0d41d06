"""Compiled functions that are kept on disk, one file for the types of one function's arguments.

What is kept is unpickled and run. So a file is read only where nobody but this user and root can write: in folders
beside the sources, as Python runs what is in them anyway, and in others that can be trusted (:func:`open_to_others`).
It begins with a hash of what follows and of what it was compiled for: what is damaged or of something else is not run.

Of processes that need the same function one compiles it, and the others wait for it. Nothing that is wrong with a cache
is an error, since everything can be compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import os
import stat
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, Final

from numba import config

from gpusched_env.locks import LOCKS, hold
from gpusched_env.numba_internals import (
    FunctionCache,
    as_bytes,
    cache_folders,
    from_bytes,
    holds_addresses,
    types_key,
)

HASH_BYTES: Final = hashlib.sha256().digest_size


class NotKept(Exception):
    """A function is not kept on disk for some types, and is not to be compiled now."""

    def __init__(self, types: Any) -> None:
        super().__init__()
        self.types = types


class KeptFunctions(FunctionCache):
    """What is kept of one function, by its arguments' types.

    Args:
        function: to compile.
        name: how the names of its files begin.
        key: of the sources that it is built from; files with others are removed when one is kept.
        may_compile: whether what is not kept is compiled, when it is asked for.
    """

    def __init__(self, function: Any, name: str, key: str, may_compile: Callable[[], bool] = lambda: True) -> None:
        self.may_compile = may_compile
        self._function, self.name, self._key = function, name, key
        self._source = Path(inspect.getfile(function))
        # Others may have the same name, unless it is one of the module or of a class.
        self._line = function.__code__.co_firstlineno if "<" in function.__qualname__ else 0
        self._lock: IO[bytes] | None = None

    @property
    def cache_path(self) -> str:
        """The folder that is tried first."""
        return str(places_of(self._source)[0])

    def has_place(self) -> bool:
        """Whether there is a folder that a file can be kept in."""
        return keeping_folder(self._source) is not None

    def is_kept(self) -> bool:
        """Whether there is a file for some types, or no place for one."""
        pattern = f"{self.name}-{self._key}-*.nbc"
        return any(any(folder.glob(pattern)) for folder in places_of(self._source)) or not self.has_place()

    def is_compiled_elsewhere(self) -> bool:
        """Whether another process holds the lock of this function."""
        folder = keeping_folder(self._source)
        if LOCKS and folder is not None:
            try:
                hold(self._lock_in(folder)).close()
            except BlockingIOError:
                return True
            except OSError:
                pass
        return False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for arguments of these types; ``None``: it is to be compiled now, by this process.

        Raises:
            NotKept: nothing is to be compiled now.
        """
        target_context.refresh()
        found = self._found(sig, target_context)
        if found is None and not self.may_compile():
            raise NotKept(sig)
        if found is None:
            self._acquire()
            found = self._found(sig, target_context)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if there is room."""
        if holds_addresses(data):
            warnings.warn(f"{self.name}: addresses are in it, so it cannot be kept", RuntimeWarning, stacklevel=2)
            return
        key = self._types_key(sig, data.codegen)
        content = as_bytes(data)
        for folder in places_of(self._source):
            if _hindrance(folder, self._source) is None:
                with contextlib.suppress(OSError):
                    self._keep(self._file(folder, key), _digest(key, content) + content)
                    return
        tried = ", ".join(
            f"{folder} ({_hindrance(folder, self._source) or 'full'})" for folder in places_of(self._source)
        )
        _say(
            f"what was compiled cannot be kept, and each process compiles for itself; tried {tried}; "
            "name a folder that only you can write to: NUMBA_CACHE_DIR=..."
        )

    def releasing(self, compile_: Callable[..., Any]) -> Callable[..., Any]:
        """``compile_``, after which other processes may compile this function: whether it is kept by then or not."""

        @functools.wraps(compile_)
        def compile_and_release(*arguments: Any, **options: Any) -> Any:
            try:
                return compile_(*arguments, **options)
            finally:
                self._release()

        return compile_and_release

    def _found(self, sig: Any, target_context: Any) -> Any:
        key = self._types_key(sig, target_context.codegen())
        for folder in trusted_folders(self._source):
            with contextlib.suppress(OSError):
                file = self._file(folder, key)
                whole = file.read_bytes()
                if whole[:HASH_BYTES] == _digest(key, whole[HASH_BYTES:]):
                    return from_bytes(target_context, whole[HASH_BYTES:])
                _say(f"{file}: is damaged; compiling it anew")
        return None

    def _types_key(self, sig: Any, codegen: Any) -> bytes:
        """The key of what the sources and a function's name leave open."""
        cells = tuple(cell.cell_contents for cell in self._function.__closure__ or ())
        return types_key(sig, codegen, cells, self._line)

    def _file(self, folder: Path, key: bytes) -> Path:
        version = f"py{sys.version_info.major}{sys.version_info.minor}"
        return folder / f"{self.name}-{self._key}-{version}.{hashlib.sha256(key).hexdigest()[:16]}.nbc"

    def _keep(self, file: Path, content: bytes) -> None:
        put(file, content)
        for path in file.parent.glob(f"{self.name}-*.nb[ci]"):
            if not path.name.startswith(f"{self.name}-{self._key}-"):
                # A process that runs on those compiles anew, at worst.
                path.unlink(missing_ok=True)

    def _acquire(self) -> None:
        """Be the one process that compiles this function; on file systems without locks, one of them."""
        folder = keeping_folder(self._source)
        if not LOCKS or folder is None or self._lock is not None:
            return
        with contextlib.suppress(OSError):
            self._lock = hold(self._lock_in(folder), _say_waiting)

    def _lock_in(self, folder: Path) -> Path:
        return folder / f"{self.name}.lock"

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def put(file: Path, content: bytes) -> None:
    """Write a file as a whole, or not at all.

    Raises:
        OSError: it cannot be written.
    """
    partial = file.with_name(f"{file.name}.tmp.{os.getpid()}")
    try:
        partial.write_bytes(content)
        partial.replace(file)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def keeping_folder(source: Path) -> Path | None:
    """Where functions of ``source`` are kept, and locks are; ``None``: nowhere."""
    return next((folder for folder in places_of(source) if _hindrance(folder, source) is None), None)


def trusted_folders(source: Path) -> Iterator[Path]:
    """Where functions of ``source`` may have been kept, and nobody else could have put a file."""
    return (folder for folder in places_of(source) if not _distrust(folder, source))


def _distrust(folder: Path, source: Path) -> str | None:
    """Why nothing is read from a folder, or kept there."""
    if folder.parent == source.parent:
        return None
    place = next(path for path in (folder, *folder.parents) if os.path.exists(path))
    shared = open_to_others(place)
    return f"others can write to {shared}" if shared else None


def _hindrance(folder: Path, source: Path) -> str | None:
    """Why nothing can be kept in a folder, which is made if it is not there."""
    if distrust := _distrust(folder, source):
        return distrust
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return error.strerror
    return None if os.access(folder, os.W_OK | os.X_OK) else "cannot be written"


def open_to_others(folder: Path) -> Path | None:
    """A folder that not only this user and root can write to: this one, or one above it, where it could be replaced."""
    if not hasattr(os, "getuid"):
        return None
    place = folder.resolve()
    for path in (*reversed(place.parents), place):
        about = path.stat()
        # A user's own group has their number. In a folder like /tmp nobody replaces what is of another user.
        group = about.st_mode & stat.S_IWGRP and about.st_gid != about.st_uid
        sticky = about.st_mode & stat.S_ISVTX and path != place
        if about.st_uid not in (0, os.getuid()) or ((group or about.st_mode & stat.S_IWOTH) and not sticky):
            return path
    return None


def places_of(source: Path) -> list[Path]:
    """Where files of functions of ``source`` are looked for; they are kept in the first that can be written."""
    below, at_home = cache_folders(source)
    if config.CACHE_DIR:  # type: ignore[attr-defined]  # numba.config is filled at run time.
        return [Path(config.CACHE_DIR) / below]  # type: ignore[attr-defined]
    return [source.parent / "__pycache__", at_home]


def _digest(key: bytes, content: bytes) -> bytes:
    return hashlib.sha256(hashlib.sha256(key).digest() + content).digest()


def _say_waiting(process: str) -> None:
    _say(f"waiting for process {process}, which is compiling the same ...")


@functools.cache
def _say(text: str) -> None:
    """Write a line on stderr, each text once."""
    sys.stderr.write(f"gpusched: {text}\n")

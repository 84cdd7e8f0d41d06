"""Files that something is made by: what is in them, as hashes that comments, docstrings and layout do not change.

To parse the package takes a second. So what its sources say is remembered on disk, by when they were written.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from gpusched_env import syntax
from gpusched_env.caching import keeping_folder, put, trusted_folders
from gpusched_env.syntax import Source, parsed

ROOT: Final = Path(__file__).parent
PACKAGE: Final = ROOT.name
LENGTH: Final = 12
"""Hexadecimal digits of a hash."""
REMEMBERED: Final = f"sources-py{sys.version_info.major}{sys.version_info.minor}.json"

Stamp = tuple[int, int, int]
"""When a file was written and when it was last changed in any way, in nanoseconds, and its bytes."""


class _Memory(msgspec.Struct):
    """What a file in the folder of the package's compiled functions has."""

    parser: str
    """Hash of the source that found what is in the others."""
    known: dict[str, tuple[Stamp, Source]]
    """By the file's name."""


def read(path: Path) -> Source:
    """What is in a file; of one that is no source of Python, the hash of its bytes.

    Raises:
        OSError: it cannot be read.
    """
    about = path.stat()
    return _read(path, (about.st_mtime_ns, about.st_ctime_ns, about.st_size))


def hash_of(files: Iterable[Path], *texts: str) -> str:
    """The hash of files, in whatever order they come, and of texts, such as options."""
    digest = hashlib.sha256()
    for name, content in sorted((name_of(path), read(path).digest) for path in files):
        digest.update(f"{name} {content}\n".encode())
    for text in texts:
        digest.update(f"{len(text)} {text}\n".encode())
    return digest.hexdigest()[:LENGTH]


@functools.cache
def is_shipped(path: Path) -> bool:
    """Whether a file is in this package."""
    return path.is_relative_to(ROOT)


@functools.cache
def name_of(path: Path) -> str:
    """The name of a file in the package; of others without their folder."""
    return path.relative_to(ROOT).as_posix() if is_shipped(path) else path.name


def remember() -> None:
    """Keep on disk what was parsed of the package since this process began, if there is room."""
    memory, new = _memory(ROOT), _new(ROOT)
    folder = keeping_folder(ROOT / REMEMBERED) if new else None
    if folder is not None:
        memory.known.update(new)
        with contextlib.suppress(OSError):
            put(folder / REMEMBERED, msgspec.json.encode(memory))
        new.clear()


@functools.cache
def _read(path: Path, stamp: Stamp) -> Source:
    if path.suffix != ".py":
        return Source(hashlib.sha256(path.read_bytes()).hexdigest())
    if not is_shipped(path):
        return parsed(path.read_bytes())
    name = name_of(path)
    then, found = _memory(ROOT).known.get(name, (None, None))
    if found is None or then != stamp:
        found = parsed(path.read_bytes())
        _new(ROOT)[name] = stamp, found
    return found


@functools.cache
def _memory(root: Path) -> _Memory:
    parser = hashlib.sha256(Path(syntax.__file__).read_bytes()).hexdigest()
    for folder in trusted_folders(root / REMEMBERED):
        with contextlib.suppress(OSError, msgspec.DecodeError):
            memory = msgspec.json.decode((folder / REMEMBERED).read_bytes(), type=_Memory)
            if memory.parser == parser:
                return memory
    return _Memory(parser, {})


@functools.cache
def _new(root: Path) -> dict[str, tuple[Stamp, Source]]:
    return {}

"""Files that are complete or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpusched_env.errors import InputError

PARTIAL = ".partial"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to write, which replaces it on leaving without an error; it has the same suffix.

    Raises:
        InputError: ``path`` is a folder, a device or a pipe.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is no regular file; name another one")
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=f"{PARTIAL}{path.suffix}", dir=path.parent)
    os.close(handle)
    partial = Path(name)
    try:
        yield partial
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.chmod(0o644)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """What the disk refuses is one error.

    Raises:
        InputError: a file or folder could not be written, on a full disk for example.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # Of whoever reads the output.
    except OSError as error:
        raise InputError(f"{folder}: cannot be written ({error.strerror or error})") from error


def remove_partial(folder: Path) -> None:
    """Remove what killed processes have left of :func:`replacing` in a folder that no other one writes to."""
    for stale in folder.glob(f".*{PARTIAL}*"):
        stale.unlink(missing_ok=True)

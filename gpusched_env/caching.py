"""Compiled functions that Numba has kept on disk, as far as they can be trusted.

What is kept is unpickled and run. So a folder that others can write to is left alone: one that ``NUMBA_CACHE_DIR``
names, or the user's own. Folders beside the sources are no question, as Python runs what is in them anyway.

Nothing that is wrong with a cache is an error, since everything can be compiled again.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import stat
import warnings
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache


class KeptFunctions(FunctionCache):
    """What is kept of one function, by its arguments' types."""

    def __init__(self, function: Any) -> None:
        """
        Raises:
            RuntimeError: of Numba, "no locator": there is no folder that can be written to.
        """
        super().__init__(function)
        folder = Path(self.cache_path)
        beside = folder.parent == Path(inspect.getfile(function)).parent
        shared = None if beside else open_to_others(folder)
        self.trusted = shared is None
        """Whether anything is read from the folder, or kept in it."""
        if not self.trusted:
            self.disable()
            warnings.warn(
                f"{shared}: others can write to it, and compiled functions in it would be run; nothing is kept there, "
                "and each process compiles for itself. Name another folder (NUMBA_CACHE_DIR), or take their right to "
                "write (chmod go-w)",
                RuntimeWarning,
                stacklevel=2,
            )

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for arguments of these types; ``None``: nothing, or what cannot be read."""
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # Whatever a damaged file leads to.
            found, damaged = None, True
        else:
            # Processes that compile for different types at once can have taken the same file.
            damaged = found is not None and tuple(found.signature.args) != tuple(getattr(sig, "args", sig))
        if damaged:
            with contextlib.suppress(OSError):
                self.flush()
        return None if damaged else found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if there is room."""
        with contextlib.suppress(OSError):
            super().save_overload(sig, data)


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

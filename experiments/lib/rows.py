"""Files that grow by one JSON object a line, and are continued after an interrupt."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.reading import decoded, read_bytes, unzipped

SUFFIX = ".jsonl"


class Rows:
    """One file of a recording. A row is complete or not in it, whatever interrupts the recording."""

    def __init__(self, folder: Path, name: str, head: dict[str, Any], *, resume: bool) -> None:
        """
        Args:
            folder: of the recording.
            name: of the file, without its suffix.
            head: its first line, what the rows are of.
            resume: whether a file that is there is continued.

        Raises:
            InputError: it cannot be written, is there already, or is of something else.
        """
        self.path = folder / f"{name}{SUFFIX}"
        self.rows: list[dict[str, Any]] = []
        self._head: dict[str, Any] | None = head
        """Written with the first row, since a file without rows is no recording; ``None``: it is written."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not self.path.exists():
                return
            if not resume:
                raise InputError(f"{self.path}: is there already; continue it with --resume, or name another folder")
            self._read(head)
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from error

    def _read(self, head: dict[str, Any]) -> None:
        """The rows that are there; half a row, which an interrupted process has left, goes."""
        lines, size = read_lines(self.path)
        differ = [key for key, value in head.items() if lines and lines[0].get(key) != value]
        if differ:
            was, now = ({key: of.get(key) for key in differ} for of in (lines[0], head))
            raise InputError(f"{self.path}: was recorded with {was}, not {now}; name another folder")
        os.truncate(self.path, size)
        if lines:
            self.rows, self._head = lines[1:], None

    def add(self, row: dict[str, Any]) -> None:
        """Write a row to the file.

        Raises:
            InputError: it cannot be written.
        """
        try:
            lines = [row] if self._head is None else [self._head, row]
            with self.path.open("ab") as file:
                file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        except OSError as error:
            raise InputError(f"{self.path}: cannot be written ({error.strerror})") from error
        self._head = None
        self.rows.append(row)


def read_lines(path: Path) -> tuple[list[dict[str, Any]], int]:
    """The complete lines of a file of a recording, the first of them its head, and how many bytes they are.

    Raises:
        InputError: it cannot be read, or is no recording.
    """
    complete, end, _ = unzipped(read_bytes(path), str(path)).rpartition(b"\n")
    where = f"{path}: is no recording, name another folder"
    return [decoded(line, dict[str, Any], where) for line in complete.splitlines()], len(complete + end)

"""The tables of an Nsight Systems export: those of any version, and of each only what is read, bounded in length."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Final

from gpusched_env.workload.importers.fields import Fields

LONGEST_TEXT: Final = 1 << 16
"""Characters of a text that are read: names of kernels are the longest."""
_LARGEST_VALUE: Final = 1 << 24
"""Bytes of a value that SQLite may make; some reports keep the program's output as a text."""


class Tables:
    """An open export.

    Tables may be called otherwise by a version, before or behind (``NVTX_EVENTS_V2``): the newest that has rows is
    read.
    """

    def __init__(self, database: sqlite3.Connection, origin: str) -> None:
        database.text_factory = lambda text: text.decode(errors="replace")
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_VALUE)
        self._database = database
        self._origin = origin
        found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE TABLE%'")
        self._names = sorted((name for (name,) in found), key=_version, reverse=True)

    def has(self, table: str) -> bool:
        """Whether there is such a table, of any version."""
        return self._name(table) is not None

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Fields]:
        """The rows of a table with those of its columns that it has; none if there is no such table."""
        name = self._name(table)
        if name is None:
            return
        known = self._columns(name)
        chosen = [column for column in columns if column in known]
        listed = ", ".join(_bounded(column) for column in chosen) or "NULL"
        for number, values in enumerate(self._database.execute(f'SELECT {listed} FROM "{name}"'), start=1):
            yield Fields(dict(zip(chosen, values, strict=False)), f"{self._origin}: {name} row {number}")

    def texts(self, users: Sequence[tuple[str, str]]) -> dict[int, str]:
        """The texts that are named by some columns of some tables, by number."""
        table = self._name("StringIds")
        named = [(self._name(user), column) for user, column in users]
        used = [f'SELECT {column} FROM "{name}"' for name, column in named if name and column in self._columns(name)]
        if table is None or not used or not {"id", "value"} <= self._columns(table):
            return {}
        wanted = " UNION ".join(used)
        found = self._database.execute(f'SELECT id, {_bounded("value")} FROM "{table}" WHERE id IN ({wanted})')
        return {number: text for number, text in found if isinstance(number, int) and isinstance(text, str)}

    def _columns(self, name: str) -> set[str]:
        return {row[1] for row in self._database.execute(f'PRAGMA table_xinfo("{name}")')}

    def _name(self, table: str) -> str | None:
        """What a table is called: the newest version with rows, else the plain name."""
        pattern = re.compile(rf"(V?\d+_)?{table}(_?V?\d+)?", re.IGNORECASE)
        found = [name for name in self._names if pattern.fullmatch(name)]
        return next((name for name in found if self._has_rows(name)), found[-1] if found else None)

    def _has_rows(self, name: str) -> bool:
        return next(self._database.execute(f'SELECT 1 FROM "{name}" LIMIT 1'), None) is not None


def _version(name: str) -> int:
    """The number before or behind a name; -1 without."""
    given = re.match(r"V?(\d{1,9})_", name, re.IGNORECASE) or re.search(r"_?V?(\d{1,9})$", name, re.IGNORECASE)
    return int(given[1]) if given else -1


def _bounded(column: str) -> str:
    return f'CASE typeof("{column}") WHEN \'text\' THEN substr("{column}", 1, {LONGEST_TEXT}) ELSE "{column}" END'

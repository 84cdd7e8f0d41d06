"""Requests in tables: comma-separated values with a line of names, or JSON lines, whose keys are the columns."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from gpusched_env.errors import InputError
from gpusched_env.reading import decoded, table_rows
from gpusched_env.workload.traces.requests import RequestList, Requests, date_clock, unit_clock

Row = tuple[int, Sequence[Any]]
"""Number of a line, and what it has."""


@dataclass(frozen=True, slots=True)
class Table:
    """A format: its columns, by which it is recognised."""

    source: str
    time: str
    unit: str
    """Of the times."""
    prompt: str
    answer: str
    own: bool = False
    """Whether its columns are this project's: either length may be missing."""

    def fits(self, columns: Sequence[str]) -> bool:
        """Whether a file with these columns is of this format."""
        needed = (self.time,) if self.own else (self.time, self.prompt, self.answer)
        return all(name in columns for name in needed)


MOST_LINE: Final = 2**20
"""Bytes of a JSON line."""
UNITS_US: Final = {"us": 1.0, "ms": 1e3, "s": 1e6}
DATES: Final = "dates"
TABLES: Final = (
    Table("Azure's LLM inference traces, 2023 and 2024", "TIMESTAMP", DATES, "ContextTokens", "GeneratedTokens"),
    Table("Splitwise, as Vidur has it", "arrived_at", "s", "num_prefill_tokens", "num_decode_tokens"),
    Table("Splitwise's simulator", "arrival_timestamp", "s", "prompt_size", "token_size"),
    Table("BurstGPT", "Timestamp", "s", "Request tokens", "Response tokens"),
    Table("Mooncake", "timestamp", "ms", "input_length", "output_length"),
    *(Table("one's own", f"time_{unit}", unit, "prompt", "answer", own=True) for unit in UNITS_US),
)


def is_request(line: bytes) -> bool:
    """Whether a line is one of JSON lines: a request as an object."""
    try:
        found = list(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return any(table.fits(found) for table in TABLES)


def read_objects(data: bytes, where: str) -> Requests:
    """The requests of JSON lines.

    Raises:
        InputError: as :func:`~gpusched_env.workload.traces.reading.read_requests`.
    """
    return _requests(_objects(data, where), where)


def read_lines(data: bytes, where: str) -> Requests:
    """The requests of comma-separated values.

    Raises:
        InputError: as :func:`~gpusched_env.workload.traces.reading.read_requests`.
    """
    return _requests(_lines(data, where), where)


def _objects(data: bytes, where: str) -> Iterator[Row]:
    """The first row has the names of the columns."""
    columns: list[str] = []
    for line, text in enumerate(io.BytesIO(data), start=1):
        if len(text) > MOST_LINE:
            raise InputError(f"{where}: line {line} has more than {MOST_LINE} bytes")
        if text.strip():
            found = decoded(text, dict[str, Any], f"{where}: line {line}")
            if not columns:
                columns = list(found)
                yield line, columns
            yield line, [found.get(name) for name in columns]


def _lines(data: bytes, where: str) -> Iterator[Row]:
    """The first row has the names of the columns."""
    columns = 0
    for line, cells in table_rows(data, where):
        columns = columns or len(cells)
        if len(cells) != columns:
            raise InputError(f"{where}: line {line} has {len(cells)} fields, must have {columns}, as the first line")
        yield line, cells


def _requests(rows: Iterator[Row], where: str) -> Requests:
    columns = [name.strip() for name in next(rows)[1]]
    table = next((table for table in TABLES if table.fits(columns)), None)
    if table is None:
        known = "; ".join(f"{known.time}, {known.prompt}, {known.answer}" for known in TABLES)
        raise InputError(
            f"{where}: the first line is {', '.join(map(str, columns))[:120]!r}, must name the columns of a known "
            f"format: {known}"
        )
    names = [name if name in columns else None for name in (table.time, table.prompt, table.answer)]
    at = [columns.index(name) for name in names if name is not None]
    clock = date_clock() if table.unit == DATES else unit_clock(UNITS_US[table.unit])
    found = RequestList(where, names, clock)
    for line, cells in rows:
        found.add(line, [cells[i] for i in at])
    return found.requests()

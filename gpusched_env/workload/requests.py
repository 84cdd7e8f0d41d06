"""Files of requests, in any of the published formats, gzipped or not.

A request has a time, and the lengths of its prompt and its answer. Tables are comma-separated values or JSON lines.
Documents are gaps of Orion, workloads of DISB, and times of one's own.
"""

from __future__ import annotations

import io
import itertools
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.reading import decoded, read_bytes, table_rows, unzipped

MOST_REQUESTS: Final = 2**22
"""Most requests of a file."""
MOST_TOKENS: Final = 2**20
"""Most tokens of a prompt, or of an answer."""
LATEST_US: Final = 1e14
"""Latest time of a request: three years; published traces last for up to four months."""

Clock = Callable[[Any], float]
"""What makes a time in microseconds of a cell; NaN: the cell is none."""


@dataclass(frozen=True, slots=True)
class RecordedRequests:
    """What a file says of requests, in order of arrival."""

    times_us: NDArray[np.float64]
    """Times of arrival, shape ``(requests,)``, ascending, at least 0."""
    prompts: NDArray[np.int64] | None
    answers: NDArray[np.int64] | None
    """Tokens of prompts and of answers, shape ``(requests,)``, at least 1; ``None``: the file does not say."""


def unit_clock(unit_us: float) -> Clock:
    """The clock of times that are numbers of a unit."""
    return lambda cell: number(cell) * unit_us


def date_clock() -> Clock:
    """The clock of dates with a time of day, counted from the first one; UTC where they name no zone."""
    first: list[datetime] = []

    def since_first(cell: Any) -> float:
        try:
            date = datetime.fromisoformat(cell.strip())
            when = date if date.tzinfo is not None else date.replace(tzinfo=UTC)
            first[:] = first or [when]
            return (when - first[0]) / timedelta(microseconds=1)
        except (AttributeError, TypeError, ValueError, OverflowError):
            return math.nan

    return since_first


def number(cell: Any) -> float:
    """A cell of a table or a document as a number; NaN: it is none."""
    try:
        return math.nan if isinstance(cell, bool) else float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


class RequestList:
    """Requests while they are read: each is checked."""

    def __init__(self, where: str, names: Sequence[str | None], clock: Clock, place: str = "line") -> None:
        """``names``: of the times, the prompts and the answers (``None``: there are none); ``place``: what is counted
        in errors."""
        self._where, self._place, self._clock = where, place, clock
        self._name, *lengths = names
        self._times, self._before_us = array("d"), 0.0
        self._lengths = array("q"), array("q")
        self._given = [(name, tokens) for name, tokens in zip(lengths, self._lengths, strict=True) if name is not None]

    def add(self, line: int, cells: Sequence[Any]) -> None:
        """Add a request, of a ``line``: its time, its prompt and its answer, as far as there are such columns.

        Raises:
            InputError: the time is no number, negative, beyond :data:`LATEST_US` or before that of the last request; a
                length is no number of tokens; there are more requests than :data:`MOST_REQUESTS`.
        """
        time_us = self._clock(cells[0])
        if not self._before_us <= time_us <= LATEST_US:
            raise self._wrong(line, self._name, cells[0], _right_time(time_us, self._before_us))
        if len(self._times) == MOST_REQUESTS:
            raise InputError(f"{self._where}: {self._place} {line}: more than {MOST_REQUESTS} requests; cut the file")
        self._times.append(time_us)
        self._before_us = time_us
        for (name, tokens), cell in zip(self._given, cells[1:], strict=True):
            length = number(cell)
            if not 0 <= length <= MOST_TOKENS or length != int(length):
                right = f"must be a whole number of tokens from 0 to {MOST_TOKENS}"
                raise self._wrong(line, name, cell, right)
            # A request that failed has an answer of 0; its prefill yields a token.
            tokens.append(max(1, int(length)))

    def requests(self) -> RecordedRequests:
        """All requests that were added.

        Raises:
            InputError: there is none.
        """
        if not self._times:
            raise InputError(f"{self._where}: has no requests")
        prompts, answers = (np.array(tokens, np.int64) if tokens else None for tokens in self._lengths)
        return RecordedRequests(np.array(self._times), prompts, answers)

    def _wrong(self, line: int, name: str | None, cell: Any, right: str) -> InputError:
        return InputError(f"{self._where}: {self._place} {line}: {name} is {str(cell)[:40]!r}, {right}")


def _right_time(time_us: float, before_us: float) -> str:
    if math.isnan(time_us):
        return "must be a number, or in Azure's traces a date with a time of day"
    if 0.0 <= time_us < before_us or time_us < 0.0 < before_us:
        return "before that of the request above it; sort the file by its times"
    return f"must be at least 0 and at most {LATEST_US:g} us"


Row = tuple[int, Sequence[Any]]
"""A row of a file: the number of its line, and what it has."""


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A format: its columns, by which it is recognised."""

    source: str
    time: str
    unit: str
    """Unit of the times."""
    prompt: str
    answer: str
    own: bool = False
    """Whether its columns are this project's: either length may be missing."""

    def fits(self, columns: Sequence[str]) -> bool:
        """Whether a file with these columns is of this format."""
        needed = (self.time,) if self.own else (self.time, self.prompt, self.answer)
        return all(name in columns for name in needed)


MOST_LINE: Final = 2**20
"""Most bytes of a JSON line."""
UNITS_US: Final = {"us": 1.0, "ms": 1e3, "s": 1e6}
DATES: Final = "dates"
TABLES: Final = (
    TraceFormat("Azure's LLM inference traces, 2023 and 2024", "TIMESTAMP", DATES, "ContextTokens", "GeneratedTokens"),
    TraceFormat("Splitwise, as Vidur has it", "arrived_at", "s", "num_prefill_tokens", "num_decode_tokens"),
    TraceFormat("Splitwise's simulator", "arrival_timestamp", "s", "prompt_size", "token_size"),
    TraceFormat("BurstGPT", "Timestamp", "s", "Request tokens", "Response tokens"),
    TraceFormat("Mooncake", "timestamp", "ms", "input_length", "output_length"),
    *(TraceFormat("one's own", f"time_{unit}", unit, "prompt", "answer", own=True) for unit in UNITS_US),
)


def is_request(line: bytes) -> bool:
    """Whether a line is one of JSON lines: a request as an object."""
    try:
        found = list(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return any(table.fits(found) for table in TABLES)


def read_objects(data: bytes, where: str) -> RecordedRequests:
    """The requests of JSON lines.

    Raises:
        InputError: as :func:`~gpusched_env.workload.requests.read_requests`.
    """
    return _requests(_objects(data, where), where)


def read_lines(data: bytes, where: str) -> RecordedRequests:
    """The requests of comma-separated values.

    Raises:
        InputError: as :func:`~gpusched_env.workload.requests.read_requests`.
    """
    return _requests(_lines(data, where), where)


def _objects(data: bytes, where: str) -> Iterator[Row]:
    """Rows of JSON lines; the first one has the names of the columns."""
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
    """Rows of comma-separated values; the first one has the names of the columns."""
    columns = 0
    for line, cells in table_rows(data, where):
        columns = columns or len(cells)
        if len(cells) != columns:
            raise InputError(f"{where}: line {line} has {len(cells)} fields, must have {columns}, as the first line")
        yield line, cells


def _requests(rows: Iterator[Row], where: str) -> RecordedRequests:
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


MOST_DOCUMENT_BYTES: Final = 2**24
"""Most bytes of a document, which is in memory as a whole."""


class _Load(msgspec.Struct):
    type: str
    frequency: float = 0.0
    """Requests a second."""
    trace: list[float] = []
    """Times in milliseconds."""


class _Task(msgspec.Struct):
    id: str
    load: _Load


class _Document(msgspec.Struct):
    time: float = 0.0
    """Seconds that a benchmark lasts."""
    tasks: list[_Task] = []
    times_us: list[float] = []
    times_ms: list[float] = []
    times_s: list[float] = []
    gaps_s: list[float] = []
    prompts: list[int] = []
    answers: list[int] = []


def read_document(data: bytes, where: str, task: str | None) -> RecordedRequests:
    """The requests of a document; ``task`` names one of DISB's.

    Raises:
        InputError: as :func:`~gpusched_env.workload.requests.read_requests`.
    """
    if len(data) > MOST_DOCUMENT_BYTES:
        raise InputError(f"{where}: more than {MOST_DOCUMENT_BYTES} bytes of one JSON document; write JSON lines")
    if data.lstrip()[:1] == b"[":
        gaps = decoded(data, list[float], where)
        if len(gaps) > 2 and all(before < after for before, after in itertools.pairwise(gaps)):
            raise InputError(
                f"{where}: a list is of gaps in seconds, but these ascend as times do; "
                'name them: {"gaps_s": [...]} or {"times_us": [...]}'
            )
        return _listed(_Document(gaps_s=gaps), where)
    found = decoded(data, _Document, where)
    if found.tasks:
        return _load(found, where, task)
    if task is not None:
        raise InputError(f"{where}: has no tasks; leave task out, which is {task!r}")
    return _listed(found, where)


def _listed(found: _Document, where: str) -> RecordedRequests:
    times = {f"times_{unit}": getattr(found, f"times_{unit}") for unit in UNITS_US}
    # The first request comes at once, the others each after a gap.
    times["gaps_s"] = list(itertools.accumulate(found.gaps_s, initial=0.0)) if found.gaps_s else []
    given = [name for name, values in times.items() if values]
    if len(given) != 1:
        raise InputError(
            f"{where}: has {' and '.join(given) or 'no times'}, must have one of {', '.join(times)}, tasks"
        )
    (name,) = given
    lengths = {each: getattr(found, each) for each in ("prompts", "answers") if getattr(found, each)}
    for each, values in lengths.items():
        if len(values) != len(times[name]):
            raise InputError(f"{where}: {each} has {len(values)} lengths, must have {len(times[name])}, one a request")
    names = [name, *(each if each in lengths else None for each in ("prompts", "answers"))]
    listed = RequestList(where, names, unit_clock(UNITS_US[name.rpartition("_")[2]]), "request")
    for place, cells in enumerate(zip(times[name], *lengths.values(), strict=True)):
        listed.add(place, cells)
    return listed.requests()


def _load(found: _Document, where: str, task: str | None) -> RecordedRequests:
    """The requests of one of DISB's tasks: the trace or the period of its load."""
    loads = {each.id: each.load for each in found.tasks}
    timed = [name for name, load in loads.items() if load.type in ("trace", "periodic")]
    if task is None and len(timed) != 1:
        raise InputError(f"{where}: has several tasks; name one by task: {', '.join(timed or loads)}")
    name = timed[0] if task is None else task
    if name not in loads:
        raise InputError(f"{where}: unknown task {name!r}; {did_you_mean(name, loads)}")
    load = loads[name]
    if load.type == "periodic":
        count = load.frequency * found.time
        if not 1.0 <= count <= MOST_REQUESTS:
            raise InputError(
                f"{where}: task {name}: frequency {load.frequency:g} a second for time {found.time:g} s makes "
                f"{count:g} requests, must be 1 to {MOST_REQUESTS}"
            )
        return _listed(_Document(times_us=[i * 1e6 / load.frequency for i in range(int(count))]), where)
    if load.type == "trace":
        return _listed(_Document(times_ms=load.trace), f"{where}: task {name}")
    raise InputError(f"{where}: task {name} has no times, its load is {load.type}; write arrivals: {_instead(load)}")


def _instead(load: _Load) -> str:
    """The arrivals of a scenario that are a load without times."""
    kinds = {"poisson": f"{{kind: poisson, rate_per_s: {load.frequency:g}}}", "continuous": "{kind: closed-loop}"}
    return kinds.get(load.type, "of one of the other kinds")


MOST_FILE_BYTES: Final = 2**28
"""Most bytes of a file, unzipped."""


def read_requests(path: Path, task: str | None = None) -> RecordedRequests:
    """The requests in a file; ``task`` names one of several loads in it.

    Raises:
        InputError: it cannot be read, is empty, too long or of no known format; a time is no number, negative, beyond
            three years or before that of the request above it; a length is no number of tokens. Names the file, and
            the line and column.
    """
    where = str(path)
    data = unzipped(read_bytes(path), where, MOST_FILE_BYTES)
    text = data.lstrip()
    if not text or len(data) > MOST_FILE_BYTES:
        raise InputError(f"{where}: {'is empty' if not text else f'more than {MOST_FILE_BYTES} bytes; cut it'}")
    objects = is_request(text.partition(b"\n")[0])
    if text[:1] in (b"[", b"{") and not objects:
        return read_document(data, where, task)
    if task is not None:
        raise InputError(f"{where}: has no tasks; leave task out, which is {task!r}")
    return read_objects(data, where) if objects else read_lines(data, where)

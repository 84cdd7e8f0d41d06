"""Reader of Nsight Systems exports: ``nsys export --type sqlite report.nsys-rep``.

Tables are created lazily, so each but that of the kernels may be missing. Kernels, copies and memsets
(``CUPTI_ACTIVITY_KIND_KERNEL``, ``_MEMCPY``, ``_MEMSET``) name their launch call in ``_RUNTIME`` by ``correlationId``;
nodes of a CUDA graph have that of its ``cudaGraphLaunch`` (profiled with ``--cuda-graph-trace=node``: otherwise
``_GRAPH_TRACE`` has the graphs as a whole, which cannot be imported). ``_SYNCHRONIZATION`` has the stream and the event
of synchronisations and waits, ``_CUDA_EVENT`` (``--cuda-event-trace=true``) those of records. NVTX ranges
(``NVTX_EVENTS``) are the annotations that mark iterations. Times are nanoseconds of one clock. See the "SQLite Schema
Reference" of the Nsight Systems user guide.

Other columns are not read, so that exports of other versions (2021 to 2025 differ in them) read alike. What the host
did between its calls is not recorded: threads whose calls do not overlap are taken to take turns.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gpusched_env.errors import InputError
from gpusched_env.reading import opened
from gpusched_env.workload.importers.fields import Fields
from gpusched_env.workload.importers.recording import (
    UNPROFILED,
    DeviceEvent,
    HostCall,
    LaunchShape,
    OrderCall,
    Recording,
    check_unprofiled,
    ordering,
    pick_iterations,
)
from gpusched_env.workload.workload import OpKind

_HEADER = b"SQLite format 3\0"
_PREFIX = "CUPTI_ACTIVITY_KIND_"
_UNKNOWN = 2**32 - 1
"""CUPTI's number for a stream or event that does not apply."""
_RANGES = (59, 60)
"""``eventType`` of NVTX ranges: pushed and popped, started and ended."""
_MARK = 34
"""``eventType`` of an NVTX mark."""
_PROCESS = ~0xFFFFFF
"""Bits of a ``globalTid`` that are the process."""
_TO_DEVICE, _TO_HOST = (1, 3), (2, 4)
_MIGRATION = 11
"""``copyKind`` from here on is unified memory's, which no call of the program made."""


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database.

    Raises:
        InputError: it cannot be read, or is a report that has to be exported first.
    """
    if path.suffix in (".nsys-rep", ".qdrep"):
        raise InputError(f"{path}: export the report first: nsys export --type sqlite {path.name}")
    with opened(path) as file:
        return file.read(len(_HEADER)) == _HEADER


def read_nsys(path: Path, iteration: str | None = None) -> Recording:
    """The recording in an SQLite export (see :func:`~gpusched_env.workload.importers.trace.import_trace`).

    Raises:
        InputError: names file, table, row and field at fault.
    """
    try:
        database = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
        try:
            return _Export(database, str(path)).recording(path.stem, iteration)
        finally:
            database.close()
    except (sqlite3.Error, OverflowError) as error:
        raise InputError(f"{path}: not a readable Nsight Systems export ({error})") from error


class _Export:
    """The tables of an export."""

    def __init__(self, database: sqlite3.Connection, origin: str) -> None:
        database.text_factory = lambda text: text.decode(errors="replace")
        self._database = database
        self._origin = origin
        self._tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        self._strings = {row.integer("id"): row.text("value") for row in self._rows("StringIds", prefix="")}

    def recording(self, name: str, iteration: str | None) -> Recording:
        if f"{_PREFIX}KERNEL" not in self._tables:
            what = "no table CUPTI_ACTIVITY_KIND_KERNEL; profile with nsys profile --trace=cuda,nvtx"
            raise InputError(f"{self._origin}: {what}")
        kernels = list(self._rows("KERNEL"))
        if not kernels:
            raise InputError(f"{self._origin}: no GPU kernel in the export; was the program's GPU work in its range?")
        work = [*kernels, *self._copies(), *self._rows("MEMSET")]
        if any(True for _ in self._rows("GRAPH_TRACE")):
            what = "CUDA graphs were traced as a whole; profile with --cuda-graph-trace=node"
            raise InputError(f"{self._origin}: {what}")
        self._one({row.values.get("deviceId") for row in work}, "GPUs")
        process = self._one({row.values.get("globalPid") for row in work}, "processes")
        calls = self._calls(process)
        marks = [mark for mark in self._marks() if process is None or mark.thread & _PROCESS == process]
        return Recording(
            name=name,
            origin=self._origin,
            recorder="Nsight Systems",
            device=self._device(work[0].values.get("deviceId")),
            events=tuple(self._event(row, calls) for row in work),
            orders=tuple(self._orders(calls)),
            iterations=tuple(pick_iterations(marks, iteration, self._origin)),
            overheads=tuple(self._overheads()),
            unprofiled_us=self._unprofiled(),
        )

    def _rows(self, table: str, prefix: str = _PREFIX) -> Iterator[Fields]:
        """The rows of a table, none if there is no such table."""
        if prefix + table not in self._tables:
            return
        cursor = self._database.execute(f'SELECT * FROM "{prefix}{table}"')
        names = [column[0] for column in cursor.description]
        for number, values in enumerate(cursor, start=1):
            yield Fields(dict(zip(names, values, strict=True)), f"{self._origin}: {prefix}{table} row {number}")

    def _one(self, found: set[Any], what: str) -> Any:
        if len(found) > 1:
            listed = ", ".join(sorted(map(str, found)))
            raise InputError(f"{self._origin}: work of {what} {listed}; a workload is one process on one GPU")
        return next(iter(found))

    def _named(self, row: Fields, field: str) -> str:
        number = row.integer(field)
        if number not in self._strings:
            raise row.fail(field, "the id of a row of StringIds")
        return self._strings[number]

    def _span_us(self, row: Fields) -> tuple[float, float]:
        """Start and duration."""
        start, end = row.integer("start"), row.integer("end")
        if end < start:
            raise row.fail("end", f"a time not before its start, {start}")
        return start / 1e3, (end - start) / 1e3

    def _calls(self, process: int | None) -> dict[int, HostCall]:
        """Calls by correlation; of a runtime call and the driver call inside it, the outer one."""
        found: dict[int, HostCall] = {}
        for row in self._rows("RUNTIME"):
            thread = row.integer("globalTid") if row.values.get("globalTid") is not None else 0
            if process is not None and thread & _PROCESS != process:
                continue
            start_us, duration_us = self._span_us(row)
            call = HostCall(self._named(row, "nameId"), start_us, duration_us, thread)
            correlation = _number(row, "correlationId")
            known = found.get(correlation) if correlation is not None else None
            if correlation is not None and (known is None or start_us < known.start_us):
                found[correlation] = call
        return found

    def _orders(self, calls: Mapping[int, HostCall]) -> Iterator[OrderCall]:
        streams: dict[int, int] = {}
        events: dict[int, int] = {}
        for table in ("SYNCHRONIZATION", "CUDA_EVENT"):
            for row in self._rows(table):
                correlation = _number(row, "correlationId")
                for field, known in (("streamId", streams), ("eventId", events)):
                    number = _number(row, field)
                    if correlation is not None and number is not None:
                        known[correlation] = number
        last: dict[int, int] = {}
        """By event: the call that recorded it last."""
        for correlation, call in sorted(calls.items(), key=lambda entry: (entry[1].start_us, entry[0])):
            kind, event = ordering(call.name), events.get(correlation)
            if kind is None:
                continue
            if kind is OpKind.RECORD and event is not None:
                last[event] = correlation
            waits = kind in (OpKind.WAIT, OpKind.SYNC_EVENT)
            stream = streams.get(correlation) if kind not in (OpKind.SYNC, OpKind.SYNC_EVENT) else None
            record = last.get(event) if waits and event is not None else None
            yield OrderCall(call, kind, correlation, stream, event if waits else None, record)

    def _copies(self) -> Iterator[Fields]:
        return (row for row in self._rows("MEMCPY") if row.integer("copyKind") < _MIGRATION)

    def _event(self, row: Fields, calls: Mapping[int, HostCall]) -> DeviceEvent:
        start_us, duration_us = self._span_us(row)
        kind, name, shape, size = OpKind.MEMSET, "memset", None, 0
        if "gridX" in row.values or "demangledName" in row.values:
            kind, name = OpKind.KERNEL, self._named(row, "demangledName")
            shape = LaunchShape(
                grid=self._dimensions(row, "grid"),
                block=self._dimensions(row, "block"),
                registers=row.integer("registersPerThread", 1, 255),
                shared_bytes=row.integer("staticSharedMemory") + row.integer("dynamicSharedMemory"),
            )
        else:
            size = row.integer("bytes")
            if "copyKind" in row.values:
                copied = row.integer("copyKind")
                kind = OpKind.COPY_TO_DEVICE if copied in _TO_DEVICE else OpKind.COPY_ON_DEVICE
                kind, name = (OpKind.COPY_TO_HOST if copied in _TO_HOST else kind), "memcpy"
        correlation = _number(row, "correlationId")
        call = calls.get(correlation) if correlation is not None else None
        return DeviceEvent(kind, name, start_us, duration_us, row.integer("streamId"), call, shape, size)

    def _dimensions(self, row: Fields, of: str) -> tuple[int, int, int]:
        x, y, z = (row.integer(f"{of}{axis}", 1, 2**31 - 1) for axis in "XYZ")
        return x, y, z

    def _texts(self, *kinds: int) -> Iterator[tuple[Fields, str]]:
        """NVTX events of some kinds that have a text."""
        for row in self._rows("NVTX_EVENTS", prefix=""):
            if row.values.get("eventType") in kinds:
                text = row.values.get("text")
                if isinstance(text, str):
                    yield row, text
                elif row.values.get("textId") is not None:
                    yield row, self._named(row, "textId")

    def _marks(self) -> Iterator[HostCall]:
        for row, text in self._texts(*_RANGES):
            if row.values.get("end") is not None:
                thread = row.integer("globalTid") if row.values.get("globalTid") is not None else 0
                yield HostCall(text, *self._span_us(row), thread)

    def _unprofiled(self) -> tuple[float, ...]:
        """What a mark says of iterations without the profiler."""
        found: tuple[float, ...] = ()
        for row, text in self._texts(_MARK):
            if given := re.fullmatch(rf"{UNPROFILED}=\[?([^\]]*)\]?", text):
                found += check_unprofiled(given[1].split(","), f"{row.where}: {UNPROFILED}")
        return found

    def _overheads(self) -> Iterator[HostCall]:
        for row in self._rows("PROFILER_OVERHEAD", prefix=""):
            yield HostCall("overhead", *self._span_us(row))

    def _device(self, device: Any) -> str:
        """The driver's name of the GPU."""
        rows = list(self._rows("TARGET_INFO_GPU", prefix=""))
        own = [row for row in rows if device in (row.values.get("cuDevice"), row.values.get("id"))]
        named = (own or rows)[:1]
        return named[0].text("name") if named else ""


def _number(row: Fields, field: str) -> int | None:
    """An optional number; ``None`` if it is missing or does not apply."""
    if row.values.get(field) is None:
        return None
    number = row.integer(field)
    return None if number == _UNKNOWN else number

"""Reader of Nsight Systems exports: ``nsys export --type sqlite report.nsys-rep``.

Of tables of any version, only what is read is read, bounded in length.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

from gpusched_env.display.words import printable
from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuProduct, alike
from gpusched_env.reading import opened
from gpusched_env.workload.importers.fields import MOST_BYTES, Fields
from gpusched_env.workload.importers.missing import completed_recording
from gpusched_env.workload.importers.recording import (
    ANY,
    UNPROFILED,
    DeviceEvent,
    GpuProcess,
    HostCall,
    LaunchShape,
    OrderCall,
    Recording,
    Selection,
    check_unprofiled,
    ordering,
    pick_iterations,
    select,
)
from gpusched_env.workload.workload import OpKind

LONGEST_TEXT: Final = 1 << 16
"""Characters of a text that are read: names of kernels are the longest."""
_LARGEST_VALUE: Final = 1 << 24
"""Bytes of a value that SQLite may make; some reports keep the program's output as a text."""


class ExportTables:
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


_HEADER = b"SQLite format 3\0"
_PREFIX = "CUPTI_ACTIVITY_KIND_"
_EARLIEST = -(2**63)
_UNKNOWN = 2**32 - 1
"""CUPTI's number for a stream or event that does not apply."""
_RANGES = (59, 60)
"""``eventType`` of NVTX ranges: pushed and popped, started and ended."""
_MARK = 34
"""``eventType`` of an NVTX mark."""
_TO_DEVICE, _TO_HOST = (1, 3), (2, 4)
_PAGEABLE = 0
"""``srcKind`` and ``dstKind`` of host memory that is not pinned (``ENUM_CUDA_MEM_KIND``)."""
_MIGRATION = 11
"""``copyKind`` from here on is unified memory's, which no call of the program made."""
_WORK = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid")
_AXES = tuple(f"{of}{axis}" for of in ("grid", "block") for axis in "XYZ")
_SHARED = ("staticSharedMemory", "dynamicSharedMemory")
_SHAPE = ("demangledName", *_AXES, "registersPerThread", *_SHARED)
_TEXTS = ((f"{_PREFIX}KERNEL", "demangledName"), (f"{_PREFIX}RUNTIME", "nameId"), ("NVTX_EVENTS", "textId"))
_GPU = ("id", "cuDevice", "deviceId", "name", "smCount", "numMultiprocessors", "totalMemory", "globalMemorySize")


def is_sqlite(path: Path) -> bool:
    """Whether a file is an SQLite database.

    Raises:
        InputError: it cannot be read, or is a report that has to be exported first.
    """
    if path.suffix in (".nsys-rep", ".qdrep"):
        raise InputError(f"{path}: export the report first: nsys export --type sqlite {path.name}")
    with opened(path) as file:
        return file.read(len(_HEADER)) == _HEADER


def read_nsys(path: Path, iteration: str | None = None, selection: Selection = ANY) -> Recording:
    """The recording in an SQLite export (see :func:`~gpusched_env.workload.importers.trace.import_trace`).

    Raises:
        InputError: names file, table, row and field at fault, or the GPUs and processes that there are.
    """
    try:
        database = sqlite3.connect(f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1", uri=True)
        try:
            return _Export(ExportTables(database, str(path)), str(path)).recording(path.stem, iteration, selection)
        finally:
            database.close()
    except (sqlite3.Error, OverflowError) as error:
        raise InputError(f"{path}: not a readable Nsight Systems export ({printable(str(error), 200)})") from error


class _Export:
    """The tables of an export."""

    def __init__(self, tables: ExportTables, origin: str) -> None:
        self._tables = tables
        self._origin = origin
        self._strings = tables.texts(_TEXTS)

    def recording(self, name: str, iteration: str | None, selection: Selection) -> Recording:
        """The recording of a process on a GPU."""
        work = self._work()
        part = select(((_part(row), kind) for kind, row in work), selection, self._gpu, self._origin)
        if any(_part(row) == part for row in self._rows("GRAPH_TRACE", _WORK)):
            what = "CUDA graphs were traced as a whole; profile with --cuda-graph-trace=node"
            raise InputError(f"{self._origin}: {what}")
        calls = self._calls(part)
        without = sum(kind is OpKind.KERNEL and _part(row) == part and not _has_shared(row) for kind, row in work)
        recording = Recording(
            name=name,
            origin=self._origin,
            recorder="Nsight Systems",
            gpu=self._gpu(part),
            events=tuple(self._event(kind, row, calls) for kind, row in work if _part(row) == part),
            orders=tuple(self._orders(part, calls)),
            iterations=tuple(pick_iterations(list(self._marks(part)), iteration, self._origin)),
            overheads=tuple(self._overheads(part)),
            unprofiled_us=self._unprofiled(part),
            notes=(f"{without} kernels without shared memory, taken to use none",) if without else (),
            advice="record a shorter range (--capture-range), so that no record is dropped"
            if calls
            else "profile with nsys profile --trace=cuda,nvtx, and a range that has the launches",
        )
        return completed_recording(recording, calls)

    def _work(self) -> list[tuple[OpKind, Fields]]:
        """Kernels, copies and memsets of all processes and GPUs."""
        if not self._tables.has(f"{_PREFIX}KERNEL"):
            what = "no table CUPTI_ACTIVITY_KIND_KERNEL; profile with nsys profile --trace=cuda,nvtx"
            raise InputError(f"{self._origin}: {what}")
        kernels = list(self._rows("KERNEL", (*_WORK, *_SHAPE)))
        if not kernels:
            raise InputError(f"{self._origin}: no GPU kernel in the export; was the program's GPU work in its range?")
        copies = self._rows("MEMCPY", (*_WORK, "bytes", "copyKind", "srcKind", "dstKind"))
        return [
            *((OpKind.KERNEL, row) for row in kernels),
            *((_copy_kind(row), row) for row in copies if row.integer("copyKind") < _MIGRATION),
            *((OpKind.MEMSET, row) for row in self._rows("MEMSET", (*_WORK, "bytes"))),
        ]

    def _rows(self, table: str, columns: tuple[str, ...]) -> Iterator[Fields]:
        return self._tables.rows(_PREFIX + table, columns)

    def _named(self, row: Fields, field: str) -> str:
        number = row.integer(field)
        if number not in self._strings:
            raise row.fail(field, "the id of a row of StringIds")
        return self._strings[number]

    def _calls(self, part: GpuProcess) -> dict[int, HostCall]:
        """Calls by correlation; of a runtime call and the driver call inside it, the outer one."""
        found: dict[int, HostCall] = {}
        for row in self._rows("RUNTIME", ("start", "end", "globalTid", "correlationId", "nameId")):
            if not _is_of(row, part):
                continue
            start_us, duration_us = _span_us(row)
            call = HostCall(self._named(row, "nameId"), start_us, duration_us, _thread(row))
            correlation = _number(row, "correlationId")
            known = found.get(correlation) if correlation is not None else None
            if correlation is not None and (known is None or start_us < known.start_us):
                found[correlation] = call
        return found

    def _orders(self, part: GpuProcess, calls: Mapping[int, HostCall]) -> Iterator[OrderCall]:
        streams: dict[int, int] = {}
        events: dict[int, int] = {}
        for table in ("SYNCHRONIZATION", "CUDA_EVENT"):
            for row in self._rows(table, ("streamId", "eventId", "correlationId", "globalPid")):
                correlation = _number(row, "correlationId")
                for field, known in (("streamId", streams), ("eventId", events)):
                    number = _number(row, field)
                    if correlation is not None and number is not None and _process(row) in (None, part.process):
                        known[correlation] = number
        last: dict[int, int] = {}
        """The call that recorded an event last, by event."""
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

    def _event(self, kind: OpKind, row: Fields, calls: Mapping[int, HostCall]) -> DeviceEvent:
        start_us, duration_us = _span_us(row)
        name, shape = ("memset" if kind is OpKind.MEMSET else "memcpy"), None
        if kind is OpKind.KERNEL:
            name = self._named(row, "demangledName")
            known = "registersPerThread" in row.values
            shape = LaunchShape(
                grid=_dimensions(row, "grid"),
                block=_dimensions(row, "block"),
                registers=row.integer("registersPerThread", 0, 255) if known else 0,
                shared_bytes=sum(row.integer(column) for column in _SHARED if _has_shared(row)),
            )
        correlation = _number(row, "correlationId")
        return DeviceEvent(
            kind=kind,
            name=name,
            start_us=start_us,
            duration_us=duration_us,
            stream=row.integer("streamId"),
            call=None if correlation is None else calls.get(correlation),
            number=-1 if correlation is None else correlation,
            shape=shape,
            bytes=0 if shape else row.integer("bytes", 0, MOST_BYTES),
            pageable=_PAGEABLE in (row.values.get("srcKind"), row.values.get("dstKind")),
        )

    def _texts(self, *kinds: int) -> Iterator[tuple[Fields, str]]:
        """NVTX events of some kinds that have a text."""
        for row in self._tables.rows("NVTX_EVENTS", ("start", "end", "eventType", "text", "textId", "globalTid")):
            if row.integer("eventType") in kinds:
                text = row.values.get("text")
                if isinstance(text, str):
                    yield row, text
                elif row.values.get("textId") is not None:
                    yield row, self._named(row, "textId")

    def _marks(self, part: GpuProcess) -> Iterator[HostCall]:
        for row, text in self._texts(*_RANGES):
            if row.values.get("end") is not None and _is_of(row, part):
                yield HostCall(text, *_span_us(row), _thread(row))

    def _unprofiled(self, part: GpuProcess) -> tuple[float, ...]:
        """What a mark says of iterations without the profiler."""
        found: tuple[float, ...] = ()
        for row, text in self._texts(_MARK):
            given = re.fullmatch(rf"{UNPROFILED}=\[?([^\]]*)\]?", text)
            if given and _is_of(row, part):
                found += check_unprofiled(given[1].split(","), f"{row.where}: {UNPROFILED}")
        return found

    def _overheads(self, part: GpuProcess) -> Iterator[HostCall]:
        for row in self._tables.rows("PROFILER_OVERHEAD", ("start", "end", "globalTid")):
            if _is_of(row, part):
                yield HostCall("overhead", *_span_us(row))

    def _gpu(self, part: GpuProcess) -> GpuProduct:
        """What the driver says of a process's GPU: the one of its number, or any if all are called alike."""
        rows = [*self._tables.rows("TARGET_INFO_GPU", _GPU), *self._tables.rows("TARGET_INFO_CUDA_GPU", _GPU)]
        known = [
            device.values
            for device in self._tables.rows("TARGET_INFO_CUDA_DEVICE", ("gpuId", "cudaId", "pid"))
            if device.values.get("cudaId") == part.device
        ]
        own = [values for values in known if values.get("pid") == part.process]
        numbers = {values.get("gpuId") for values in own or known}
        by = ("id",) if len(numbers) == 1 else ("cuDevice", "deviceId", "id")
        number = numbers.pop() if len(numbers) == 1 else part.device
        field = next((field for field in by if any(row.values.get(field) == number for row in rows)), None)
        return alike([_described(row) for row in rows if field is None or row.values.get(field) == number])


def _described(gpu: Fields) -> GpuProduct:
    name, *sizes = (
        next((value for value in map(gpu.values.get, names) if value is not None), None)
        for names in (("name",), ("smCount", "numMultiprocessors"), ("totalMemory", "globalMemorySize"))
    )
    return GpuProduct.of(name, *sizes)


def _part(row: Fields) -> GpuProcess:
    return GpuProcess(row.integer("deviceId"), _process(row))


def _process(row: Fields) -> int | None:
    """Number of the process on its system."""
    return None if row.values.get("globalPid") is None else _on_system(row.integer("globalPid"))


def _on_system(number: int) -> int:
    return number >> 24 & 0xFFFFFF


def _is_of(row: Fields, part: GpuProcess) -> bool:
    """Whether the thread of a call or range is of a part's process, as far as both are known."""
    return None in (part.process, row.values.get("globalTid")) or _on_system(_thread(row)) == part.process


def _thread(row: Fields) -> int:
    return row.integer("globalTid") if row.values.get("globalTid") is not None else 0


def _copy_kind(row: Fields) -> OpKind:
    copied = row.integer("copyKind")
    if copied in _TO_DEVICE:
        return OpKind.COPY_TO_DEVICE
    return OpKind.COPY_TO_HOST if copied in _TO_HOST else OpKind.COPY_ON_DEVICE


def _dimensions(row: Fields, of: str) -> tuple[int, int, int]:
    x, y, z = (row.integer(f"{of}{axis}", 1, 2**31 - 1) for axis in "XYZ")
    return x, y, z


def _has_shared(row: Fields) -> bool:
    """Whether the export has what shared memory a kernel uses."""
    return any(column in row.values for column in _SHARED)


def _span_us(row: Fields) -> tuple[float, float]:
    """Start and duration of a row, in microseconds. Time 0 is the session's start; what began before is negative."""
    start, end = row.integer("start", _EARLIEST), row.integer("end", _EARLIEST)
    if end < start:
        raise row.fail("end", f"a time not before its start, {start}")
    return start / 1e3, (end - start) / 1e3


def _number(row: Fields, field: str) -> int | None:
    """An optional number; ``None`` if it is missing or does not apply."""
    if row.values.get(field) is None:
        return None
    number = row.integer(field)
    return None if number == _UNKNOWN else number

"""Recordings of kernels on a real GPU: files, rows, and what of them a prediction may see.

A folder holds any of ``pairs``, ``mixes`` and ``sequences``, with the ``kernels`` that they are of, ``model_pairs``,
and ``processes`` (each ``.jsonl`` or ``.jsonl.gz``; see ``data/README.md`` for how such recordings are made). Networks
are the traced ones of its folder ``traces``, which ``gpusched lab record`` writes, as they are or imported; of those
that it lacks, the shipped workloads. A first line without an ``id``, ``what`` or ``spec`` is a header and skipped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from gpusched_env.data import recorded_names
from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.recorded import SCHEDULERS, GraphPair
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.reading import Duration, Time, decoded, read_bytes, unzipped
from gpusched_env.workload.importers import import_trace
from gpusched_env.workload.workload import Workload, read_workload

KERNEL_SETS = ("pairs", "mixes", "sequences")
MODEL_PAIRS = "model_pairs"
PROCESSES: Final = "processes"
ALONE: Final = "alone"
PROGRAM_SCHEDULERS: Final = {
    "time slicing": "time-slicing",
    "streams": "pass-through",
    "priority streams": "priority-streams",
}
"""The scheduler for each recorded mode."""
TRACES = "traces"
TRACE_SUFFIX = ".kineto.json.gz"
WORKLOAD_SUFFIX = ".workload.json.gz"
"""End of the name of an imported trace's file."""
ROW_KEYS = {"id", "what", "spec"}
"""What begins a row: a first line without any of these is a header."""

NotNegative = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]


class Solo(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel's profile alone."""

    duration_us: Duration
    """First block start to last block end."""
    block_us: Duration
    """Mean residency of a block."""
    block_us_p95: Duration


class SyntheticWork(msgspec.Struct, frozen=True, kw_only=True):
    """Shape and known work of a synthetic kernel."""

    grid: Count
    block: Count
    smem: Annotated[int, Meta(ge=0)]
    regs: Count
    flop_per_block: NotNegative
    dram_bytes_per_block: NotNegative


class SyntheticKernel(SyntheticWork, frozen=True, kw_only=True):
    """A kernel of the library."""

    id: str
    solo: Solo


class ValidatedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a scenario, in issue order."""

    stream: Annotated[int, Meta(ge=0)]
    priority: Annotated[int, Meta(le=0)]
    delay_us: Time | None
    """When the flag of its stream is raised; ``None``: queued behind the stream's previous launch."""
    kernel: str


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Medians over the repetitions, us since the release."""

    start_us: float
    end_us: Duration


class RecordedScenario(msgspec.Struct, frozen=True, kw_only=True):
    """Several streams released together."""

    id: str
    launches: Annotated[tuple[ValidatedLaunch, ...], Meta(min_length=1)]
    measured: tuple[Measured, ...]
    end_min_max_us: tuple[tuple[float, float], ...]
    """Range of each end over the repetitions."""

    def __post_init__(self) -> None:
        launches, measured, ranges = len(self.launches), len(self.measured), len(self.end_min_max_us)
        if not launches == measured == ranges:
            raise ValueError(
                f"scenario {self.id}: {launches} launches, {measured} measured, {ranges} ranges; "
                "the numbers must be equal"
            )
        opened: set[int] = set()
        for i, launch in enumerate(self.launches):
            if launch.delay_us is None and launch.stream not in opened:
                raise ValueError(
                    f"scenario {self.id}: launches[{i}].delay_us is null, but it is the first of stream {launch.stream}"
                )
            opened.add(launch.stream)


class ModelSolo(msgspec.Struct, frozen=True, kw_only=True, tag="solo", tag_field="what"):
    """A network as a CUDA graph by itself."""

    model: str
    p50_us: Duration


class RecordedIterations(msgspec.Struct, frozen=True):
    """Recorded times of a program's iterations."""

    n: int
    mean_us: Duration


class ProgramRow(msgspec.Struct, frozen=True, kw_only=True):
    """A program alone, or two side by side."""

    what: str
    """:data:`ALONE`, or a mode of :data:`PROGRAM_SCHEDULERS`."""
    front: str
    behind: str | None = None
    front_us: RecordedIterations | None = None
    behind_us: RecordedIterations | None = None
    error: str | None = None
    """Why it was not recorded."""


@dataclass(frozen=True, slots=True)
class ProgramPair:
    """Two programs side by side, with what each took alone."""

    row: ProgramRow
    alone_us: tuple[float, float]

    @property
    def names(self) -> tuple[str, str]:
        return self.row.front, str(self.row.behind)

    @property
    def recorded(self) -> tuple[float, float]:
        """Slowdown of either: mean time together over that alone."""
        assert self.row.front_us is not None
        assert self.row.behind_us is not None
        front_us, behind_us = self.row.front_us.mean_us, self.row.behind_us.mean_us
        return front_us / self.alone_us[0], behind_us / self.alone_us[1]


@dataclass(frozen=True)
class Programs:
    """What a folder has of programs side by side."""

    pairs: Sequence[ProgramPair] = ()
    workloads: Mapping[str, Workload] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recordings:
    """What a folder holds."""

    folder: Path
    kernels: dict[str, SyntheticKernel]
    sets: dict[str, list[RecordedScenario]]
    """The recorded scenarios of those :data:`KERNEL_SETS` that the folder has."""
    model_pairs: list[GraphPair] | None
    """The pairs that can be simulated; ``None`` if the folder has no file of them."""
    skipped: list[str]
    """Why other pairs of networks are left out, one text a pair."""
    workloads: dict[str, Workload] = field(default_factory=dict)
    """Networks of pairs that the folder has traces of, by name."""
    programs: Programs = Programs()
    """Programs that Python launches."""


Row = TypeVar("Row")


def read_recordings(folder: Path, gpu: GpuSpec | None = None) -> Recordings:
    """All recordings of ``folder``.

    Args:
        folder: where they are.
        gpu: of the traces; ``None``: as they say.

    Raises:
        InputError: no folder, no kernels beside what is of kernels, no recordings, or an invalid row (with file, line
            and field).
    """
    programs = read_programs(folder, gpu)
    path = find(folder, MODEL_PAIRS)
    of_kernels = (path is None and not programs.pairs) or any(find(folder, name) for name in KERNEL_SETS)
    kernels = read_kernels(folder) if of_kernels else {}
    sets = {name: rows for name in KERNEL_SETS if (rows := read_scenarios(folder, name, kernels)) is not None}
    if path is None and not sets and not programs.pairs:
        raise InputError(
            f"{folder}: has none of {', '.join((*KERNEL_SETS, MODEL_PAIRS, PROCESSES))} (.jsonl or .jsonl.gz)"
        )
    if path is None:
        return Recordings(folder, kernels, sets, None, [], programs=programs)
    found: list[ModelSolo | GraphPair] = read_rows(path, ModelSolo | GraphPair)  # type: ignore[arg-type]
    paired = [row for row in found if isinstance(row, GraphPair)]
    workloads = traced(folder, {name for pair in paired for name in (pair.fg, pair.bg)}, gpu)
    reasons = [_reason_to_skip(pair, workloads) for pair in paired]
    usable = [pair for pair, reason in zip(paired, reasons, strict=True) if not reason]
    return Recordings(folder, kernels, sets, usable, [reason for reason in reasons if reason], workloads, programs)


def traced(folder: Path, names: Collection[str], gpu: GpuSpec | None) -> dict[str, Workload]:
    """The networks among ``names`` that ``folder`` has traces of, or what was imported from them.

    Args:
        folder: of the recordings.
        names: of networks.
        gpu: of traces that were not imported; ``None``: as they say.


    Raises:
        InputError: a trace is invalid, or its GPU is not known.
    """
    found = {}
    for name in sorted(names):
        trace, imported = (folder / TRACES / f"{name}{suffix}" for suffix in (TRACE_SUFFIX, WORKLOAD_SUFFIX))
        if trace.is_file():
            found[name] = import_trace(trace, gpu)
        elif imported.is_file():
            found[name] = read_workload(imported)
    return found


def read_programs(folder: Path, gpu: GpuSpec | None) -> Programs:
    """The pairs of ``processes.jsonl`` that were recorded; none without the file.

    Raises:
        InputError: an invalid row, a mode that is not known, or a program without a trace or a time alone.
    """
    path = find(folder, PROCESSES)
    if path is None:
        return Programs()
    rows = [row for row in read_rows(path, ProgramRow) if row.error is None]
    alone_us = {row.front: row.front_us.mean_us for row in rows if row.what == ALONE and row.front_us is not None}
    together = [row for row in rows if row.what != ALONE]
    names = {str(name) for row in together for name in (row.front, row.behind)}
    workloads = traced(folder, names, gpu)
    for row in together:
        if row.what not in PROGRAM_SCHEDULERS:
            raise InputError(f"{path}: unknown mode {row.what!r}; known are {', '.join(PROGRAM_SCHEDULERS)}")
        if row.front_us is None or row.behind_us is None:
            raise InputError(f"{path}: {row.what}, {row.front} and {row.behind}: front_us or behind_us is missing")
    for name in sorted(names):
        if name not in alone_us:
            raise InputError(f"{path}: has no time of {name} alone; record {PROCESSES} again")
        if name not in workloads:
            raise InputError(
                f"{folder}: has no {TRACES}/{name}{TRACE_SUFFIX}; record --sets {PROCESSES},{TRACES} makes them"
            )
    return Programs([ProgramPair(row, (alone_us[row.front], alone_us[str(row.behind)])) for row in together], workloads)


def _reason_to_skip(pair: GraphPair, workloads: Collection[str]) -> str:
    unknown = [name for name in (pair.fg, pair.bg) if name not in workloads and name not in recorded_names()]
    if unknown:
        return (
            f"{pair.fg} and {pair.bg}: no shipped workload {unknown[0]!r}, and no {TRACES}/{unknown[0]}{TRACE_SUFFIX}"
        )
    if pair.mode not in SCHEDULERS:
        return f"{pair.fg} and {pair.bg}: unknown mode {pair.mode!r}; known are {', '.join(SCHEDULERS)}"
    return ""


def read_kernels(folder: Path) -> dict[str, SyntheticKernel]:
    """The kernel library by id.

    Raises:
        InputError: missing or invalid file; names file, line and field.
    """
    (path,) = find_all(folder, "kernels")
    return {kernel.id: kernel for kernel in read_rows(path, SyntheticKernel)}


def read_scenarios(folder: Path, name: str, kernels: dict[str, SyntheticKernel]) -> list[RecordedScenario] | None:
    """The scenarios of one of :data:`KERNEL_SETS`; ``None`` if the folder has none.

    Raises:
        InputError: invalid file, a kernel that the library lacks, or figures that do not match the launches.
    """
    path = find(folder, name)
    if path is None:
        return None
    scenarios = read_rows(path, RecordedScenario)
    for scenario in scenarios:
        for launch in scenario.launches:
            if launch.kernel not in kernels:
                raise InputError(
                    f"{path}: scenario {scenario.id}: unknown kernel {launch.kernel!r}; "
                    f"{len(kernels)} kernels are in the library"
                )
    return scenarios


def find(folder: Path, name: str) -> Path | None:
    """The file of a set, plain or gzipped."""
    return next((path for end in ("", ".gz") if (path := folder / f"{name}.jsonl{end}").is_file()), None)


def find_all(folder: Path, *names: str) -> list[Path]:
    """The files of sets that must be there.

    Raises:
        InputError: the folder or a file is missing.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name one with {', '.join(f'{name}.jsonl' for name in names)}")
    found = {name: find(folder, name) for name in names}
    missing = [f"{name}.jsonl" for name, path in found.items() if path is None]
    if missing:
        raise InputError(f"{folder}: has no {', '.join(missing)} (or .jsonl.gz)")
    return [path for path in found.values() if path is not None]


def read_rows(path: Path, kind: type[Row]) -> list[Row]:
    """All rows of a file of one JSON object a line, plain or gzipped, without its header.

    Raises:
        InputError: the file cannot be read, has no rows, or a row does not validate; names file, line and field.
    """
    rows = []
    for number, line in enumerate(unzipped(read_bytes(path), str(path)).splitlines(), start=1):
        where = f"{path}, line {number}"
        if line.strip() and (number > 1 or ROW_KEYS & decoded(line, dict[str, Any], where).keys()):
            rows.append(decoded(line, kind, where))
    if not rows:
        raise InputError(f"{path}: has no rows")
    return rows

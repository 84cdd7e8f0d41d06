"""Recordings of synthetic kernels sharing a GPU: files, rows, and what of them a prediction may see.

A folder holds ``kernels.jsonl`` and any of ``pairs``, ``mixes``, ``sequences`` and ``model_pairs`` (each
``.jsonl`` or ``.jsonl.gz``; see ``data/README.md`` for how such recordings are made). A first line
without an ``id``, ``what`` or ``spec`` is a header and skipped.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from gpusched_env.errors import InputError

KERNEL_SETS = ("pairs", "mixes", "sequences")
MODEL_PAIRS = "model_pairs"
ROW_KEYS = ("id", "what", "spec")
"""What begins a row: a first line without any of these is a header."""

Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]


class Solo(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel's profile alone."""

    duration_us: Positive
    """First block start to last block end."""
    block_us: Positive
    """Mean residency of a block."""
    block_us_p95: Positive


class SyntheticKernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel of the library: shape, known work, solo profile."""

    id: str
    grid: Count
    block: Count
    smem: Annotated[int, Meta(ge=0)]
    regs: Count
    flop_per_block: Annotated[float, Meta(ge=0)]
    dram_bytes_per_block: Annotated[float, Meta(ge=0)]
    solo: Solo


class RecordedLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a scenario, in issue order."""

    stream: Annotated[int, Meta(ge=0)]
    priority: Annotated[int, Meta(le=0)]
    delay_us: Annotated[float, Meta(ge=0)] | None
    """When the flag of its stream is raised; ``None``: queued behind the stream's previous launch."""
    kernel: str


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Medians over the repetitions, us since the release."""

    start_us: float
    end_us: Positive


class RecordedScenario(msgspec.Struct, frozen=True, kw_only=True):
    """Several streams released together."""

    id: str
    launches: Annotated[tuple[RecordedLaunch, ...], Meta(min_length=1)]
    measured: tuple[Measured, ...]
    end_min_max_us: tuple[tuple[float, float], ...]
    """Range of each end over the repetitions."""


class ModelSolo(msgspec.Struct, frozen=True, kw_only=True, tag="solo", tag_field="what"):
    """A network as a CUDA graph by itself."""

    model: str
    p50_us: Positive


class ModelPair(msgspec.Struct, frozen=True, kw_only=True, tag="pair", tag_field="what"):
    """A foreground network replayed one at a time beside a background one replayed back to back."""

    mode: str
    fg: str
    bg: str
    fg_p50_us: Positive
    bg_p50_us: Positive
    fg_solo_us: Positive
    bg_solo_us: Positive


Row = TypeVar("Row")


def read_kernels(folder: Path) -> dict[str, SyntheticKernel]:
    """The kernel library by id.

    Raises:
        InputError: missing or invalid file; names file, line and field.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; name one with kernels.jsonl and recordings")
    path = find(folder, "kernels")
    if path is None:
        raise InputError(f"{folder}: has no kernels.jsonl (or .jsonl.gz)")
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
        where = f"{path}: scenario {scenario.id}"
        for launch in scenario.launches:
            if launch.kernel not in kernels:
                raise InputError(
                    f"{where}: unknown kernel {launch.kernel!r}; {len(kernels)} kernels are in the library"
                )
        if not len(scenario.launches) == len(scenario.measured) == len(scenario.end_min_max_us):
            raise InputError(
                f"{where}: {len(scenario.launches)} launches, {len(scenario.measured)} measured, "
                f"{len(scenario.end_min_max_us)} ranges; the numbers must be equal"
            )
        opened: set[int] = set()
        for i, launch in enumerate(scenario.launches):
            if launch.delay_us is None and launch.stream not in opened:
                raise InputError(
                    f"{where}: launches[{i}].delay_us is null, but it is the first of stream {launch.stream}"
                )
            opened.add(launch.stream)
    return scenarios


def read_model_pairs(folder: Path) -> list[ModelPair] | None:
    """The pairs of networks; ``None`` if the folder has none."""
    path = find(folder, MODEL_PAIRS)
    if path is None:
        return None
    rows: list[ModelSolo | ModelPair] = read_rows(path, ModelSolo | ModelPair)  # type: ignore[arg-type]
    return [row for row in rows if isinstance(row, ModelPair)]


def find(folder: Path, name: str) -> Path | None:
    """The file of a set, plain or gzipped."""
    for suffix in (".jsonl", ".jsonl.gz"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    return None


def read_rows(path: Path, type_: type[Row]) -> list[Row]:
    """All rows of a file of one JSON object a line, plain or gzipped, without its header.

    Raises:
        InputError: the file cannot be read, has no rows, or a row does not validate; names file, line and field.
    """
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.name.endswith(".gz") else data).decode()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from error
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or (number == 1 and _is_header(line, path)):
            continue
        try:
            rows.append(msgspec.json.decode(line, type=type_))
        except (msgspec.ValidationError, msgspec.DecodeError) as error:
            raise InputError(f"{path}, line {number}: {error}") from error
    if not rows:
        raise InputError(f"{path}: has no rows")
    return rows


def _is_header(line: str, path: Path) -> bool:
    try:
        first: Any = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line 1: not JSON ({error})") from error
    return isinstance(first, dict) and not any(key in first for key in ROW_KEYS)

"""What a calibration reads: kernels alone (``waves``, ``kernels``) and gaps between kernels (``launch``)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from gpusched_env.errors import InputError
from gpusched_env.experiments.validate.dataset import (
    Count,
    Positive,
    Solo,
    SyntheticKernel,
    find,
    read_kernels,
    read_rows,
)

BACK_TO_BACK = "same_stream_back_to_back"
EVENT = "cross_stream_event_dependency_ns"
WAVES, KERNELS, LAUNCH = "waves", "kernels", "launch"
TIMER_STEP_US = 0.032
"""Resolution of ``%globaltimer``, with which the gaps were measured."""


class WaveSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A synthetic kernel of a grid sweep: shape and known work."""

    grid: Count
    block: Count
    smem: Annotated[int, Meta(ge=0)]
    regs: Count
    flop_per_block: Annotated[float, Meta(ge=0)]
    dram_bytes_per_block: Annotated[float, Meta(ge=0)]


class WaveRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel alone; times in us."""

    spec: WaveSpec
    start_us: float
    end_us: Positive
    block_us: Positive
    block_us_p95: Positive


class LaunchRow(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of launch costs: which fields it has depends on ``what``."""

    what: str
    device_gap_ns: Positive | None = None
    median: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One kernel alone, with its measured duration."""

    source: str
    """:data:`WAVES` or :data:`KERNELS`."""
    family: str
    """Samples of one family are one kernel with different grids: their errors are not independent."""
    kernel: SyntheticKernel

    @property
    def kind(self) -> str:
        """``compute`` (no loads), ``memory`` (loads only) or ``mixed``."""
        if self.kernel.dram_bytes_per_block == 0.0:
            return "compute"
        return "memory" if self.kernel.flop_per_block == 0.0 else "mixed"

    @property
    def measured_us(self) -> float:
        return self.kernel.solo.duration_us


@dataclass(frozen=True, slots=True)
class Gap:
    """A latency read directly from recordings, us."""

    value_us: float
    error_us: float | None
    """Standard error of a median over several rows, at least that of the timer's steps; ``None`` for one row."""
    rows: int


@dataclass(frozen=True, slots=True)
class Recordings:
    """Everything that a calibration uses of a folder."""

    samples: tuple[Sample, ...]
    block_gap: Gap
    """Same stream, last block to first block."""
    event_latency: Gap


def read_recordings(folder: Path) -> Recordings:
    """The recordings in ``folder``.

    Raises:
        InputError: the folder or one of ``waves``, ``kernels`` and ``launch`` (``.jsonl`` or ``.jsonl.gz``)
            is missing, or a row lacks a field; names file, line and field.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; expected one with waves.jsonl, kernels.jsonl and launch.jsonl")
    missing = [name for name in (WAVES, KERNELS, LAUNCH) if find(folder, name) is None]
    if missing:
        names = ", ".join(f"{name}.jsonl" for name in missing)
        raise InputError(f"{folder}: has no {names} (or .jsonl.gz), which a calibration needs")
    samples = [Sample(KERNELS, kernel.id, kernel) for kernel in read_kernels(folder).values()]
    for sample in samples:
        kernel = sample.kernel
        where = f"{_file(folder, KERNELS)}: kernel {kernel.id}"
        _check_work(kernel.flop_per_block, kernel.dram_bytes_per_block, where)
    launch = _file(folder, LAUNCH)
    rows = read_rows(launch, LaunchRow)
    return Recordings(
        (*_waves(_file(folder, WAVES)), *samples),
        block_gap=_gap(launch, rows, BACK_TO_BACK, "device_gap_ns"),
        event_latency=_gap(launch, rows, EVENT, "median"),
    )


def _file(folder: Path, name: str) -> Path:
    path = find(folder, name)
    assert path is not None
    return path


def _waves(path: Path) -> list[Sample]:
    samples = []
    for number, row in enumerate(read_rows(path, WaveRow), start=1):
        spec = row.spec
        where = f"{path}: sweep row {number} (grid {spec.grid}, block {spec.block})"
        if row.end_us <= row.start_us:
            raise InputError(f"{where}: end_us {row.end_us} must be after start_us {row.start_us}")
        _check_work(spec.flop_per_block, spec.dram_bytes_per_block, where)
        family = f"{WAVES} {spec.block}x{spec.smem} {spec.flop_per_block:g} {spec.dram_bytes_per_block:g}"
        solo = Solo(duration_us=row.end_us - row.start_us, block_us=row.block_us, block_us_p95=row.block_us_p95)
        work = {name: getattr(spec, name) for name in WaveSpec.__struct_fields__}
        samples.append(Sample(WAVES, family, SyntheticKernel(id=f"sweep row {number}", solo=solo, **work)))
    return samples


def _check_work(flop: float, traffic: float, where: str) -> None:
    if flop == 0.0 and traffic == 0.0:
        raise InputError(f"{where}: flop_per_block and dram_bytes_per_block are both 0; one must be positive")


def _gap(path: Path, rows: list[LaunchRow], what: str, field: str) -> Gap:
    found = [row for row in rows if row.what == what]
    if not found:
        raise InputError(f'{path}: has no row with "what": "{what}"')
    values = [getattr(row, field) for row in found]
    if any(value is None or value <= 0 for value in values):
        raise InputError(f"{path}: a row of {what} has no positive {field}")
    return _median([value / 1e3 for value in values])


def _median(values: list[float]) -> Gap:
    value = float(np.median(values))
    if len(values) == 1:
        return Gap(value, None, 1)
    spread = 1.4826 * float(np.median(np.abs(np.array(values) - value)))
    steps = TIMER_STEP_US / np.sqrt(12.0)
    return Gap(value, float(max(1.2533 * spread / np.sqrt(len(values)), steps)), len(values))

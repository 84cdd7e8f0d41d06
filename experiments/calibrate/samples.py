"""What a calibration reads: kernels alone (``waves``, ``kernels``) and gaps between kernels (``launch``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from gpusched_env.errors import InputError
from gpusched_env.experiments.lib.graph_pairs import Positive
from gpusched_env.experiments.validate.recordings import Solo, SyntheticKernel, SyntheticWork, find_all, read_rows

BACK_TO_BACK = "same_stream_back_to_back"
EVENT = "cross_stream_event_dependency_ns"
WAVES, KERNELS, LAUNCH = "waves", "kernels", "launch"
TIMER_STEP_US = 0.032
"""Resolution of ``%globaltimer``, with which the gaps were measured."""


class WaveRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel of a grid sweep alone; times in us."""

    spec: SyntheticWork
    start_us: float
    end_us: Positive
    block_us: Positive
    block_us_p95: Positive

    def __post_init__(self) -> None:
        if self.end_us <= self.start_us:
            raise ValueError(f"end_us {self.end_us} must be after start_us {self.start_us}")


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

    @classmethod
    def of(cls, values_us: Sequence[float]) -> Gap:
        """The median of rows."""
        error = None
        if len(values_us) > 1:
            from scipy.stats import median_abs_deviation

            deviation = median_abs_deviation(values_us, scale="normal")
            error = max(np.sqrt(np.pi / 2 / len(values_us)) * deviation, TIMER_STEP_US / np.sqrt(12.0))
        return cls(float(np.median(values_us)), None if error is None else float(error), len(values_us))


@dataclass(frozen=True, slots=True)
class CalibrationSamples:
    """Everything that a calibration uses of a folder."""

    samples: tuple[Sample, ...]
    block_gap: Gap
    """Same stream, last block to first block."""
    event_latency: Gap


def read_recordings(folder: Path) -> CalibrationSamples:
    """The recordings in ``folder``.

    Raises:
        InputError: the folder or one of ``waves``, ``kernels`` and ``launch`` (``.jsonl`` or ``.jsonl.gz``)
            is missing, or a row lacks a field; names file, line and field.
    """
    waves, kernels, launch = find_all(folder, WAVES, KERNELS, LAUNCH)
    samples = [_of_sweep(number, row) for number, row in enumerate(read_rows(waves, WaveRow), start=1)]
    samples += [Sample(KERNELS, kernel.id, kernel) for kernel in read_rows(kernels, SyntheticKernel)]
    for sample in samples:
        if not sample.kernel.flop_per_block + sample.kernel.dram_bytes_per_block:
            path = waves if sample.source == WAVES else kernels
            raise InputError(
                f"{path}: kernel {sample.kernel.id}: flop_per_block and dram_bytes_per_block are both 0; "
                "one must be positive"
            )
    rows = read_rows(launch, LaunchRow)
    return CalibrationSamples(
        tuple(samples),
        block_gap=_gap(launch, rows, BACK_TO_BACK, "device_gap_ns"),
        event_latency=_gap(launch, rows, EVENT, "median"),
    )


def _of_sweep(number: int, row: WaveRow) -> Sample:
    spec = row.spec
    family = f"{WAVES} {spec.block}x{spec.smem} {spec.flop_per_block:g} {spec.dram_bytes_per_block:g}"
    solo = Solo(duration_us=row.end_us - row.start_us, block_us=row.block_us, block_us_p95=row.block_us_p95)
    return Sample(WAVES, family, SyntheticKernel(id=f"sweep row {number}", solo=solo, **msgspec.structs.asdict(spec)))


def _gap(path: Path, rows: Sequence[LaunchRow], what: str, field: str) -> Gap:
    values = [getattr(row, field) for row in rows if row.what == what]
    if not values:
        raise InputError(f'{path}: has no row with "what": "{what}"')
    if any(value is None or value <= 0 for value in values):
        raise InputError(f"{path}: a row of {what} has no positive {field}")
    return Gap.of([value / 1e3 for value in values])

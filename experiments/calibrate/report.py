"""What a calibration found: tables for the terminal and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpusched_env.experiments.calibrate.fit import EFFICIENCY, INSTRUCTIONS, UNITS, Fit, FloatArray, fit
from gpusched_env.experiments.calibrate.recordings import KERNELS, LAUNCH, WAVES, Recordings, Sample, read_recordings
from gpusched_env.experiments.validate.replay import BLOCK_GAP_US
from gpusched_env.hardware.specs import GpuSpec

TOLERANCE = 0.05
"""Largest median of the absolute logarithmic error after the fit, over all samples, that passes."""
ALONE = "alone"


@dataclass(frozen=True, slots=True)
class Constant:
    """One line of the result."""

    name: str
    unit: str
    source: str
    """:data:`ALONE` (``waves`` and ``kernels`` together) or ``launch``."""
    start: float
    value: float
    error: float | None
    """Standard error; ``None`` where it is not known."""

    @property
    def change(self) -> float:
        """Relative to the start."""
        return self.value / self.start - 1.0 if self.start > 0 else float("inf")


@dataclass(frozen=True, slots=True)
class Residual:
    """Absolute logarithmic errors of a group of samples."""

    kind: str
    block: int | None
    """Threads a block; ``None``: all sizes."""
    n: int
    before: tuple[float, float]
    """Median and 90th percentile."""
    after: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything about one calibration."""

    gpu: str
    folder: str
    """Name of the folder of recordings."""
    generic: bool
    bounded: tuple[str, ...]
    """Constants that the recordings do not determine: they ended at a bound."""
    constants: tuple[Constant, ...]
    load_wait_us: float
    """Kept from the start: kernels alone do not show it."""
    residuals: tuple[Residual, ...]
    """The first is over all samples."""
    rows: dict[str, int]

    @property
    def holds(self) -> bool:
        return self.residuals[0].after[0] <= TOLERANCE


def calibrate(folder: Path, gpu: GpuSpec) -> Calibration:
    """Fit the constants of ``gpu`` to the recordings in ``folder``.

    Raises:
        InputError: see :func:`~gpusched_env.experiments.calibrate.recordings.read_recordings` and
            :func:`~gpusched_env.experiments.calibrate.fit.fit`.
    """
    recordings = read_recordings(folder)
    return summarise(recordings, fit(recordings.samples, gpu), gpu, folder.resolve().name)


def summarise(recordings: Recordings, result: Fit, gpu: GpuSpec, folder: str) -> Calibration:
    """The tables of a fit."""
    lines = [
        Constant(name, UNITS[name], ALONE, result.start[name], result.value[name], result.error[name])
        for name in (*INSTRUCTIONS, EFFICIENCY)
    ]
    for name, start, gap in (
        ("event_latency_us", gpu.timing.event_latency_us, recordings.event_latency),
        ("block gap", BLOCK_GAP_US, recordings.block_gap),
    ):
        lines.append(Constant(name, "us", LAUNCH, start, gap.value_us, gap.error_us))
    assert result.gpu.instructions is not None
    sources = [sample.source for sample in recordings.samples]
    gaps = recordings.block_gap.rows + recordings.event_latency.rows
    return Calibration(
        gpu=gpu.name,
        folder=folder,
        generic=result.generic,
        bounded=result.bounded,
        constants=tuple(lines),
        load_wait_us=result.gpu.instructions.load_wait_us,
        residuals=tuple(residuals(recordings.samples, result.before, result.after)),
        rows={WAVES: sources.count(WAVES), KERNELS: sources.count(KERNELS), LAUNCH: gaps},
    )


def residuals(samples: Sequence[Sample], before: FloatArray, after: FloatArray) -> list[Residual]:
    """All samples, then each kind and its block sizes."""

    def group(kind: str, block: int | None, chosen: list[int]) -> Residual:
        spread = [np.quantile(np.abs(errors[chosen]), (0.5, 0.9)).tolist() for errors in (before, after)]
        return Residual(kind, block, len(chosen), tuple(spread[0]), tuple(spread[1]))

    groups = [group("all", None, list(range(len(samples))))]
    for kind in sorted({sample.kind for sample in samples}):
        members = [i for i, sample in enumerate(samples) if sample.kind == kind]
        groups.append(group(kind, None, members))
        groups.extend(
            group(kind, block, [i for i in members if samples[i].kernel.block == block])
            for block in sorted({samples[i].kernel.block for i in members})
        )
    return groups


def summary_line(result: Calibration) -> str:
    """One line that says whether the calibration is good enough."""
    median, p90 = result.residuals[0].after
    return (
        f"{'OK' if result.holds else 'FAILED'}: calibrate {result.gpu}: uncalibrated durations of "
        f"{result.residuals[0].n} kernels alone within {median:.1%} (median; tolerance {TOLERANCE:.0%}), "
        f"{p90:.1%} (p90); before {result.residuals[0].before[0]:.1%}"
    )


def constant_cells(line: Constant) -> list[str]:
    error = "not known" if line.error is None else f"{line.error:.2g}"
    change = f"{line.change:+.1%}"
    return [line.name, f"{line.start:.4g}", f"{line.value:.4g}", line.unit, error, change, line.source]


CONSTANT_HEADS = ("constant", "start", "fitted", "unit", "standard error", "change", "rows of")
RESIDUAL_HEADS = ("kernels", "threads a block", "n", "median before", "p90 before", "median after", "p90 after")


def residual_cells(line: Residual) -> list[str]:
    block = "all" if line.block is None else str(line.block)
    return [line.kind, block, str(line.n), *(f"{value:.1%}" for value in (*line.before, *line.after))]


def notes(result: Calibration) -> list[str]:
    """What the tables do not say."""
    start = "the specification's values"
    if result.generic:
        start = "generic, in terms of the clock, because the specification has no instruction costs"
    lines = [f"{name} ended at a bound: these recordings do not determine it." for name in result.bounded]
    return [
        *lines,
        f"Starts are {start}. Rows 'alone' are those of waves and kernels together.",
        f"load_wait_us keeps {result.load_wait_us:.4g} us: how long heavier co-residents can hold up a load does not "
        "show in kernels alone.",
        "The block gap is what block timers see between two kernels of a stream; the specification's stream_gap_us "
        "is what profilers see, and is not changed by it.",
    ]


def tables(result: Calibration) -> Any:
    """Constants and residuals for the terminal."""
    from rich.console import Group
    from rich.table import Table

    parts: list[Any] = []
    for title, heads, rows, words in (
        ("Constants", CONSTANT_HEADS, [constant_cells(line) for line in result.constants], (0, 3, 6)),
        (
            "|log(simulated / measured)| of kernels alone, not scaled to their profiles",
            RESIDUAL_HEADS,
            [residual_cells(line) for line in result.residuals],
            (0,),
        ),
    ):
        table = Table(box=None, header_style="dim", padding=(0, 1))
        for i, head in enumerate(heads):
            table.add_column(head, justify="left" if i in words else "right", no_wrap=i == 0)
        for cells in rows:
            table.add_row(*cells)
        parts += [f"[bold]{title}[/bold]", table, ""]
    return Group(*parts, *notes(result))


def markdown(result: Calibration) -> str:
    """The tables as a page."""
    from gpusched_env.experiments.calibrate.fit import __doc__ as method

    assert method is not None
    lines = [
        f"# Constants of {result.gpu}, fitted to kernels alone",
        "",
        f"Written by `gpusched calibrate DIR --gpu {result.gpu} --docs PATH`.",
        "",
        method.replace(":func:", "").replace("~gpusched_env.hardware.solo.", "").strip(),
        "",
        "Rows: " + ", ".join(f"{number} of {name}" for name, number in result.rows.items()) + ".",
        "",
        "## Constants",
        "",
        *_table(CONSTANT_HEADS, [constant_cells(line) for line in result.constants]),
        "",
        *[f"- {note}" for note in notes(result)],
        "",
        "## Errors",
        "",
        "Absolute logarithm of simulated over measured duration; nothing is scaled to a kernel's own profile.",
        "",
        *_table(RESIDUAL_HEADS, [residual_cells(line) for line in result.residuals]),
        "",
        f"**{summary_line(result)}.**",
    ]
    return "\n".join(lines) + "\n"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]

"""What a calibration found: as data, as a fragment of a GPU's YAML file, as tables and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml

from gpusched_env import __version__
from gpusched_env.display.table import Table
from gpusched_env.experiments.calibrate import fit as method
from gpusched_env.experiments.calibrate.fit import EFFICIENCY, FITTED, INSTRUCTIONS, Fit, FloatArray, fit
from gpusched_env.experiments.calibrate.samples import KERNELS, LAUNCH, WAVES, Recordings, Sample, read_recordings
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.validate.replay import BLOCK_GAP_US
from gpusched_env.hardware.specs import GpuSpec

TOLERANCE = 0.05
"""Largest median of the absolute logarithmic error after the fit, over all samples, that passes."""
BLOCK_GAP, EVENT_LATENCY = "block_gap", "event_latency_us"
"""Constants that are not fitted but read off ``launch``."""


class Constant(msgspec.Struct, frozen=True):
    """A constant before and after."""

    start: float
    value: float
    unit: str
    standard_error: float | None
    """``None`` where it is not known."""

    @property
    def change(self) -> float:
        """Relative to the start."""
        return self.value / self.start - 1.0 if self.start > 0 else float("inf")


class Spread(msgspec.Struct, frozen=True):
    """Of absolute logarithmic errors."""

    median: float
    p90: float


class Residual(msgspec.Struct, frozen=True):
    """Errors of a group of samples."""

    kind: str
    block: int | None
    """Threads a block; ``None``: all sizes."""
    n: int
    before: Spread
    after: Spread


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about one calibration, as its JSON file has it."""

    schema: int = 1
    name: str = "calibrate"
    version: str = __version__
    gpu: str
    folder: str
    """Name of the folder of recordings."""
    holds: bool
    tolerance: float = TOLERANCE
    rows: dict[str, int]
    generic_start: bool
    at_bound: tuple[str, ...]
    """Constants that the recordings do not determine."""
    constants: dict[str, Constant]
    load_wait_us: float
    """Kept from the start: kernels alone do not show it."""
    residuals: list[Residual]
    """The first is over all samples."""


def calibrate(folder: Path, gpu: GpuSpec) -> Calibration:
    """Fit the constants of ``gpu`` to the recordings in ``folder``.

    Raises:
        InputError: see :func:`~gpusched_env.experiments.calibrate.samples.read_recordings` and
            :func:`~gpusched_env.experiments.calibrate.fit.fit`.
    """
    recordings = read_recordings(folder)
    return summarise(recordings, fit(recordings.samples, gpu), gpu, folder.resolve().name)


def summarise(recordings: Recordings, result: Fit, gpu: GpuSpec, folder: str) -> Calibration:
    """The figures of a fit."""
    fitted = {
        name: Constant(result.start[name], result.value[name], "" if name == EFFICIENCY else "us", result.error[name])
        for name in FITTED
    }
    event, gap = recordings.event_latency, recordings.block_gap
    read = {
        EVENT_LATENCY: Constant(gpu.timing.event_latency_us, event.value_us, "us", event.error_us),
        BLOCK_GAP: Constant(BLOCK_GAP_US, gap.value_us, "us", gap.error_us),
    }
    assert result.gpu.instructions is not None
    sources = [sample.source for sample in recordings.samples]
    groups = residuals(recordings.samples, result.before, result.after)
    return Calibration(
        gpu=gpu.name,
        folder=folder,
        holds=groups[0].after.median <= TOLERANCE,
        rows={WAVES: sources.count(WAVES), KERNELS: sources.count(KERNELS), LAUNCH: gap.rows + event.rows},
        generic_start=result.generic,
        at_bound=result.bounded,
        constants=fitted | read,
        load_wait_us=result.gpu.instructions.load_wait_us,
        residuals=groups,
    )


def residuals(samples: Sequence[Sample], before: FloatArray, after: FloatArray) -> list[Residual]:
    """All samples, then each kind and its block sizes."""
    kinds = np.array([sample.kind for sample in samples])
    blocks = np.array([sample.kernel.block for sample in samples])

    def group(kind: str, block: int | None = None) -> Residual:
        chosen = ((kinds == kind) | (kind == "all")) & ((blocks == block) | (block is None))
        spreads = (Spread(*np.quantile(np.abs(errors[chosen]), (0.5, 0.9)).tolist()) for errors in (before, after))
        return Residual(kind, block, int(chosen.sum()), *spreads)

    groups = [group("all")]
    for kind in np.unique(kinds).tolist():
        groups += [group(kind), *(group(kind, block) for block in np.unique(blocks[kinds == kind]).tolist())]
    return groups


def summary_line(result: Calibration) -> str:
    """One line that says whether the calibration is good enough."""
    everything = result.residuals[0]
    return (
        f"{'OK' if result.holds else 'FAILED'}: calibrate {result.gpu}: uncalibrated durations of "
        f"{everything.n} kernels alone within {everything.after.median:.1%} (median; tolerance {TOLERANCE:.0%}), "
        f"{everything.after.p90:.1%} (p90); before {everything.before.median:.1%}"
    )


def tables(result: Calibration) -> list[Table]:
    """Constants and errors."""
    constants = [
        (
            *(name, f"{line.start:.4g}", f"{line.value:.4g}", line.unit.replace("us", "µs")),
            "not known" if line.standard_error is None else f"{line.standard_error:.2g}",
            *(f"{line.change:+.1%}", "alone" if name in FITTED else LAUNCH),
        )
        for name, line in result.constants.items()
    ]
    errors = [
        (
            *(line.kind, "all" if line.block is None else str(line.block), str(line.n)),
            *(f"{value:.1%}" for spread in (line.before, line.after) for value in (spread.median, spread.p90)),
        )
        for line in result.residuals
    ]
    heads = ("kernels", "threads a block", "n", "median before", "p90 before", "median after", "p90 after")
    note = "Absolute logarithm of simulated over measured duration; nothing is scaled to a kernel's own profile."
    return [
        Table("Constants", ("constant", "start", "fitted", "unit", "standard error", "change", "rows of"), constants),
        Table("Errors", heads, errors, note),
    ]


def notes(result: Calibration) -> list[str]:
    """What the tables do not say."""
    start = "the specification's values"
    if result.generic_start:
        start = "generic, in terms of the clock, because the specification has no instruction costs"
    return [
        *(f"{name} ended at a bound: these recordings do not determine it." for name in result.at_bound),
        f"Starts are {start}. Rows 'alone' are those of waves and kernels together.",
        f"load_wait_us keeps {result.load_wait_us:.4g} µs: how long heavier co-residents can hold up a load does not "
        "show in kernels alone.",
        "The block gap is what block timers see between two kernels of a stream; the specification's stream_gap_us "
        "is what profilers see, and is not changed by it.",
    ]


def markdown(result: Calibration) -> str:
    """The page."""
    return page(
        "calibration.md.j2",
        result=result,
        method=(method.__doc__ or "").replace(":func:", "").replace("~gpusched_env.hardware.solo.", ""),
        tables=tables(result),
        notes=notes(result),
        summary=summary_line(result),
    )


def as_yaml(result: Calibration, day: date) -> str:
    """The fragment of a GPU's YAML file that the fit decides, with a note of where it comes from.

    All keys but ``fitted`` are those of :class:`~gpusched_env.hardware.specs.GpuSpec`.
    """

    def rounded(name: str) -> float:
        return float(f"{result.constants[name].value:.4g}")

    errors = {name: line.standard_error for name, line in result.constants.items()}
    overall = result.residuals[0]
    fragment: dict[str, Any] = {
        "instructions": {**{name: rounded(name) for name in INSTRUCTIONS}, "load_wait_us": result.load_wait_us},
        "contention": {EFFICIENCY: rounded(EFFICIENCY)},
        "timing": {EVENT_LATENCY: rounded(EVENT_LATENCY)},
        "fitted": {
            "gpu": result.gpu,
            "date": day.isoformat(),
            "folder": result.folder,
            "rows": result.rows,
            "block_gap_us": rounded(BLOCK_GAP),
            "not_fitted": ["load_wait_us"],
            "standard_errors": {n: None if error is None else float(f"{error:.2g}") for n, error in errors.items()},
            "residuals": {
                when: {"median": round(spread.median, 4), "p90": round(spread.p90, 4)}
                for when, spread in (("before", overall.before), ("after", overall.after))
            },
        },
    }
    head = "# Written by `gpusched calibrate`: the first three keys go into hardware/gpus/ as they are.\n"
    return head + yaml.safe_dump(fragment, sort_keys=False)

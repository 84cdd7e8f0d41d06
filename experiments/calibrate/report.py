"""What a calibration found: as data, as a fragment of a GPU's YAML file, as tables and as a page."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gpusched_env import __version__
from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table
from gpusched_env.experiments.calibrate import fit as method
from gpusched_env.experiments.calibrate.fit import (
    EFFICIENCY,
    FITTED,
    INSTRUCTIONS,
    KERNELS,
    LAUNCH,
    WAVES,
    CalibrationSamples,
    FittedConstants,
    fit,
    read_recordings,
)
from gpusched_env.experiments.lib.pages import page
from gpusched_env.experiments.lib.verdicts import JudgedResult, Target, table_of
from gpusched_env.experiments.validate.replay import BLOCK_GAP_US
from gpusched_env.hardware.specs import GpuSpec

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame

TOLERANCE = 0.05
"""Largest median of the absolute logarithmic error after the fit, over all samples, that passes."""
BLOCK_GAP, EVENT_LATENCY = "block_gap", "event_latency_us"
"""Constants that are not fitted but read off ``launch``."""


def calibrate(folder: Path, gpu: GpuSpec) -> Calibration:
    """Fit the constants of ``gpu`` to the recordings in ``folder``.

    Raises:
        InputError: see :func:`~gpusched_env.experiments.calibrate.fit.read_recordings` and
            :func:`~gpusched_env.experiments.calibrate.fit.fit`.
    """
    recordings = read_recordings(folder)
    return Calibration(recordings, fit(recordings.samples, gpu), gpu, folder.resolve().name)


class Calibration(JudgedResult):
    """Constants before and after, and the errors of kernels alone with them."""

    def __init__(self, recordings: CalibrationSamples, result: FittedConstants, gpu: GpuSpec, folder: str) -> None:
        """The figures of a fit; ``folder``: name of that of the recordings."""
        self.name, self.gpu, self.folder, self.result = f"calibrate {gpu.name}", gpu.name, folder, result
        event, gap = recordings.event_latency, recordings.block_gap
        sources = [sample.source for sample in recordings.samples]
        self.rows = {WAVES: sources.count(WAVES), KERNELS: sources.count(KERNELS), LAUNCH: gap.rows + event.rows}
        starts = {**result.start, EVENT_LATENCY: gpu.timing.event_latency_us, BLOCK_GAP: BLOCK_GAP_US}
        values = {**result.value, EVENT_LATENCY: event.value_us, BLOCK_GAP: gap.value_us}
        errors = {**result.error, EVENT_LATENCY: event.error_us, BLOCK_GAP: gap.error_us}
        self.constants: dict[str, dict[str, Any]] = {
            name: {
                "start": starts[name],
                "value": values[name],
                "unit": "" if name == EFFICIENCY else "us",
                "standard_error": errors[name],
            }
            for name in (*FITTED, EVENT_LATENCY, BLOCK_GAP)
        }
        """The constants before and after, by name; a standard error is ``None`` where it is not known."""
        assert result.gpu.instructions is not None
        self.load_wait_us = result.gpu.instructions.load_wait_us
        """Kept from the start: kernels alone do not show it."""
        kinds, blocks = zip(*((sample.kind, sample.kernel.block) for sample in recordings.samples), strict=True)
        logs = {"before": abs(result.before), "after": abs(result.after)}
        self.residuals = residuals(frame({"kind": kinds, "block": blocks, **logs}))

    def checks(self) -> list[Target]:
        return [Target("median error of kernels alone", 0.0, TOLERANCE, self.residuals[0]["after"]["median"])]

    def summary(self) -> str:
        overall = self.residuals[0]
        return (
            f"uncalibrated durations of {overall['n']} kernels alone within {overall['after']['median']:.1%} (median; "
            f"tolerance {TOLERANCE:.0%}), {overall['after']['p90']:.1%} (p90); before {overall['before']['median']:.1%}"
        )

    def as_dict(self) -> dict[str, Any]:
        return {
            **{"schema": 1, "name": "calibrate", "version": __version__, "gpu": self.gpu, "folder": self.folder},
            **{"holds": self.holds, "tolerance": TOLERANCE, "rows": self.rows},
            **{"generic_start": self.result.generic, "at_bound": list(self.result.bounded)},
            **{"constants": self.constants, "load_wait_us": self.load_wait_us, "residuals": self.residuals},
        }

    def tables(self) -> list[Table]:
        constants = []
        for name, of in self.constants.items():
            change = of["value"] / of["start"] - 1.0 if of["start"] > 0 else float("inf")
            error = "not known" if of["standard_error"] is None else f"{of['standard_error']:.2g}"
            told = {"error": error, "change": change, "unit": of["unit"].replace("us", "µs")}
            constants.append({**of, **told, "name": name, "rows": "alone" if name in FITTED else LAUNCH})
        errors = [{**of, "threads": "all" if of["block"] is None else of["block"]} for of in self.residuals]
        return [
            table_of(
                "Constants",
                constants,
                "constant = {name} | start = {start:.4g} | fitted = {value:.4g} | unit = {unit} "
                "| standard error = {error} | change = {change:+z.1%} | rows of = {rows}",
            ),
            table_of(
                "Errors",
                errors,
                "kernels = {kind} | threads a block = {threads} | n = {n} | median before = {before[median]:.1%} "
                "| p90 before = {before[p90]:.1%} | median after = {after[median]:.1%} | p90 after = {after[p90]:.1%}",
                "Absolute logarithm of simulated over measured duration; nothing is scaled to a kernel's own profile.",
            ),
        ]

    def notes(self) -> list[str]:
        """What the tables do not say."""
        start = "the specification's values"
        if self.result.generic:
            start = "generic, in terms of the clock, because the specification has no instruction costs"
        return [
            *(f"{name} ended at a bound: these recordings do not determine it." for name in self.result.bounded),
            f"Starts are {start}. Rows 'alone' are those of waves and kernels together.",
            f"load_wait_us keeps {self.load_wait_us:.4g} µs: how long heavier co-residents can hold up a load does not "
            "show in kernels alone.",
            "The block gap is what block timers see between two kernels of a stream; the specification's stream_gap_us "
            "is what profilers see, and is not changed by it.",
        ]

    def markdown(self) -> str:
        explained = (method.__doc__ or "").replace(":func:", "").replace("~gpusched_env.hardware.solo.", "")
        return page("calibration.md.j2", result=self, method=explained)

    def as_yaml(self, day: date) -> str:
        """The fragment of a GPU's YAML file that the fit decides, with a note of where it comes from.

        All keys but ``fitted`` are those of :class:`~gpusched_env.hardware.specs.GpuSpec`.
        """
        rounded = {name: float(f"{of['value']:.4g}") for name, of in self.constants.items()}
        errors = {name: of["standard_error"] for name, of in self.constants.items()}
        overall = self.residuals[0]
        fragment: dict[str, Any] = {
            "instructions": {**{name: rounded[name] for name in INSTRUCTIONS}, "load_wait_us": self.load_wait_us},
            "contention": {EFFICIENCY: rounded[EFFICIENCY]},
            "timing": {EVENT_LATENCY: rounded[EVENT_LATENCY]},
            "fitted": {
                "gpu": self.gpu,
                "date": day.isoformat(),
                "folder": self.folder,
                "rows": self.rows,
                "block_gap_us": rounded[BLOCK_GAP],
                "not_fitted": ["load_wait_us"],
                "standard_errors": {n: None if error is None else float(f"{error:.2g}") for n, error in errors.items()},
                "residuals": {
                    when: {n: round(of, 4) for n, of in overall[when].items()} for when in ("before", "after")
                },
            },
        }
        head = "# Written by `gpusched lab calibrate`: the first three keys go into hardware/gpus/ as they are.\n"
        return head + yaml.safe_dump(fragment, sort_keys=False)


def residuals(errors: DataFrame) -> list[dict[str, Any]]:
    """Median and 90th percentile over all samples, then each kind and its block sizes.

    ``errors``: absolute logarithmic ones ``before`` and ``after``, a row a sample, with its ``kind`` and ``block``.
    """

    def group(kind: str, block: int | None, of: DataFrame) -> dict[str, Any]:
        spreads = of[["before", "after"]].quantile([0.5, 0.9]).set_axis(["median", "p90"]).to_dict()
        return {"kind": kind, "block": block, "n": len(of), **spreads}

    groups = [group("all", None, errors)]
    for kind, of in errors.groupby("kind"):
        groups += [group(kind, None, of), *(group(kind, int(block), own) for block, own in of.groupby("block"))]
    return groups

"""What counts as equal: tolerances, and the comparison of everything that a device shows.

Times are whole picoseconds on every device and must be the same ones; as floats of microseconds they may differ by
rounding. Integrals, shares and sums of times may differ by a relative 1e-9 (sums of the same terms in another order),
everything else not at all. ``expected`` is what the trusted device shows.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.fuzz.case import Difference
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.costs import Costs
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    View,
)

Floats = NDArray[np.float64]

TIME_US = 5e-7
"""Half a picosecond, for times in microseconds."""
RELATIVE = 1e-9
REWARD_RELATIVE = 1e-7
OBSERVATION = 1e-6
"""Absolute; observations are float32 numbers within -1 to 1."""

SHARES = frozenset({"PROFILED_ISSUE", "PROFILED_DRAM", "WEIGHT"})
"""Columns of a view that are neither times nor whole numbers."""
SUMS = frozenset({"JOB_LEFT_US", "LAUNCHED_LEFT_US", "RUNNING_LEFT_US"})
"""Those that are sums of times that are not whole."""
TABLES: dict[str, type[enum.IntEnum]] = {
    "pending": PendingColumn,
    "running": RunningColumn,
    "tenants": TenantColumn,
    "jobs": JobColumn,
    "dependencies": DependencyColumn,
}
"""Of a view."""


class Differs(Exception):
    """Two devices were seen to differ."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Comparison:
    """Compares, at one point of an episode after another."""

    def __init__(self) -> None:
        self.step = 0
        self.time_us = 0.0
        self.phase = ""
        """Set before what is named as different."""

    def differ(self, kind: str, where: str, expected: Any, found: Any) -> None:
        """Raises ``Differs``."""
        raise Differs(
            Difference(
                kind=kind, where=self.phase + where, step=self.step, time_us=self.time_us, expected=_text(expected),
                found=_text(found),
            )
        )  # fmt: skip

    def equal(self, kind: str, where: str, expected: Any, found: Any) -> None:
        if expected != found:
            self.differ(kind, where, expected, found)

    def time(self, kind: str, where: str, expected: float, found: float) -> None:
        if expected != found and not abs(expected - found) <= TIME_US:
            self.differ(kind, where, expected, found)

    def close(
        self, kind: str, where: str, expected: float, found: float, floor: float = 0.0, relative: float = RELATIVE
    ) -> None:
        """Equal within ``relative`` of the expected value, or of ``floor`` where that is larger."""
        if expected != found and not abs(expected - found) <= relative * max(abs(expected), floor):
            self.differ(kind, where, expected, found)

    def views(self, expected: View, found: View, where: str = "view") -> None:
        """Two views, with all their tables."""
        self.time_us = expected.time_us
        self.time("time", f"{where}.time_us", expected.time_us, found.time_us)
        for name, columns in TABLES.items():
            self.tables("view", f"{where}.{name}", getattr(expected, name).array, getattr(found, name).array, columns)
        for name in ("sms", "busy_sms", "horizon_us"):
            self.equal("view", f"{where}.{name}", getattr(expected, name), getattr(found, name))
        for name in ("occupancy", "dram"):
            # The last traffic of a GPU that has become idle may be a rounding error of the whole bandwidth.
            self.close("view", f"{where}.{name}", getattr(expected, name), getattr(found, name), floor=1e-3)

    def tables(self, kind: str, where: str, expected: Floats, found: Floats, columns: type[enum.IntEnum]) -> None:
        """Two tables of a view, column by column."""
        self.equal(kind, f"shape of {where}", expected.shape, found.shape)
        if not np.array_equal(expected, found, equal_nan=True):
            tolerance = [_tolerance(column.name) for column in columns]
            self.rows(kind, where, expected, found, [column.name.lower() for column in columns], tolerance)

    def rows(
        self,
        kind: str,
        where: str,
        expected: Floats,
        found: Floats,
        names: list[str],
        tolerance: list[tuple[float, float]],
    ) -> None:
        """Two arrays of equal shape ``(rows, columns)``; ``tolerance`` is absolute and relative, by column."""
        absolute, relative = np.array(tolerance).reshape(-1, 2).T
        with np.errstate(invalid="ignore"):
            # NaN: a kernel that was never measured.
            same = (expected == found) | (np.isnan(expected) & np.isnan(found))
            gap = np.where(same, 0.0, np.abs(expected - found))
            wrong = ~(gap <= absolute + relative * np.where(np.isfinite(expected), np.abs(expected), 0.0))
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            self.differ(kind, f"{where}.{names[column]}[{row}]", expected[row, column], found[row, column])

    def costs(self, expected: Costs, found: Costs, problem: Problem) -> None:
        """All integrals; relative to what accrues in a microsecond where that is more."""
        self.time("costs", "costs.time_us", expected.time_us, found.time_us)
        self.equal("costs", "costs.over", expected.over, found.over)
        for name in ("arrived", "completed", "rejected", "slo_misses"):
            given, other = getattr(expected, name), getattr(found, name)
            if not np.array_equal(given, other):
                self.differ("costs", f"costs.{name}", given.tolist(), other.tolist())
        for tenant, (given, other) in enumerate(zip(expected.jobs_us, found.jobs_us, strict=True)):
            self.close("costs", f"costs.jobs_us[{tenant}]", float(given), float(other), floor=1.0)
        gpu = problem.gpu
        watts = gpu.power.idle_w + gpu.sms * gpu.power.sm_w + gpu.power.dram_w
        floors = {
            "makespan_us": 1.0,
            "energy_j": watts * 1e-6,
            "busy_sm_us": float(gpu.sms),
            "dram_bytes": gpu.dram_bytes_per_us,
        }
        for name, floor in floors.items():
            self.close("costs", f"costs.{name}", float(getattr(expected, name)), float(getattr(found, name)), floor)

    def plain(self, kind: str, where: str, expected: Any, found: Any) -> None:
        """Nested dicts, sequences, arrays and numbers: floats within the tolerance, everything else exactly."""
        if isinstance(expected, np.ndarray):
            if not isinstance(found, np.ndarray) or expected.dtype != found.dtype:
                self.differ(kind, f"type of {where}", expected, found)
            if not np.array_equal(expected, found):
                self.differ(kind, where, expected.tolist(), found.tolist())
        elif isinstance(expected, Mapping):
            self.equal(kind, f"keys of {where}", sorted(expected), sorted(found))
            for key in expected:
                self.plain(kind, f"{where}.{key}", expected[key], found[key])
        elif isinstance(expected, list | tuple):
            self.equal(kind, f"length of {where}", len(expected), len(found))
            for i, (given, other) in enumerate(zip(expected, found, strict=True)):
                self.plain(kind, f"{where}[{i}]", given, other)
        elif isinstance(expected, float) and isinstance(found, float):
            if not (math.isnan(expected) and math.isnan(found)):
                self.close(kind, where, expected, found, floor=1e-3)
        else:
            self.equal(kind, where, expected, found)


def _tolerance(column: str) -> tuple[float, float]:
    is_time, is_rounded = column.endswith("_US"), column in SHARES or column in SUMS
    return (TIME_US if is_time else 0.0, RELATIVE if is_rounded else 0.0)


def _text(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)

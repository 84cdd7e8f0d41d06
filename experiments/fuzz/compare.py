"""What counts as equal: tolerances, and the comparison of everything that a device shows.

Times are whole picoseconds on every device and must be the same ones; as floats of microseconds they may differ by
rounding. Integrals, shares and sums of times may differ by a relative 1e-9 (sums of the same terms in another order),
everything else not at all. ``expected`` is what the trusted device shows.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpusched_env.errors import GpuschedError
from gpusched_env.experiments.fuzz.outcome import Outcome
from gpusched_env.experiments.fuzz.stored import Difference
from gpusched_env.hardware.clock import PS_PER_US
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.cores import CoreColumn
from gpusched_env.scheduling.reward import Costs
from gpusched_env.scheduling.timeline import Columns, Timeline
from gpusched_env.scheduling.view import (
    DependencyColumn,
    JobColumn,
    PendingColumn,
    RunningColumn,
    TenantColumn,
    View,
)

TIME_US = 5e-7
"""Half a picosecond, for times in microseconds."""
RELATIVE = 1e-9
REWARD_RELATIVE = 1e-7
REWARD_FLOOR = 1e-2
"""Rewards below this may differ by an absolute 1e-9."""
OBSERVATION = 1e-6
"""Absolute; observations are float32 numbers within -1 to 1."""

ROUNDED = (
    "PROFILED_ISSUE", "PROFILED_DRAM", "WEIGHT", "JOB_LEFT_US", "LAUNCHED_LEFT_US", "RUNNING_LEFT_US",
    "MISSES", "LAST_MISSES",
)  # fmt: skip
"""Columns of a view that are neither whole numbers nor times that are whole, but shares and sums."""
TABLES: dict[str, type[enum.IntEnum]] = {
    "pending": PendingColumn,
    "running": RunningColumn,
    "tenants": TenantColumn,
    "jobs": JobColumn,
    "cores": CoreColumn,
    "dependencies": DependencyColumn,
}
"""The tables of a view, and their columns."""
TIMELINES = ("jobs", "rejections", "requests", "kernels", "decisions", "copies", "turns", "blocks")
"""The tables of a timeline whose rows must be the same."""


class Differs(Exception):
    """Two devices were seen to differ."""

    def __init__(self, difference: Difference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Duel(Protocol):
    """A case on two devices."""

    @property
    def outcome(self) -> Outcome:
        """What is known so far of the case."""
        ...

    def run(self) -> None:
        """Play the case; raises ``Differs`` where the devices do."""
        ...


def outcome_of(duel: Duel) -> Outcome:
    """Run a duel to its end, or to where the devices differ."""
    try:
        duel.run()
    except Differs as differs:
        duel.outcome.difference = differs.difference
    return duel.outcome


class DuelComparison:
    """Compares, at one point of an episode after another; every method raises ``Differs`` at the first difference."""

    def __init__(self) -> None:
        self.step = 0
        self.time_us = 0.0
        self.phase = ""
        """Set before what is named as different."""

    def differ(self, kind: str, where: str, expected: Any, found: Any) -> None:
        """Raises ``Differs``."""
        given, other = (repr(value.item() if isinstance(value, np.generic) else value) for value in (expected, found))
        where = self.phase + where
        raise Differs(
            Difference(kind=kind, where=where, step=self.step, time_us=self.time_us, expected=given, found=other)
        )

    def repeats(self, kind: str, when: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        """One device at two times: equal to the last bit."""
        for name, value in before.items():
            if not np.array_equal(value, after[name], equal_nan=True):
                self.differ(kind, f"{name} {when}", value, after[name])

    def both(self, devices: tuple[Any, Any], what: str, call: Callable[[Any], Any]) -> tuple[Any, Any] | GpuschedError:
        """What a call gives on each device, or the error of the trusted one, if the other raises an equal one."""
        results = [_result(call, device) for device in devices]
        error = next((result for result in results if isinstance(result, Exception)), None)
        if error is None:
            return results[0], results[1]
        kind = f"error {type(error).__name__}"
        told = [f"{type(r).__name__}: {r}" if isinstance(r, Exception) else "no error" for r in results]
        self.equal(kind, what, *told)
        if not isinstance(error, GpuschedError):
            # Both fail alike, but no device should.
            self.differ(kind, what, "no error", told[1])
        assert isinstance(error, GpuschedError)
        return error

    def equal(self, kind: str, where: str, expected: Any, found: Any) -> None:
        if expected != found:
            self.differ(kind, where, expected, found)

    def close(
        self,
        kind: str,
        where: str,
        expected: ArrayLike,
        found: ArrayLike,
        *,
        absolute: ArrayLike = 0.0,
        relative: ArrayLike = 0.0,
        floor: ArrayLike = 0.0,
        place: Callable[..., str] = lambda *place: str(list(place)) if place else "",
    ) -> None:
        """Numbers or arrays of them; NaN (never measured) is equal to NaN.

        Args:
            absolute, relative, floor: they may be apart by ``absolute`` and by ``relative`` of the expected value, or
                of ``floor`` where that is larger. Each is for all, or an array for all rows.
            place: what names an element, given its indices.
        """
        given, other = np.asarray(expected), np.asarray(found)
        self.equal(kind, f"shape of {where}", given.shape, other.shape)
        if np.array_equal(given, other):
            return
        with np.errstate(invalid="ignore"):
            same = (given == other) | (np.isnan(given) & np.isnan(other))
            size = np.maximum(np.where(np.isfinite(given), np.abs(given), 0.0), floor)
            near = np.abs(given - other) <= np.asarray(absolute) + np.asarray(relative) * size
        wrong = np.argwhere(~(same | near))
        if len(wrong):
            at = tuple(wrong[0].tolist())
            self.differ(kind, where + place(*at), given[at], other[at])

    def rows(self, kind: str, expected: Any, found: Any) -> None:
        """Arrays of records, or single ones."""
        given, other = np.atleast_1d(expected), np.atleast_1d(found)
        self.equal(kind, f"rows of {kind}", len(given), len(other))
        for name in given.dtype.names or ():
            self.close(kind, f"{kind}.{name}", given[name], other[name])

    def views(self, expected: View, found: View) -> None:
        """Two views, with all their tables."""
        self.time_us = expected.time_us
        self.close("time", "view.time_us", expected.time_us, found.time_us, absolute=TIME_US)
        for name, columns in TABLES.items():
            self.close(
                "view", f"view.{name}", getattr(expected, name).array, getattr(found, name).array,
                absolute=[TIME_US * column.name.endswith("_US") for column in columns],
                relative=[RELATIVE * (column.name in ROUNDED) for column in columns],
                place=_cell([column.name.lower() for column in columns]),
            )  # fmt: skip
        for name in ("sms", "busy_sms", "horizon_us"):
            self.equal("view", f"view.{name}", getattr(expected, name), getattr(found, name))
        for name in ("occupancy", "dram"):
            # The last traffic of a GPU that has become idle may be a rounding error of the whole bandwidth.
            given, other = getattr(expected, name), getattr(found, name)
            self.close("view", f"view.{name}", given, other, relative=RELATIVE, floor=1e-3)

    def costs(self, expected: Costs, found: Costs, problem: Problem) -> None:
        """All integrals; relative to what accrues in a microsecond where that is more."""
        gpu = problem.gpu
        watts = gpu.power.idle_w + gpu.sms * gpu.power.sm_w + gpu.power.dram_w
        in_a_us = {
            "jobs_us": 1.0,
            "makespan_us": 1.0,
            "energy_j": watts * 1e-6,
            "busy_sm_us": gpu.sms,
            "dram_bytes": gpu.dram_bytes_per_us,
        }
        self.close("costs", "costs.time_us", expected.time_us, found.time_us, absolute=TIME_US)
        self.equal("costs", "costs.over", expected.over, found.over)
        for name in ("arrived", "completed", "rejected", "slo_misses", *in_a_us):
            relative, floor = (RELATIVE, in_a_us[name]) if name in in_a_us else (0.0, 0.0)
            given, other = getattr(expected, name), getattr(found, name)
            self.close("costs", f"costs.{name}", given, other, relative=relative, floor=floor)

    def told(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """What an environment gives beside its view, as far as it is there: observation, reward, end and info."""
        self.equal("observation", "names of observations", sorted(expected), sorted(found))
        for name, given in expected.items():
            if name == "reward":
                self.close(name, name, given, found[name], relative=REWARD_RELATIVE, floor=REWARD_FLOOR)
            elif name.startswith("observation."):
                self.close("observation", name, given, found[name], absolute=OBSERVATION)
            else:
                self.plain(name, name, given, found[name])

    def plain(self, kind: str, where: str, expected: Any, found: Any) -> None:
        """Nested dicts, sequences, arrays and numbers: floats within the tolerance, everything else exactly."""
        if isinstance(expected, np.ndarray):
            self.equal(kind, f"type of {where}", expected.dtype, getattr(found, "dtype", type(found)))
            self.close(kind, where, expected, found)
        elif isinstance(expected, Mapping):
            self.equal(kind, f"keys of {where}", sorted(expected), sorted(found))
            for key in expected:
                self.plain(kind, f"{where}.{key}", expected[key], found[key])
        elif isinstance(expected, list | tuple):
            self.equal(kind, f"length of {where}", len(expected), len(found))
            for i, (given, other) in enumerate(zip(expected, found, strict=True)):
                self.plain(kind, f"{where}[{i}]", given, other)
        elif isinstance(expected, float) and isinstance(found, float):
            absolute = TIME_US if where in ("info.time_us", "info.elapsed_us") else 0.0
            self.close(kind, where, expected, found, absolute=absolute, relative=RELATIVE, floor=1e-3)
        else:
            self.equal(kind, where, expected, found)

    def timelines(self, expected: Timeline, found: Timeline) -> None:
        """Everything that two devices recorded, times in whole picoseconds.

        Rows come in the same order, except that ``blocks`` that end together may change places. The steps of the
        device's state are compared as functions of time: rows that change nothing do not matter.
        """
        kind = "timeline"
        self.equal(kind, "timeline.detail", expected.detail, found.detail)
        for name in TIMELINES:
            columns: Columns = getattr(expected, name)
            given, other = columns.exact, getattr(found, name).exact
            if name == "blocks":
                given, other = _in_order(given), _in_order(other)
            self.close(kind, f"timeline.{name}", given, other, place=_cell(columns.names))
        steps = expected.sms
        edges = np.unique(np.concatenate([steps.exact[:, 0], found.sms.exact[:, 0]]))
        values = _value_at(steps, edges)
        self.close(
            kind, "timeline.sms", values, _value_at(found.sms, edges), relative=RELATIVE,
            # What an idle GPU is left with may be a rounding error of the full traffic.
            floor=1e-3 * np.abs(values).max(axis=0, initial=0.0),
            place=lambda row, column: f".{steps.names[1 + column]} at {edges[row] / PS_PER_US:.6f} us",
        )  # fmt: skip


def _result(call: Callable[[Any], Any], device: Any) -> Any:
    """What a call gives or raises."""
    try:
        return call(device)
    except Exception as error:  # Whatever a device raises is a finding.
        return error


def _cell(columns: Sequence[str]) -> Callable[[int, int], str]:
    return lambda row, column: f".{columns[column]}[{row}]"


def _in_order(blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows that end together in order of SM, kernel, start and number of blocks."""
    sm, kernel, count, start, end = blocks.T
    return blocks[np.lexsort((count, start, kernel, sm, end))]


def _value_at(steps: Columns, times_ps: NDArray[np.int64]) -> NDArray[np.float64]:
    """The values of steps (time, values...) from some times on; of rows at one time the last counts, -1 before all."""
    row = np.searchsorted(steps.exact[:, 0], times_ps, side="right") - 1
    values = steps.array[:, 1:]
    return np.asarray(np.vstack([np.full((1, values.shape[1]), -1.0), values])[row + 1])

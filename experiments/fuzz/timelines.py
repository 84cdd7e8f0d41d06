"""Comparison of what two devices recorded."""

from __future__ import annotations

import numpy as np

from gpusched_env.experiments.fuzz.compare import RELATIVE, TIME_US, Comparison, Floats
from gpusched_env.scheduling.timeline import Columns, Timeline

IN_ORDER = ("jobs", "kernels", "decisions", "copies")
KIND = "timeline"


def compare_timelines(comparison: Comparison, expected: Timeline, found: Timeline) -> None:
    """Everything in two timelines; raises ``Differs`` at the first difference.

    Rows come in the same order, except that ``blocks`` that end together may change places. The steps of
    the device's state are compared as functions of time: rows that change nothing do not matter.
    """
    comparison.equal(KIND, "timeline.detail", expected.detail, found.detail)
    for name in IN_ORDER:
        given: Columns = getattr(expected, name)
        _compare_columns(comparison, name, given, given.array, getattr(found, name).array)
    blocks = expected.blocks
    by_end = blocks.names.index("ended_us")
    ours, theirs = blocks.array, found.blocks.array
    comparison.equal(KIND, "rows of timeline.blocks", len(ours), len(theirs))
    together = same_time(ours[:, by_end])
    _compare_columns(comparison, "blocks", blocks, _sorted(ours, together), _sorted(theirs, together))
    _compare_steps(comparison, expected.sms.array, found.sms.array)


def same_time(times_us: Floats) -> Floats:
    """For ascending times, a number for each that is equal for those that follow within a nanosecond."""
    if not len(times_us):
        return np.zeros(0)
    return np.concatenate([[0.0], np.cumsum(np.diff(times_us) > TIME_US)])


def _sorted(blocks: Floats, together: Floats) -> Floats:
    """Rows that end together in order of SM, kernel, start and number of blocks."""
    sm, kernel, count, start = blocks[:, 0], blocks[:, 1], blocks[:, 2], blocks[:, 3]
    return blocks[np.lexsort((count, start, kernel, sm, together))]


def _compare_columns(comparison: Comparison, name: str, columns: Columns, expected: Floats, found: Floats) -> None:
    comparison.equal(KIND, f"shape of timeline.{name}", expected.shape, found.shape)
    if not np.array_equal(expected, found):
        tolerance = [(TIME_US, 0.0) if column.endswith("_us") else (0.0, 0.0) for column in columns.names]
        comparison.rows(KIND, f"timeline.{name}", expected, found, list(columns.names), tolerance)


def _compare_steps(comparison: Comparison, expected: Floats, found: Floats) -> None:
    """Steps (time, values...) as functions of time, where they last longer than a nanosecond."""
    if np.array_equal(expected, found):
        return
    edges = np.unique(np.concatenate([expected[:, 0], found[:, 0]]))
    # Up to 1 us after the last step of either.
    ends = np.append(edges[1:], edges[-1] + 1.0)
    lasting = ends - edges > TIME_US
    middle = 0.5 * (edges + ends)[lasting]
    ours, theirs = _value_at(expected, middle), _value_at(found, middle)
    # What an idle GPU is left with may be a rounding error of the full traffic.
    floor = 1e-3 * np.abs(ours).max(axis=0, initial=0.0)
    wrong = ~(np.abs(ours - theirs) <= RELATIVE * np.maximum(np.abs(ours), floor))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        name = ("busy_sms", "dram_bytes_per_us", "power_w")[column]
        where = f"timeline.sms.{name} at {middle[row]:.6f} us"
        comparison.differ(KIND, where, ours[row, column], theirs[row, column])


def _value_at(steps: Floats, times_us: Floats) -> Floats:
    """The values at some times; -1 before the first step."""
    row = np.searchsorted(steps[:, 0], times_us, side="right") - 1
    values = np.vstack([np.full((1, steps.shape[1] - 1), -1.0), steps[:, 1:]])
    return np.asarray(values[row + 1])

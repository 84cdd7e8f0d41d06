"""Comparison of what two devices recorded."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.fuzz.compare import RELATIVE, Comparison, Floats
from gpusched_env.hardware.clock import PS_PER_US
from gpusched_env.scheduling.timeline import Columns, Timeline

IN_ORDER = ("jobs", "rejections", "kernels", "decisions", "copies", "turns")
KIND = "timeline"

Whole = NDArray[np.int64]


def compare_timelines(comparison: Comparison, expected: Timeline, found: Timeline) -> None:
    """Everything in two timelines; raises ``Differs`` at the first difference.

    Times must be equal in picoseconds. Rows come in the same order, except that ``blocks`` that end together may change
    places. The steps of the device's state are compared as functions of time: rows that change nothing do not matter.
    """
    comparison.equal(KIND, "timeline.detail", expected.detail, found.detail)
    for name in IN_ORDER:
        given: Columns = getattr(expected, name)
        _compare_columns(comparison, name, given, given.exact, getattr(found, name).exact)
    blocks = expected.blocks
    _compare_columns(comparison, "blocks", blocks, _sorted(blocks), _sorted(found.blocks))
    _compare_steps(comparison, expected.sms, found.sms)


def _sorted(blocks: Columns) -> Whole:
    """Rows that end together in order of SM, kernel, start and number of blocks."""
    rows = blocks.exact
    sm, kernel, count, start, end = rows.T
    return rows[np.lexsort((count, start, kernel, sm, end))]


def _compare_columns(comparison: Comparison, name: str, columns: Columns, expected: Whole, found: Whole) -> None:
    comparison.equal(KIND, f"shape of timeline.{name}", expected.shape, found.shape)
    different = np.argwhere(expected != found)
    if len(different):
        row, column = (int(i) for i in different[0])
        where = f"timeline.{name}.{columns.names[column]}[{row}]"
        comparison.differ(KIND, where, expected[row, column], found[row, column])


def _compare_steps(comparison: Comparison, expected: Columns, found: Columns) -> None:
    """Steps (time, values...) as functions of time: of rows at one time the last counts."""
    edges = np.unique(np.concatenate([expected.exact[:, 0], found.exact[:, 0]]))
    ours, theirs = _value_at(expected, edges), _value_at(found, edges)
    # What an idle GPU is left with may be a rounding error of the full traffic.
    floor = 1e-3 * np.abs(ours).max(axis=0, initial=0.0)
    wrong = ~(np.abs(ours - theirs) <= RELATIVE * np.maximum(np.abs(ours), floor))
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        where = f"timeline.sms.{expected.names[1 + column]} at {edges[row] / PS_PER_US:.6f} us"
        comparison.differ(KIND, where, ours[row, column], theirs[row, column])


def _value_at(steps: Columns, times_ps: Whole) -> Floats:
    """The values from some times on; -1 before the first step."""
    row = np.searchsorted(steps.exact[:, 0], times_ps, side="right") - 1
    values = steps.array[:, 1:]
    return np.asarray(np.vstack([np.full((1, values.shape[1]), -1.0), values])[row + 1])

"""A load curve as short tables: a row a scheduler, a column a load."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpusched_env.display.palette import BASELINE, Look, look
from gpusched_env.display.table import NONE, Cell, Row, Table
from gpusched_env.experiments.load_curve.figures import CurveFigures

MOST_COLUMNS = 8
"""Of values: more do not fit a terminal, and the files have them all."""


def tables(curve: CurveFigures) -> list[Table]:
    """What leads (goodput, or cost where no tenant has an objective) with the capacity, and the tail."""
    key, _, title, scale = leading(curve)
    shown = _shown(curve.values)
    order = ordered(curve)
    field = curve.axis.field.rpartition(".")[2]
    heads = [f"{field} {value:g}" for value in shown]
    with_capacity = curve.has_capacity
    note = (
        f"Capacity: the highest {field} at which every tenant with an objective has {100 * curve.share:g} % of its "
        "jobs within it. "
        if with_capacity
        else ""
    )
    rows: list[Row] = []
    for name in order:
        means = [curve.interval(name, value, key).mean * scale for value in shown]
        own = [str(curve.capacity(name))] if with_capacity else []
        rows.append([curve.label(name), *own, *(_number(mean) for mean in means)])
    first = Table(
        f"{curve.scenario.name}: {title}",
        ["scheduler", *(["capacity"] if with_capacity else []), *heads],
        rows,
        note=f"{note}Means over seeds. {curve.legend}".strip(),
    )
    tail: list[Row] = [
        [curve.label(name), *(_number(curve.interval(name, v, "turnaround_p99_us").mean / 1e3) for v in shown)]
        for name in order
    ]
    why = "All tenants and seeds together; rejected and unfinished jobs have no turnaround and are not in it."
    return [first, Table(f"{curve.scenario.name}: p99 of turnaround, ms", ["scheduler", *heads], tail, note=why)]


def leading(curve: CurveFigures) -> tuple[str, str, str, float]:
    """The figure that leads: its key, the axis of its chart, its title, and the factor to the shown unit."""
    if curve.objectives:
        return "goodput_per_s", "jobs within their objective a second", "jobs within their objective a second", 1.0
    return "cost", "cost", "cost", 1.0


def ordered(curve: CurveFigures) -> list[str]:
    """Schedulers, the highest capacity first; equal ones, and those without, by mean cost."""

    def place(name: str) -> tuple[float, float]:
        costs = [interval.mean for interval in curve.line(name, "cost") if math.isfinite(interval.mean)]
        if not curve.has_capacity:
            return 0.0, float(np.mean(costs))
        found = curve.capacity(name)
        kept = {"below": -math.inf, "unknown": -math.inf, "above": math.inf}.get(found.where, found.value)
        return -kept, float(np.mean(costs))

    return sorted(curve.schedulers, key=place)


def looks(curve: CurveFigures) -> dict[str, Look]:
    """How lines look, by scheduler in the order of :func:`ordered`; the first one asked for is black, as in reports."""
    first = curve.schedulers[0]
    others = (name for name in ordered(curve) if name != first)
    found = {name: look(number) for number, name in enumerate(others)} | {first: BASELINE}
    return {name: found[name] for name in ordered(curve)}


def _shown(values: Sequence[float]) -> list[float]:
    """Some, evenly, with both ends."""
    rows = np.unique(np.linspace(0, len(values) - 1, min(len(values), MOST_COLUMNS)).round().astype(int))
    return [values[row] for row in rows]


def _number(value: float) -> str | Cell:
    if not math.isfinite(value):
        return NONE
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"

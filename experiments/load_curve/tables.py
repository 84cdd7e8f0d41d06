"""A load curve as short tables, as Plotly figures and as a picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.palette import BASELINE, LINES, MARKERS, Look, look
from gpusched_env.display.table import NONE, Cell, Row, Table
from gpusched_env.errors import InputError, needs
from gpusched_env.experiments.lib.pages import drawing
from gpusched_env.experiments.load_curve.figures import LoadCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure


MOST_COLUMNS = 8
"""Columns of values, at most: more do not fit a terminal, and the files have them all."""


def tables(curve: LoadCurve) -> list[Table]:
    """What leads (goodput, or cost where no tenant has an objective) with the capacity, the cost, and the tail."""
    key, title = leading(curve)
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
        means = [curve.interval(name, value, key).mean for value in shown]
        own = [str(curve.capacity(name))] if with_capacity else []
        rows.append([curve.label(name), *own, *(_number(mean) for mean in means)])
    first = Table(
        f"{curve.scenario.name}: {title}",
        ["scheduler", *(["capacity"] if with_capacity else []), *heads],
        rows,
        note=f"{note}Means over seeds. {curve.legend}".strip(),
    )
    others = [("cost", "cost", 1.0, "The scenario's weighted cost.")] if key != "cost" else []
    why = "All tenants and seeds together; rejected and unfinished jobs have no turnaround and are not in it."
    others.append(("turnaround_p99_us", "p99 of turnaround (99 % are shorter), ms", 1e-3, why))
    return [
        first,
        *(
            Table(
                f"{curve.scenario.name}: {called}",
                ["scheduler", *heads],
                [
                    [curve.label(name), *(_number(curve.interval(name, v, of).mean * scale) for v in shown)]
                    for name in order
                ],
                note=note,
            )
            for of, called, scale, note in others
        ),
    ]


def leading(curve: LoadCurve) -> tuple[str, str]:
    """The figure that leads: its key, and what it is called."""
    return ("goodput_per_s", "jobs within their objective a second") if curve.objectives else ("cost", "cost")


def ordered(curve: LoadCurve) -> list[str]:
    """Schedulers, the highest capacity first; equal ones, and those without, by mean cost."""

    def place(name: str) -> tuple[float, float]:
        costs = [interval.mean for interval in curve.line(name, "cost") if math.isfinite(interval.mean)]
        if not curve.has_capacity:
            return 0.0, float(np.mean(costs))
        found = curve.capacity(name)
        kept = {"below": -math.inf, "unknown": -math.inf, "above": math.inf}.get(found.where, found.value)
        return -kept, float(np.mean(costs))

    return sorted(curve.schedulers, key=place)


def looks(curve: LoadCurve) -> dict[str, Look]:
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


class LoadPlots:
    """Charts of one load curve: a line a scheduler, a band for its 95 % interval over seeds."""

    def __init__(self, curve: LoadCurve) -> None:
        self._curve = curve

    def goodput(self) -> Figure:
        """Jobs within their objective a second."""
        return self._lines("goodput_per_s", None, "jobs within their objective a second")

    def p99(self, tenant: str | None = None) -> Figure:
        """99th percentile of the turnaround of completed jobs, of one tenant or of all together."""
        who = f" of {tenant}" if tenant else ""
        return self._lines("turnaround_p99_us", tenant, f"p99 of turnaround{who}, ms", 1e-3)

    def attainment(self, tenant: str | None = None) -> Figure:
        """Share of jobs within the objective, of one tenant or of the lowest; dotted: what is asked."""
        chart = self._lines("slo_attainment", tenant, f"within the objective, {tenant or 'lowest tenant'}")
        chart.add_hline(self._curve.share, line={"dash": "dot", "color": "#888"})
        return chart.update_yaxes(tickformat=".0%")

    def cost(self) -> Figure:
        """The scenario's weighted cost."""
        return self._lines("cost", None, "cost")

    def _lines(self, figure: str, tenant: str | None, axis: str, scale: float = 1.0) -> Figure:

        try:
            from gpusched_env.display.still import Chart
        except ImportError as error:
            raise InputError(needs("a chart", "plotly")) from error
        chart, values = Chart(), self._curve.values
        for name, its_look in looks(self._curve).items():
            line = self._curve.line(name, figure, tenant)
            group: dict[str, Any] = {"legendgroup": name, "name": self._curve.label(name)}
            band = [
                (value, own.low * scale, own.high * scale)
                for value, own in zip(values, line, strict=True)
                if own.low is not None and own.high is not None
            ]
            x = [v for v, _, _ in band] + [v for v, _, _ in reversed(band)]
            y = [high for _, _, high in band] + [low for _, low, _ in reversed(band)]
            area = {"fill": "toself", "fillcolor": its_look.colour, "opacity": 0.15, "mode": "none"}
            chart.add_scatter(x=x, y=y, hoverinfo="skip", showlegend=False, **area, **group)
            means = [i.mean * scale for i in line]
            line_look = {"color": its_look.colour, "dash": its_look.dash}
            marked = {"line": line_look, "marker": {"symbol": its_look.symbol, "size": 7}}
            chart.add_scatter(x=values, y=means, mode="lines+markers", **marked, **group)
        chart.update_xaxes(title=self._curve.axis.field)
        chart.update_yaxes(title=axis, rangemode="tozero")
        return chart.update_layout(
            title=self._curve.scenario.name,
            template="plotly_white",
            height=460,
            legend={"orientation": "h", "y": -0.2, "yanchor": "top"},
            # As in other charts: in the right margin it covers nothing.
            modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)"},
            margin_r=40,
        )


PANEL_IN = (4.6, 3.4)
LEGEND_IN = 1.7


def panels(curve: LoadCurve) -> list[tuple[str, str, float]]:
    """Figures that are drawn: key, words of the axis, factor to the shown unit."""
    attained = [("slo_attainment", "within the objective, lowest tenant, %", 100.0)] if curve.objectives else []
    cost = [] if leading(curve)[0] == "cost" else [("cost", "cost", 1.0)]
    return [(*leading(curve), 1.0), *cost, ("turnaround_p99_us", "p99 of turnaround, ms", 1e-3), *attained]


def picture_svg(curve: LoadCurve) -> bytes:
    """The panels, two beside each other, with one legend.

    Raises:
        InputError: matplotlib is not installed.
    """
    found = panels(curve)
    beside, above = 2, -(-len(found) // 2)
    with drawing((PANEL_IN[0] * beside + LEGEND_IN, PANEL_IN[1] * above)) as (figure, finished):
        axes = figure.subplots(above, beside, squeeze=False).ravel()
        for empty in axes[len(found) :]:
            empty.set_axis_off()
        axes = axes[: len(found)]
        for place, (key, axis, scale) in zip(axes, found, strict=True):
            for name, own in looks(curve).items():
                _line(place, curve, name, own, key, scale)
            if key == "slo_attainment":
                place.axhline(100.0 * curve.share, color="#888", linewidth=0.8, linestyle=":")
            place.set_xlabel(curve.axis.field)
            place.set_ylabel(axis)
            place.set_ylim(bottom=0.0)
            place.grid(color="#ececec", linewidth=0.6)
            place.set_axisbelow(True)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper", frameon=False)
        return finished()


def _line(place: Axes, curve: LoadCurve, name: str, look: Look, key: str, scale: float) -> None:
    line = curve.line(name, key)
    means = [interval.mean * scale for interval in line]
    place.plot(
        curve.values,
        means,
        color=look.colour,
        linestyle=LINES[look.dash],
        marker=MARKERS[look.symbol],
        markersize=3.5,
        label=curve.label(name),
    )
    low, high = (
        [math.nan if bound is None else bound * scale for bound in bounds]
        for bounds in zip(*((interval.low, interval.high) for interval in line), strict=True)
    )
    place.fill_between(curve.values, low, high, color=look.colour, alpha=0.15, linewidth=0.0)

"""Charts, as Plotly figures: the one place that knows how lines, dots and bars look.

Series have a number each, which gives them the same colour, dash and symbol in every chart; the first sixty all differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Figure

Floats = NDArray[np.float64]
COLOURS = ("#4269d0", "#e8710a", "#2a9d6f", "#d6336c", "#8a63d2", "#0b8fa8", "#a0522d", "#7a7a7a", "#b8a200", "#111111")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
TENANTS = ("#d6336c", "#4269d0", "#2a9d6f", "#e8710a", "#8a63d2", "#0b8fa8")
"""Of tenants, in timelines."""
MAX_BARS = 5_000
"""Bars of a timeline; what starts later is left out."""
_TITLE_PX = 28
"""Room for a chart's title."""
_HEADING: dict[str, Any] = {
    "showarrow": False, "xanchor": "left", "yanchor": "bottom", "font": {"size": 13, "color": "#222"},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with the bounds of its interval (``None`` without one) and the values that it is the mean of."""

    value: float
    low: float | None = None
    high: float | None = None
    values: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart: ``x`` and ``y`` of shape ``(points,)``; ``number`` says how it looks."""

    label: str
    number: int
    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class Panel:
    """One of the charts beside each other; ``limit``: a vertical line at this x."""

    title: str
    series: Sequence[Series]
    limit: float | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars in one row of a timeline: starts and lengths of shape ``(bars,)``, a text for each."""

    row: str
    start_ms: Floats
    length_ms: Floats
    texts: Sequence[str]
    number: int
    opacity: float = 1.0
    legend: str = ""
    panel: str = field(default="")


def line(number: int) -> dict[str, str]:
    """How a series' line is drawn."""
    return {"color": COLOURS[number % len(COLOURS)], "dash": DASHES[number // len(COLOURS) % len(DASHES)]}


def marker(number: int) -> dict[str, str]:
    """How a series' dots are drawn."""
    return {"color": COLOURS[number % len(COLOURS)], "symbol": SYMBOLS[number // len(COLOURS) % len(SYMBOLS)]}


def dots(title: str, panels: dict[str, dict[str, Estimate]], axis: str, *, percent: bool = False) -> Figure:
    """Figures with their intervals, a row a label, faint dots for what they are the mean of; a panel for each title."""
    data, layout = [], _layout(title, height=70 + 34 * max(map(len, panels.values()), default=0), showlegend=False)
    layout |= _side_by_side(list(panels))
    for number, rows in enumerate(panels.values()):
        suffix = str(number + 1) if number else ""
        axes = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        for i, (label, estimate) in enumerate(rows.items()):
            values = list(estimate.values)
            faint = {**marker(i), "size": 7, "opacity": 0.35}
            data.append(_markers(_short(values), [label] * len(values), label, faint))
            mean = _markers(_short([estimate.value]), [label], label, {"color": marker(i)["color"], "size": 13})
            mean["marker"] |= {"symbol": "line-ns-open", "line": {"width": 3, "color": marker(i)["color"]}}
            if estimate.low is not None and estimate.high is not None:
                up, down = estimate.high - estimate.value, estimate.value - estimate.low
                mean["error_x"] = {"type": "data", "symmetric": False, "array": [up], "arrayminus": [down], "width": 0}
            data.append(mean)
            for trace in data[-2:]:
                trace |= axes
        form = {"tickformat": ".0%"} if percent else {}
        layout[f"xaxis{suffix}"] = _axis(axis, rangemode="tozero", **form)
        layout[f"yaxis{suffix}"] = {"autorange": "reversed", "automargin": True, "showgrid": False}
        layout[f"yaxis{suffix}"] |= {"showticklabels": number == 0}
    return _figure(data, layout)


def curves(title: str, panels: Sequence[Panel], axis: str, share: str, limit: str = "") -> Figure:
    """Distribution functions: a panel beside the other, x in the unit that ``axis`` names, y a share."""
    data: list[dict[str, Any]] = []
    layout = _layout(title, height=380, legend={"orientation": "h", "y": -0.25})
    layout |= _side_by_side([p.title for p in panels])
    layout["shapes"] = []
    for number, panel in enumerate(panels):
        suffix = str(number + 1) if number else ""
        ends = [end for s in panel.series if len(s.x) for end in (float(s.x[0]), float(s.x[-1]))]
        for s in panel.series:
            curve: dict[str, Any] = {"type": "scatter", "mode": "lines", "name": s.label, "legendgroup": s.label}
            curve |= {"x": _short(s.x), "y": _short(s.y), "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
            curve |= {"showlegend": number == 0, "line": {"shape": "hv", "width": 2, **line(s.number)}}
            curve["hovertemplate"] = "%{x:.3g}: %{y:.1%}<extra>%{fullData.name}</extra>"
            data.append(curve)
        # Both ends of a wide range only show on a logarithmic axis.
        wide = bool(ends) and min(ends) > 0 and max(ends) > 8 * min(ends)
        ticks = {"type": "log", "tickvals": log_ticks(min(ends), max(ends))} if wide else {}
        layout[f"xaxis{suffix}"] = _axis(axis, **ticks)
        layout[f"yaxis{suffix}"] = _axis(share if number == 0 else "", range=[0, 1.02], tickformat=".0%")
        if panel.limit is not None:
            shape = {"type": "line", "x0": panel.limit, "x1": panel.limit, "y0": 0, "y1": 1}
            shape |= {"xref": f"x{suffix}", "yref": f"y{suffix} domain", "line": {"dash": "dot", "color": "#888"}}
            layout["shapes"].append(shape)
            # Shapes and annotations read a logarithmic axis differently: positions here are powers of ten.
            at = {"x": math.log10(panel.limit) if wide else panel.limit, "y": 0.04, "xanchor": "right"}
            at |= {"xref": f"x{suffix}", "yref": f"y{suffix} domain", "text": f"{limit} ", "showarrow": False}
            layout["annotations"].append(at)
    return _figure(data, layout)


def scatter(title: str, points: dict[str, tuple[Estimate, Estimate]], x: str, y: str) -> Figure:
    """A point for each label with the intervals of both its figures."""
    data = []
    for number, (label, estimates) in enumerate(points.items()):
        across, up = estimates
        trace = _markers([across.value], [up.value], label, {**marker(number), "size": 11})
        for name, e in (("error_x", across), ("error_y", up)):
            if e.low is not None and e.high is not None:
                trace[name] = {"type": "data", "symmetric": False, "width": 0, "thickness": 1}
                trace[name] |= {"array": [e.high - e.value], "arrayminus": [e.value - e.low]}
        trace["hovertemplate"] = "%{x:.4g}, %{y:.4g}<extra>%{fullData.name}</extra>"
        data.append(trace)
    axes = {"xaxis": _axis(x, rangemode="tozero"), "yaxis": _axis(y, rangemode="tozero")}
    return _figure(data, _layout(title, height=460, **axes))


def timeline(title: str, bars: Sequence[Bars], window_ms: tuple[float, float]) -> Figure:
    """Bars in rows along a common time axis, the rows of a panel below its title."""
    rows = list(dict.fromkeys((b.panel, b.row) for b in bars))
    data = []
    seen: set[str] = set()
    for b in bars:
        inside = np.flatnonzero((b.start_ms < window_ms[1]) & (b.start_ms + b.length_ms > window_ms[0]))[:MAX_BARS]
        trace: dict[str, Any] = {"type": "bar", "orientation": "h", "name": b.legend, "legendgroup": b.legend}
        trace |= {"base": _short(b.start_ms[inside], 8), "x": _short(b.length_ms[inside], 8)}
        trace |= {"y": [_row_name(b.panel, b.row)] * len(inside), "text": [b.texts[i] for i in inside]}
        trace |= {"textposition": "none", "width": 0.8, "opacity": b.opacity}
        trace["marker"] = {"color": TENANTS[b.number % len(TENANTS)], "line": {"width": 0}}
        trace["hovertemplate"] = "%{text}<br>from %{base:.4f} ms, %{x:.4f} ms<extra>%{fullData.name}</extra>"
        trace["showlegend"] = bool(b.legend) and b.legend not in seen
        seen.add(b.legend)
        data.append(trace)
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom"}
    layout = _layout(title, height=120 + 26 * len(rows), barmode="overlay", legend=legend)
    layout["xaxis"] = _axis("time, ms", range=list(window_ms))
    order = [_row_name(*row) for row in reversed(rows)]
    layout["yaxis"] = {"automargin": True, "categoryorder": "array", "categoryarray": order, "showgrid": False}
    return _figure(data, layout)


def areas(title: str, rows: dict[str, dict[str, Series]], end_ms: float) -> Figure:
    """Shares over time: a row a label, one above the other, its first series filled."""
    data: list[dict[str, Any]] = []
    legend = {"orientation": "h", "x": 0.5, "xanchor": "center", "y": 1, "yanchor": "bottom"}
    layout = _layout(title, height=90 + 74 * len(rows), legend=legend, annotations=[])
    for row, (name, series) in enumerate(rows.items()):
        suffix = str(row + 1) if row else ""
        for i, (label, s) in enumerate(series.items()):
            curve: dict[str, Any] = {"type": "scatter", "mode": "lines", "name": label, "legendgroup": label}
            curve |= {"showlegend": row == 0, "x": _short(s.x), "y": _short(s.y), "yaxis": f"y{suffix}"}
            curve["line"] = {"width": 1.5 if i else 1, **line(s.number)}
            curve["hovertemplate"] = f"%{{x:.4g}} ms: %{{y:.0%}} {label}<extra></extra>"
            data.append(curve | ({} if i else {"fill": "tozeroy"}))
        top = 1.0 - row / len(rows)
        domain = [top - 0.74 / len(rows), top - 0.02]
        layout[f"yaxis{suffix}"] = _axis("", range=[0, 1.02], tickformat=".0%", nticks=3, domain=domain)
        heading = {"text": name, "xref": "paper", "yref": f"y{suffix} domain", "x": 0.0, "y": 1.0}
        layout["annotations"].append(heading | _HEADING)
    last = f"y{len(rows)}" if len(rows) > 1 else "y"
    layout["xaxis"] = _axis("time, ms", anchor=last, range=[0, end_ms])
    return _figure(data, layout)


def distribution(values: Floats, of: int, points: int = 300) -> tuple[Floats, Floats]:
    """Sorted ``values`` and the share of ``of`` things that are at most as large, at some ``points``."""
    values = np.sort(values)
    if len(values) == 0:
        return values, values
    rows = np.unique(np.linspace(0, len(values) - 1, min(points, len(values))).astype(int))
    # The first point stands on the axis: a curve of one value is a visible step.
    return np.append(values[:1], values[rows]), np.append([0.0], (rows + 1) / of)


def binned_mean(times_us: Floats, values: Floats, edges_us: Floats, end_us: float) -> Floats:
    """Time averages of a step function over bins.

    Args:
        times_us: shape ``(n,)``, ascending; from each on, the function has the value of ``values``; 0 before.
        values: shape ``(n,)``.
        edges_us: shape ``(bins + 1,)``.
        end_us: the function is 0 from here on.

    Returns:
        shape ``(bins,)``.
    """
    bounds = np.concatenate([[0.0], times_us, [max(end_us, float(edges_us[-1]))]])
    levels = np.concatenate([[0.0], values, [0.0]])
    lengths = np.diff(np.minimum(bounds, end_us))
    integral = np.concatenate([[0.0], np.cumsum(levels[:-1] * lengths)])
    means: Floats = np.diff(np.interp(edges_us, np.minimum(bounds, end_us), integral)) / np.diff(edges_us)
    return means


def log_ticks(smallest: float, largest: float) -> list[float]:
    """Round values (1, 2, 5 times powers of ten; powers alone over four decades) that span a positive range."""
    powers = range(math.floor(math.log10(smallest)), math.ceil(math.log10(largest)) + 1)
    steps = (1, 2, 5) if largest < 1e4 * smallest else (1,)
    return [float(f"{step}e{power}") for power in powers for step in steps]


class Kinds:
    """What ``result.plot`` is: ``plot.cdf()`` or ``plot("cdf")``; its methods are the kinds of charts."""

    _usual = "cost"
    """The kind that ``plot()`` draws."""

    def __call__(self, kind: str = "", **options: Any) -> Figure:
        """The chart of one ``kind``, or the usual one.

        Raises:
            InputError: there is no such kind.
        """
        kind = kind or self._usual
        kinds = [name for name in dir(self) if not name.startswith("_")]
        if kind not in kinds:
            raise InputError(f"no chart {kind!r}; there are {', '.join(kinds)}")
        make: Callable[..., Figure] = getattr(self, kind)
        return make(**options)


def _row_name(panel: str, row: str) -> str:
    return f"{panel}: {row}" if panel else row


def _side_by_side(titles: Sequence[str]) -> dict[str, Any]:
    notes = []
    for number, title in enumerate(titles):
        suffix = str(number + 1) if number else ""
        place = {"text": title, "xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0.0, "y": 1.0}
        notes.append(place | _HEADING)
    return {"annotations": notes, "grid": {"rows": 1, "columns": len(titles), "pattern": "independent"}}


def _markers(x: Any, y: Any, name: str, look: dict[str, Any]) -> dict[str, Any]:
    trace = {"type": "scatter", "mode": "markers", "x": x, "y": y, "name": name, "marker": look}
    return trace | {"hovertemplate": "%{x:.4g}<extra>%{fullData.name}</extra>"}


def without_title(chart: Figure) -> Figure:
    """The chart as it stands on a page, under a heading."""
    height = chart.layout.height - _TITLE_PX
    return chart.update_layout(title=None, height=height, margin_t=chart.layout.margin.t - _TITLE_PX)


def _layout(title: str, *, height: int, **more: Any) -> dict[str, Any]:
    """``height`` without the title."""
    place = {"x": 0.0, "y": 1.0, "yanchor": "top", "pad": {"l": 16, "t": 14}}
    return {
        "title": {"text": title, "font": {"size": 15}, **place},
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "#333"},
        "margin": {"l": 60, "r": 16, "t": 36 + _TITLE_PX, "b": 44},
        "height": height + _TITLE_PX,
        "paper_bgcolor": "#fff",
        "plot_bgcolor": "#fff",
        **more,
    }


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, "gridcolor": "#e6e6e6", "zerolinecolor": "#ccc", "automargin": True, **more}


def _short(values: Any, digits: int = 5) -> list[float | None]:
    """Five significant digits are what a screen can show."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values]


def _figure(data: list[dict[str, Any]], layout: dict[str, Any]) -> Figure:
    try:
        from plotly.graph_objects import Figure
    except ImportError as error:
        raise InputError("charts need plotly: pip install 'gpusched-env[experiments]'") from error
    return Figure(data=data, layout=layout)

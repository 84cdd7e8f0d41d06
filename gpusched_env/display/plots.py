"""Charts, as Plotly figures: the one place that knows how lines, dots and bars look.

Series have a number each, which gives them the same colour, dash and symbol in every chart; the first sixty all differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    panel: str = ""

    @property
    def place(self) -> str:
        """Panel and row."""
        return f"{self.panel}: {self.row}" if self.panel else self.row


def line(number: int) -> dict[str, str]:
    """How a series' line is drawn."""
    return {"color": COLOURS[number % len(COLOURS)], "dash": DASHES[number // len(COLOURS) % len(DASHES)]}


def marker(number: int) -> dict[str, str]:
    """How a series' dots are drawn."""
    return {"color": COLOURS[number % len(COLOURS)], "symbol": SYMBOLS[number // len(COLOURS) % len(SYMBOLS)]}


def dots(title: str, panels: dict[str, dict[str, Estimate]], axis: str, row: str, *, percent: bool = False) -> Figure:
    """Figures with their intervals, a row a label, faint dots for what they are the mean of; a panel for each title.

    ``axis`` says what the figures are, ``row`` what a row is.
    """
    height = 70 + 34 * max(map(len, panels.values()), default=0)
    chart = _chart(title, height, columns=list(panels), showlegend=False)
    for column, rows in enumerate(panels.values(), 1):
        for i, (label, e) in enumerate(rows.items()):
            look = {"name": label, "mode": "markers", "hovertemplate": "%{x:.4g}<extra>%{fullData.name}</extra>"}
            place = {"row": 1, "col": column}
            faint = {**marker(i), "size": 7, "opacity": 0.35}
            chart.add_scatter(x=_short(e.values), y=[label] * len(e.values), marker=faint, **look, **place)
            colour = {"color": marker(i)["color"]}
            bar = {"symbol": "line-ns-open", "size": 13, **colour, "line": {"width": 3, **colour}}
            chart.add_scatter(x=_short([e.value]), y=[label], marker=bar, error_x=_arms(e), **look, **place)
    chart.update_xaxes(title=axis, rangemode="tozero", tickformat=".0%" if percent else None)
    chart.update_yaxes(autorange="reversed", showgrid=False, showticklabels=False)
    return chart.update_yaxes(title=row, showticklabels=True, col=1)


def curves(title: str, panels: Sequence[Panel], axis: str, share: str, limit: str = "") -> Figure:
    """Distribution functions: a panel beside the other, x in the unit that ``axis`` names, y a share."""
    chart = _chart(title, 380, columns=[p.title for p in panels], legend={"orientation": "h", "y": -0.25})
    for column, panel in enumerate(panels, 1):
        place = {"row": 1, "col": column}
        ends = [end for s in panel.series if len(s.x) for end in (float(s.x[0]), float(s.x[-1]))]
        for s in panel.series:
            look = {"shape": "hv", "width": 2, **line(s.number)}
            _add_line(chart, s, look, "%{x:.3g}: %{y:.1%}<extra>%{fullData.name}</extra>", shown=column == 1, **place)
        # Both ends of a wide range only show on a logarithmic axis.
        wide = bool(ends) and min(ends) > 0 and max(ends) > 8 * min(ends)
        if wide:
            chart.update_xaxes(type="log", tickvals=log_ticks(min(ends), max(ends)), **place)
        if panel.limit is not None:
            chart.add_vline(panel.limit, line={"dash": "dot", "color": "#888"}, **place)
            # Shapes and annotations read a logarithmic axis differently: positions here are powers of ten.
            at = {"x": math.log10(panel.limit) if wide else panel.limit, "y": 0.04, "xanchor": "right"}
            chart.add_annotation(text=f"{limit} ", showarrow=False, **at, **place)
    chart.update_xaxes(title=axis)
    return chart.update_yaxes(range=[0, 1.02], tickformat=".0%").update_yaxes(title=share, col=1)


def scatter(title: str, points: dict[str, tuple[Estimate, Estimate]], x: str, y: str) -> Figure:
    """A point for each label with the intervals of both its figures."""
    chart = _chart(title, 460)
    for number, (label, (across, up)) in enumerate(points.items()):
        look = {"mode": "markers", "name": label, "marker": {**marker(number), "size": 11}}
        look["hovertemplate"] = "%{x:.4g}, %{y:.4g}<extra>%{fullData.name}</extra>"
        chart.add_scatter(x=[across.value], y=[up.value], error_x=_arms(across, 1), error_y=_arms(up, 1), **look)
    return chart.update_xaxes(title=x, rangemode="tozero").update_yaxes(title=y, rangemode="tozero")


def timeline(title: str, bars: Sequence[Bars], window_ms: tuple[float, float], axis: str) -> Figure:
    """Bars in rows along a common time axis, the rows of a panel below its title; ``axis``: what a row is."""
    rows = list(dict.fromkeys(b.place for b in bars))
    legend = {"orientation": "h", "y": 1.0, "yanchor": "bottom"}
    chart = _chart(title, 120 + 26 * len(rows), barmode="overlay", legend=legend)
    seen: set[str] = set()
    for b in bars:
        inside = np.flatnonzero((b.start_ms < window_ms[1]) & (b.start_ms + b.length_ms > window_ms[0]))[:MAX_BARS]
        chart.add_bar(
            base=_short(b.start_ms[inside], 8),
            x=_short(b.length_ms[inside], 8),
            y=[b.place] * len(inside),
            orientation="h",
            width=0.8,
            opacity=b.opacity,
            marker={"color": TENANTS[b.number % len(TENANTS)], "line": {"width": 0}},
            text=[b.texts[i] for i in inside],
            textposition="none",
            hovertemplate="%{text}<br>from %{base:.4f} ms, %{x:.4f} ms<extra>%{fullData.name}</extra>",
            name=b.legend,
            legendgroup=b.legend,
            showlegend=bool(b.legend) and b.legend not in seen,
        )
        seen.add(b.legend)
    chart.update_xaxes(title="time, ms", range=list(window_ms))
    return chart.update_yaxes(title=axis, categoryorder="array", categoryarray=rows[::-1], showgrid=False)


def areas(title: str, rows: dict[str, dict[str, Series]], end_ms: float, share: str) -> Figure:
    """Shares over time: a row a label, one above the other, its first series filled; ``share``: of what."""
    legend = {"orientation": "h", "x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom"}
    chart = _chart(title, 90 + 74 * len(rows), rows=list(rows), legend=legend)
    for row, series in enumerate(rows.values(), 1):
        for i, s in enumerate(series.values()):
            look = {"width": 1.5 if i else 1, **line(s.number)}
            hover = f"%{{x:.4g}} ms: %{{y:.0%}} {s.label}<extra></extra>"
            fill = None if i else "tozeroy"
            _add_line(chart, s, look, hover, shown=row == 1, fill=fill, row=row, col=1)
    chart.update_yaxes(range=[0, 1.02], tickformat=".0%", nticks=3)
    # A row is too low for a title of its own.
    chart.update_yaxes(title=share, row=(len(rows) + 1) // 2)
    return chart.update_xaxes(range=[0, end_ms]).update_xaxes(title="time, ms", row=len(rows))


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


def without_title(chart: Figure) -> Figure:
    """The chart as it stands on a page, under a heading."""
    height = chart.layout.height - _TITLE_PX
    return chart.update_layout(title=None, height=height, margin_t=chart.layout.margin.t - _TITLE_PX)


def _chart(title: str, height: int, *, rows: Sequence[str] = (), columns: Sequence[str] = (), **more: Any) -> Figure:
    """An empty one with panels of these titles beside or above each other, or one; ``height`` without the title."""
    try:
        from plotly.subplots import make_subplots

        from gpusched_env.display.still import Chart
    except ImportError as error:
        raise InputError("charts need plotly: pip install 'gpusched-env[experiments]'") from error
    chart = make_subplots(
        figure=Chart(),
        rows=max(1, len(rows)),
        cols=max(1, len(columns)),
        subplot_titles=[*rows, *columns],
        shared_xaxes=bool(rows),
        vertical_spacing=0.26 / max(1, len(rows)),
    )
    chart.update_annotations(font={"size": 13, "color": "#222"})
    for axes in (chart.update_xaxes, chart.update_yaxes):
        axes(gridcolor="#e6e6e6", zerolinecolor="#ccc", automargin=True)
    return chart.update_layout(
        title={"text": title, "font": {"size": 15}, "x": 0.0, "y": 1.0, "yanchor": "top", "pad": {"l": 16, "t": 14}},
        font={"family": "system-ui, sans-serif", "size": 12, "color": "#333"},
        margin={"l": 60, "r": 16, "t": 36 + _TITLE_PX, "b": 44},
        height=height + _TITLE_PX,
        paper_bgcolor="#fff",
        plot_bgcolor="#fff",
        **more,
    )


def _add_line(chart: Figure, series: Series, look: dict[str, Any], hover: str, *, shown: bool, **more: Any) -> None:
    """``shown``: in the legend, where a label stands once for all panels."""
    known = {"name": series.label, "legendgroup": series.label, "showlegend": shown}
    points = {"x": _short(series.x), "y": _short(series.y)}
    chart.add_scatter(mode="lines", line=look, hovertemplate=hover, **known, **points, **more)


def _arms(estimate: Estimate, thickness: float | None = None) -> dict[str, Any] | None:
    """Error bars, if there is an interval."""
    if estimate.low is None or estimate.high is None:
        return None
    arms = {"array": [estimate.high - estimate.value], "arrayminus": [estimate.value - estimate.low]}
    return {"type": "data", "symmetric": False, "width": 0, "thickness": thickness, **arms}


def _short(values: Any, digits: int = 5) -> list[float | None]:
    """Five significant digits are what a screen can show."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values]

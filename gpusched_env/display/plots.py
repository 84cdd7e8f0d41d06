"""Charts, as Plotly figures: the one place that knows how lines, dots and bars are laid out.

A series has a :class:`~gpusched_env.display.palette.Look`, the same in every chart. Faint ones are grey; their entry in
the legend draws them in colour.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusched_env.display.palette import GREY, Floats, Look, log_ticks, look, wide
from gpusched_env.errors import InputError, needs

if TYPE_CHECKING:
    from plotly.graph_objects import Figure as Figure


MAX_BARS = 5_000
"""Most bars of a timeline; what starts later is left out."""
BESIDE = 3
"""Most panels in a row."""
LABEL = 26
"""Most letters in a line of a row's label."""
_TITLE_PX = 28
"""Height of a chart's title."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with the bounds of its interval (``None`` without one) and the values that it is the mean of."""

    value: float
    low: float | None = None
    high: float | None = None
    values: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart: ``x`` and ``y`` of shape ``(points,)``."""

    label: str
    look: Look
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
    look: Look
    opacity: float = 1.0
    legend: str = ""
    panel: str = ""

    @property
    def place(self) -> str:
        """Panel and row that the bars stand in."""
        return f"{self.panel}: {self.row}" if self.panel else self.row


def dots(
    title: str,
    panels: dict[str, dict[str, Estimate]],
    axis: str,
    row: str,
    *,
    looks: Mapping[str, Look] | None = None,
    percent: bool = False,
) -> Figure:
    """Figures with their intervals, a row a label, faint dots for what they are the mean of; a panel for each title.

    ``axis`` says what the figures are, ``row`` what a row is; ``looks``, by label, or else by number.
    """
    height = 70 + 34 * max(map(len, panels.values()), default=0)
    chart = _chart(title, height, columns=list(panels), showlegend=False)
    for column, rows in enumerate(panels.values(), 1):
        for i, (label, e) in enumerate(rows.items()):
            place = {"row": 1, "col": column, "name": label, "mode": "markers"}
            place["hovertemplate"] = "%{x:.4g}<extra>%{fullData.name}</extra>"
            own = (looks or {}).get(label) or look(i)
            colour = {"color": GREY if own.faint else own.colour}
            shown = _lines(label)
            faint = {**colour, "symbol": own.symbol, "size": 7, "opacity": 0.35}
            chart.add_scatter(x=_short(e.values), y=[shown] * len(e.values), marker=faint, **place)
            bar = {"symbol": "line-ns-open", "size": 13, **colour, "line": {"width": 3, **colour}}
            chart.add_scatter(x=_short([e.value]), y=[shown], marker=bar, error_x=_arms(e), **place)
    found = [v for rows in panels.values() for e in rows.values() for v in (e.value, *e.values) if math.isfinite(v)]
    _scale(chart.update_xaxes, axis, np.array([] if percent else found))
    chart.update_xaxes(tickformat=".0%" if percent else None)
    chart.update_yaxes(autorange="reversed", showgrid=False, showticklabels=False)
    return chart.update_yaxes(title=row, showticklabels=True, col=1)


def curves(title: str, panels: Sequence[Panel], axis: str, share: str, limit: str = "") -> Figure:
    """Distribution functions: a panel beside the other, x in the unit that ``axis`` names, y a share."""
    beside = min(BESIDE, len(panels))
    above = -(-len(panels) // beside)
    legend = {"orientation": "h", "y": -70 / (290 * above), "yanchor": "top"}
    chart = _chart(title, 90 + 290 * above, grid=(above, beside), columns=[p.title for p in panels], legend=legend)
    all_ends = [_ends(panel) for panel in panels]
    # Panels beside each other have one kind of axis.
    logarithmic = any(map(wide, all_ends)) and all(ends.min() > 0.0 for ends in all_ends if len(ends))
    for number, (panel, ends) in enumerate(zip(panels, all_ends, strict=True)):
        place = {"row": number // beside + 1, "col": number % beside + 1}
        # Grey lines lie below the others.
        for s in panel.series:
            if s.look.faint:
                _add_line(chart, s, {"shape": "hv", "width": 1.2, "color": GREY}, _SHARE, showlegend=False, **place)
        for s in panel.series:
            line = {"shape": "hv", "width": 2, "color": s.look.colour, "dash": s.look.dash}
            more = {"legendgroup": s.label, "showlegend": number == 0, "visible": _visible(s.look)}
            _add_line(chart, s, line, _SHARE, **more, **place)
        # No curve lies on the frame.
        if logarithmic and len(ends):
            low, high = math.log10(ends.min() / 1.15), math.log10(ends.max() * 1.15)
            ticks = log_ticks(ends.min(), ends.max())
            chart.update_xaxes(type="log", tickvals=ticks, range=[low, high], **place)
        elif len(ends):
            chart.update_xaxes(range=[0.0, 1.08 * float(ends.max())], **place)
        if panel.limit is not None:
            chart.add_vline(panel.limit, line={"dash": "dot", "color": "#888"}, **place)
            # Shapes and annotations read a logarithmic axis differently: positions here are powers of ten.
            at = {"x": math.log10(panel.limit) if logarithmic else panel.limit, "y": 0.04, "xanchor": "right"}
            chart.add_annotation(text=f"{limit} ", showarrow=False, **at, **place)
    chart.update_xaxes(title=f"{axis} (logarithmic)" if logarithmic else axis, row=above)
    return chart.update_yaxes(range=[-0.02, 1.05], tickformat=".0%").update_yaxes(title=share, col=1)


def _ends(panel: Panel) -> Floats:
    """The smallest and the largest x of each curve, and the limit."""
    return np.array([*filter(None, [panel.limit]), *(float(x) for s in panel.series for x in (*s.x[:1], *s.x[-1:]))])


def scatter(title: str, points: dict[str, tuple[Estimate, Estimate]], x: str, y: str, looks: dict[str, Look]) -> Figure:
    """A point for each label with the intervals of both its figures."""
    chart = _chart(title, 500, legend={"orientation": "h", "y": -60 / 400, "yanchor": "top"})
    for label, (across, up) in points.items():
        own = looks[label]
        known: dict[str, Any] = {"mode": "markers", "name": label}
        known["hovertemplate"] = "%{x:.4g}, %{y:.4g}<extra>%{fullData.name}</extra>"
        known |= {"x": [across.value], "y": [up.value], "error_x": _arms(across, 1), "error_y": _arms(up, 1)}
        if own.faint:
            chart.add_scatter(marker={"color": GREY, "symbol": own.symbol, "size": 9}, showlegend=False, **known)
        marker = {"color": own.colour, "symbol": own.symbol, "size": 11}
        chart.add_scatter(marker=marker, visible=_visible(own), **known)
    for number, (update, axis) in enumerate(((chart.update_xaxes, x), (chart.update_yaxes, y))):
        found = [pair[number].value for pair in points.values() if math.isfinite(pair[number].value)]
        _scale(update, axis, np.array(found), rangemode="normal")
    return chart


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
            marker={"color": b.look.colour, "line": {"width": 0}},
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
    legend = {"orientation": "h", "x": 1, "xanchor": "right", "yanchor": "bottom"}
    height = 90 + 74 * len(rows)
    legend["y"] = 1 + 24 / (height - 80)  # Above the title of the first row.
    chart = _chart(title, height + 20, rows=list(rows), legend=legend)
    for row, series in enumerate(rows.values(), 1):
        for i, s in enumerate(series.values()):
            line = {"width": 1.5 if i else 1, "color": s.look.colour, "dash": s.look.dash}
            hover = f"%{{x:.4g}} ms: %{{y:.0%}} {s.label}<extra></extra>"
            more = {"legendgroup": s.label, "showlegend": row == 1, "fill": None if i else "tozeroy"}
            _add_line(chart, s, line, hover, **more, row=row, col=1)
    chart.update_layout(margin_t=chart.layout.margin.t + 20)
    chart.update_yaxes(range=[0, 1.02], tickformat=".0%", nticks=3)
    # A row is too low for a title of its own.
    chart.update_yaxes(title=share, row=(len(rows) + 1) // 2)
    return chart.update_xaxes(range=[0, end_ms]).update_xaxes(title="time, ms", row=len(rows))


def without_title(chart: Figure) -> Figure:
    """The chart as it stands on a page, under a heading."""
    height = chart.layout.height - _TITLE_PX
    return chart.update_layout(title=None, height=height, margin_t=chart.layout.margin.t - _TITLE_PX)


def _chart(
    title: str,
    height: int,
    *,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    grid: tuple[int, int] | None = None,
    **more: Any,
) -> Figure:
    """An empty one with panels of these titles beside or above each other, or one; ``height`` without the title.

    ``grid``: rows and columns of the panels, by default all in one row or column.
    """
    try:
        from plotly.subplots import make_subplots

        from gpusched_env.display.still import Chart
    except ImportError as error:
        raise InputError(needs("a chart", "plotly")) from error
    above, beside = grid or (max(1, len(rows)), max(1, len(columns)))
    chart = make_subplots(
        figure=Chart(),
        rows=above,
        cols=beside,
        subplot_titles=[*rows, *columns],
        shared_xaxes=bool(rows),
        vertical_spacing=0.26 / above,
    )
    chart.update_annotations(font={"size": 13, "color": "#222"})
    for axes in (chart.update_xaxes, chart.update_yaxes):
        axes(gridcolor="#e6e6e6", zerolinecolor="#ccc", automargin=True)
    return chart.update_layout(
        title={"text": title, "font": {"size": 15}, "x": 0.0, "y": 1.0, "yanchor": "top", "pad": {"l": 16, "t": 14}},
        font={"family": "system-ui, sans-serif", "size": 12, "color": "#333"},
        # The toolbar stands in the right margin, where it covers nothing.
        margin={"l": 60, "r": 40, "t": 36 + _TITLE_PX, "b": 44},
        modebar={"orientation": "v", "bgcolor": "rgba(0,0,0,0)"},
        height=height + _TITLE_PX,
        paper_bgcolor="#fff",
        plot_bgcolor="#fff",
        **more,
    )


_SHARE = "%{x:.3g}: %{y:.1%}<extra>%{fullData.name}</extra>"


def _scale(update: Callable[..., Any], axis: str, values: Floats, rangemode: str = "tozero") -> None:
    """An axis for ``values``, logarithmic where one far from the others would squash them."""
    if wide(values):
        update(title=f"{axis} (logarithmic)", type="log", tickvals=log_ticks(values.min(), values.max()))
    else:
        update(title=axis, rangemode=rangemode)


def _lines(label: str) -> str:
    """The label in lines of at most :data:`LABEL` letters."""
    return "<br>".join(textwrap.wrap(label, LABEL, break_long_words=False, break_on_hyphens=False))


def _visible(own: Look) -> bool | str:
    return "legendonly" if own.faint else True


def _add_line(chart: Figure, series: Series, line: dict[str, Any], hover: str, **more: Any) -> None:
    points = {"x": _short(series.x), "y": _short(series.y)}
    chart.add_scatter(mode="lines", name=series.label, line=line, hovertemplate=hover, **points, **more)


def _arms(estimate: Estimate, thickness: float | None = None) -> dict[str, Any] | None:
    """Error bars of a figure, if there is an interval."""
    if estimate.low is None or estimate.high is None:
        return None
    arms = {"array": [estimate.high - estimate.value], "arrayminus": [estimate.value - estimate.low]}
    return {"type": "data", "symmetric": False, "width": 0, "thickness": thickness, **arms}


def _short(values: Any, digits: int = 5) -> list[float | None]:
    """Values with five significant digits, which is what a screen can show."""
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in values]


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

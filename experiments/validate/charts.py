"""The charts of the validation page: Plotly figures in plain dictionaries, and timelines as SVG."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from gpusched_env.display.plots import log_ticks
from gpusched_env.experiments.validate.run import Validation
from gpusched_env.experiments.validate.scoring import Prediction, concurrency
from gpusched_env.experiments.validate.worst import WorstLaunch

PREDICTED, MEASURED, MARKED = "#4269d0", "#8a8a8a", "#d6336c"
FAINT = "#c9c9c9"
MOST_CONCURRENT = 8
"""Launches among more than this share a box."""
SMALLEST_ERROR = 1e-4
"""Smaller errors are drawn here: a logarithmic axis has no zero."""
_BAR_PX, _STREAM_PX, _LEFT_PX, _WIDTH_PX, _AXIS_PX = 9, 25, 90, 1120, 20


def charts(validation: Validation) -> dict[str, Any]:
    """By element id: ``ends``, ``concurrency``; empty without sets of kernels."""
    if not validation.sets:
        return {}
    return {"ends": ends_chart(validation), "concurrency": concurrency_chart(validation)}


def ends_chart(validation: Validation) -> dict[str, Any]:
    """Predicted against measured end, a panel a set, a dot a launch."""
    data: list[dict[str, Any]] = []
    layout = _panels(len(validation.sets), 430)
    measured = np.concatenate([p.measured_us for rows in validation.sets.values() for p in rows])
    low, high = float(measured.min()) * 0.8, float(measured.max()) * 1.25
    for panel, (name, predictions) in enumerate(validation.sets.items()):
        suffix = str(panel + 1) if panel else ""
        line = {"color": FAINT, "width": 1}
        diagonal: dict[str, Any] = {
            "type": "scatter",
            "mode": "lines",
            "x": [low, high],
            "y": [low, high],
            "line": line,
        }
        data.append(diagonal | {"hoverinfo": "skip", "showlegend": False} | _axes(suffix))
        for label, wanted, colour in (("reproducible", True, PREDICTED), ("other", False, "#e8a33d")):
            x, y, texts = _launches(predictions, wanted)
            marker = {"color": colour, "size": 4, "opacity": 0.55}
            dots: dict[str, Any] = {"type": "scattergl", "mode": "markers", "name": label, "legendgroup": label}
            dots |= {"marker": marker, "x": x, "y": y, "text": texts, "showlegend": panel == 0}
            dots["hovertemplate"] = "%{text}<br>measured %{x:.5g} µs, predicted %{y:.5g} µs<extra></extra>"
            data.append(dots | _axes(suffix))
        ticks = {"type": "log", "tickvals": [t for t in log_ticks(low, high) if low <= t <= high], "tickformat": "~s"}
        ticks |= {"range": [float(np.log10(low)), float(np.log10(high))]}
        layout[f"xaxis{suffix}"] = _axis("measured end, µs", **ticks)
        layout[f"yaxis{suffix}"] = _axis("predicted end, µs" if panel == 0 else "", **ticks)
        layout["annotations"].append(_heading(f"{name}: {sum(len(p.end_us) for p in predictions)} launches", suffix))
    return {"data": data, "layout": layout}


def concurrency_chart(validation: Validation) -> dict[str, Any]:
    """Errors of reproducible ends by the number of launches that ran at the launch's midpoint, a panel a set."""
    data: list[dict[str, Any]] = []
    layout = _panels(len(validation.sets), 360)
    layout["showlegend"] = False
    for panel, (name, predictions) in enumerate(validation.sets.items()):
        suffix = str(panel + 1) if panel else ""
        among = np.concatenate([concurrency(p.scenario) for p in predictions])
        error = np.abs(np.concatenate([p.errors for p in predictions]))
        kept = np.concatenate([p.reproducible for p in predictions])
        among, error = np.minimum(among[kept], MOST_CONCURRENT), np.maximum(error[kept], SMALLEST_ERROR)
        for count in np.unique(among):
            values = error[among == count]
            label = f"{count}+" if count == MOST_CONCURRENT else str(count)
            box = {"type": "box", "name": label, "y": _short(values), "boxpoints": "outliers", "jitter": 0.4}
            box |= {"marker": {"size": 3, "opacity": 0.5, "color": PREDICTED}, "line": {"width": 1.3}}
            data.append(box | {"hovertemplate": f"%{{y:.2%}}, {len(values)} launches<extra></extra>"} | _axes(suffix))
        ticks = {"type": "log", "tickvals": [1e-4, 1e-3, 1e-2, 0.1, 1.0], "tickformat": "~%", "range": [-4.05, 0.6]}
        layout[f"xaxis{suffix}"] = _axis("launches running", type="category")
        layout[f"yaxis{suffix}"] = _axis("|error| of the end" if panel == 0 else "", **ticks)
        layout["annotations"].append(_heading(name, suffix))
    return {"data": data, "layout": layout}


def timeline_svg(worst: WorstLaunch) -> str:
    """A scenario's launches, predicted above measured for each stream; the worst one is marked in both."""
    prediction = worst.prediction
    launches = prediction.scenario.launches
    streams = sorted({launch.stream for launch in launches})
    measured = prediction.scenario.measured
    first_us = min(float(prediction.start_us.min()), min(m.start_us for m in measured))
    last_us = max(float(prediction.end_us.max()), float(prediction.measured_us.max()))
    scale = (_WIDTH_PX - _LEFT_PX - 20) / (last_us - first_us)
    height = len(streams) * _STREAM_PX + _AXIS_PX
    parts = [f'<svg viewBox="0 0 {_WIDTH_PX} {height}" role="img">', *_time_axis(first_us, last_us, scale, height)]
    for row, stream in enumerate(streams):
        top = row * _STREAM_PX + 2
        priority = next(launch.priority for launch in launches if launch.stream == stream)
        label = f"stream {stream}" + (f" ({priority})" if priority else "")
        parts.append(f'<text x="{_LEFT_PX - 8}" y="{top + 13}" text-anchor="end">{label}</text>')
        for i, launch in enumerate(launches):
            if launch.stream != stream:
                continue
            for line, colour, what, start_us, end_us in (
                (0, PREDICTED, "predicted", float(prediction.start_us[i]), float(prediction.end_us[i])),
                (1, MEASURED, "measured", measured[i].start_us, measured[i].end_us),
            ):
                x = _LEFT_PX + (start_us - first_us) * scale
                width = max(1.0, (end_us - start_us) * scale)
                colour = MARKED if i == worst.launch and line == 0 else "#e58aa9" if i == worst.launch else colour
                tip = f"{launch.kernel} {what}: {start_us:,.1f} to {end_us:,.1f} µs ({prediction.errors[i]:+.2%})"
                parts.append(
                    f'<rect x="{x:.1f}" y="{top + line * (_BAR_PX + 1)}" width="{width:.1f}" height="{_BAR_PX}" '
                    f'fill="{colour}"><title>{escape(tip)}</title></rect>'
                )
    return "".join([*parts, "</svg>"])


def _time_axis(first_us: float, last_us: float, scale: float, height: int) -> list[str]:
    step = 10.0 ** np.floor(np.log10((last_us - first_us) / 4))
    step *= next(m for m in (5, 2, 1) if (last_us - first_us) / (m * step) >= 4)
    parts = []
    for tick in np.arange(np.ceil(first_us / step) * step, last_us, step):
        x = _LEFT_PX + (tick - first_us) * scale
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - _AXIS_PX + 2}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 5}" text-anchor="middle">{tick:,.0f} µs</text>')
    return parts


def _launches(predictions: list[Prediction], reproducible: bool) -> tuple[list[float], list[float], list[str]]:
    """Measured and predicted ends of one kind of launches, and what they are."""
    x: list[float] = []
    y: list[float] = []
    texts: list[str] = []
    for p in predictions:
        for i in np.flatnonzero(p.reproducible == reproducible):
            x.append(p.scenario.measured[i].end_us)
            y.append(float(p.end_us[i]))
            texts.append(f"{p.scenario.id}, launch {i}, {p.scenario.launches[i].kernel}: {p.errors[i]:+.2%}")
    return _short(x), _short(y), texts


def _panels(count: int, height: int) -> dict[str, Any]:
    font = {"family": "system-ui, sans-serif", "size": 12, "color": "#333"}
    layout: dict[str, Any] = {"font": font, "height": height, "margin": {"l": 60, "r": 16, "t": 56, "b": 44}}
    layout |= {"grid": {"rows": 1, "columns": count, "pattern": "independent", "xgap": 0.14}, "annotations": []}
    legend = {"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.16, "yanchor": "top"}
    return layout | {"legend": legend | {"itemsizing": "constant"}, "paper_bgcolor": "#fff", "plot_bgcolor": "#fff"}


def _axes(suffix: str) -> dict[str, str]:
    return {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, "gridcolor": "#ececec", "zeroline": False, "automargin": True, **more}


def _heading(text: str, suffix: str) -> dict[str, Any]:
    at = {"xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0.0, "y": 1.0, "showarrow": False}
    return at | {"text": text, "xanchor": "left", "yanchor": "bottom", "font": {"size": 13, "color": "#222"}}


def _short(values: Any) -> list[float]:
    return [float(f"{v:.5g}") for v in values]

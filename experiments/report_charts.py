"""The charts of the HTML report, as Plotly figures in plain dictionaries."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.comparison import Comparison
from gpusched_env.experiments.figures import GLOBAL_FIGURES

COLOURS = ("#4269d0", "#e8710a", "#2a9d6f", "#d6336c", "#8a63d2", "#0b8fa8", "#a0522d", "#7a7a7a", "#b8a200", "#111111")
"""A scheduler's colour is the same in every chart."""
CDF_POINTS = 300
BINS = 300
_ROW_PX = 74


def charts(comparison: Comparison) -> dict[str, Any]:
    """By element id: ``cost``, ``turnaround``, ``utilisation`` (without one if kernels were not recorded)."""
    figures = {"cost": cost_chart(comparison), "turnaround": turnaround_chart(comparison)}
    if any(comparison.recorded(name) for name in comparison.schedulers):
        figures["utilisation"] = utilisation_chart(comparison)
    return figures


def cost_chart(comparison: Comparison) -> dict[str, Any]:
    """Mean cost with its interval, a row a scheduler; a dot a seed."""
    cost = next(f for f in GLOBAL_FIGURES if f.key == "cost")
    data: list[dict[str, Any]] = []
    for i, name in enumerate(comparison.schedulers):
        values = comparison.values(name, cost)
        interval = comparison.interval(name, cost)
        label = comparison.label(name)
        data.append(_trace(values, [label] * len(values), label, {"color": _colour(i), "size": 7, "opacity": 0.35}))
        mean = _trace([interval.mean], [label], label, {"color": _colour(i), "size": 13, "symbol": "line-ns-open"})
        mean["marker"]["line"] = {"width": 3, "color": _colour(i)}
        if interval.low is not None and interval.high is not None:
            up, down = interval.high - interval.mean, interval.mean - interval.low
            mean["error_x"] = {"type": "data", "symmetric": False, "array": [up], "arrayminus": [down], "width": 0}
        data.append(mean)
    weights = comparison.problem.scenario.reward
    terms = [n for n in weights.__struct_fields__ if getattr(weights, n)]
    layout = _layout(height=70 + 34 * len(comparison.schedulers), showlegend=False)
    layout["xaxis"] = _axis(f"cost ({' + '.join(f'{getattr(weights, n):g} × {n}' for n in terms)})", rangemode="tozero")
    layout["yaxis"] = {"autorange": "reversed", "automargin": True, "showgrid": False}
    return {"data": data, "layout": layout}


def turnaround_chart(comparison: Comparison) -> dict[str, Any]:
    """The distribution of turnaround, a panel a tenant, a curve a scheduler, all seeds together.

    Curves are shares of the jobs that arrived: one that stays below 1 left jobs unfinished.
    """
    panels = len(comparison.tenants)
    data: list[dict[str, Any]] = []
    layout = _layout(height=340, legend={"orientation": "h", "y": -0.25})
    layout["grid"] = {"rows": 1, "columns": panels, "pattern": "independent"}
    layout["annotations"] = []
    layout["shapes"] = []
    for row, tenant in enumerate(comparison.tenants):
        suffix = str(row + 1) if row else ""
        smallest, largest = math.inf, 0.0
        for i, name in enumerate(comparison.schedulers):
            x, y = _cdf(comparison, name, row)
            if len(x):
                smallest, largest = min(smallest, float(x[0])), max(largest, float(x[-1]))
            curve: dict[str, Any] = {"type": "scatter", "mode": "lines", "legendgroup": name}
            curve |= {
                "showlegend": row == 0,
                "x": _short(x),
                "y": _short(y),
                "xaxis": f"x{suffix}",
                "yaxis": f"y{suffix}",
            }
            curve |= {"line": {"shape": "hv", "width": 2, "color": _colour(i)}}
            curve["hovertemplate"] = "%{x:.3g} ms: %{y:.1%}<extra>%{fullData.name}</extra>"
            data.append(curve)
        # Both ends of a wide range only show on a logarithmic axis.
        wide = largest > 8 * smallest
        ticks = {"type": "log", "tickvals": log_ticks(smallest, largest)} if wide else {}
        layout[f"xaxis{suffix}"] = _axis("turnaround, ms", **ticks)
        layout[f"yaxis{suffix}"] = _axis("share of jobs" if row == 0 else "", range=[0, 1.02], tickformat=".0%")
        heading = {"text": tenant, "xref": f"x{suffix} domain", "yref": f"y{suffix} domain", "x": 0.0, "y": 1.0}
        layout["annotations"].append(heading | _HEADING)
        slo_us = comparison.problem.programs[row].tenant.slo_us
        if slo_us is not None:
            line = {"type": "line", "x0": slo_us / 1e3, "x1": slo_us / 1e3, "y0": 0, "y1": 1}
            line |= {"xref": f"x{suffix}", "yref": f"y{suffix} domain", "line": {"dash": "dot", "color": "#888"}}
            layout["shapes"].append(line)
            # Shapes and annotations read a logarithmic axis differently: positions here are powers of ten.
            at = {"x": math.log10(slo_us / 1e3) if wide else slo_us / 1e3, "y": 0.04, "xanchor": "right"}
            at |= {"xref": f"x{suffix}", "yref": f"y{suffix} domain", "text": "SLO ", "showarrow": False}
            layout["annotations"].append(at)
    return {"data": data, "layout": layout}


def utilisation_chart(comparison: Comparison) -> dict[str, Any]:
    """Busy SMs and DRAM traffic over time in the recorded seed, a row a scheduler, one common time axis."""
    names = [name for name in comparison.schedulers if comparison.recorded(name)]
    gpu = comparison.problem.gpu
    runs = [run for run in map(comparison.recorded, names) if run is not None]
    end_us = max(run.metrics.end_us for run in runs)
    edges = np.linspace(0.0, end_us, BINS + 1)
    centres_ms = (edges[:-1] + edges[1:]) / 2e3
    data: list[dict[str, Any]] = []
    layout = _layout(
        height=90 + _ROW_PX * len(runs),
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": 1, "yanchor": "bottom"},
    )
    layout["annotations"] = []
    for row, (name, run) in enumerate(zip(names, runs, strict=True)):
        assert run.timeline is not None
        suffix = str(row + 1) if row else ""
        steps = run.timeline.sms.array
        for label, column, full, style in (
            ("busy SMs", 1, gpu.sms, {"fill": "tozeroy", "line": {"width": 1, "color": "#4269d0"}}),
            ("DRAM bandwidth", 2, gpu.dram_bytes_per_us, {"line": {"width": 1.5, "color": "#e8710a"}}),
        ):
            means = binned_mean(steps[:, 0], steps[:, column] / full, edges, run.metrics.end_us)
            curve: dict[str, Any] = {"type": "scatter", "mode": "lines", "name": label, "legendgroup": label}
            curve |= {"name": comparison.label(name), "showlegend": row == 0}
            curve |= {"x": _short(centres_ms), "y": _short(means), "yaxis": f"y{suffix}"}
            curve["hovertemplate"] = f"%{{x:.4g}} ms: %{{y:.0%}} {label}<extra></extra>"
            data.append(curve | style)
        top = 1.0 - row / len(runs)
        layout[f"yaxis{suffix}"] = _axis("", range=[0, 1.02], tickformat=".0%", nticks=3) | {
            "domain": [top - 0.74 / len(runs), top - 0.02]
        }
        heading = {"text": comparison.label(name), "xref": "paper", "yref": f"y{suffix} domain", "x": 0.0, "y": 1.0}
        layout["annotations"].append(heading | _HEADING)
    layout["xaxis"] = _axis("time, ms", anchor=f"y{len(runs)}" if len(runs) > 1 else "y", range=[0, end_us / 1e3])
    return {"data": data, "layout": layout}


def binned_mean(
    times_us: NDArray[np.float64], values: NDArray[np.float64], edges_us: NDArray[np.float64], end_us: float
) -> NDArray[np.float64]:
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
    means: NDArray[np.float64] = np.diff(np.interp(edges_us, np.minimum(bounds, end_us), integral)) / np.diff(edges_us)
    return means


def log_ticks(smallest: float, largest: float) -> list[float]:
    """Round values (1, 2, 5 times powers of ten; powers alone over four decades) that span a positive range."""
    powers = range(math.floor(math.log10(smallest)), math.ceil(math.log10(largest)) + 1)
    steps = (1, 2, 5) if largest < 1e4 * smallest else (1,)
    return [float(f"{step}e{power}") for power in powers for step in steps]


def _cdf(comparison: Comparison, scheduler: str, tenant: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Turnarounds (ms) and the share of arrived jobs done within them, at most :data:`CDF_POINTS` points."""
    runs = comparison.of(scheduler)
    jobs = np.concatenate([run.jobs[run.jobs[:, 0] == tenant] for run in runs])
    arrived = sum(r.metrics.tenants[tenant].completed + r.metrics.tenants[tenant].unfinished for r in runs)
    turnaround_ms = np.sort(jobs[:, 4] - jobs[:, 2]) / 1e3
    if len(turnaround_ms) == 0:
        return turnaround_ms, turnaround_ms
    rows = np.unique(np.linspace(0, len(turnaround_ms) - 1, min(CDF_POINTS, len(turnaround_ms))).astype(int))
    # The first point stands on the axis: a curve of one job is a visible step.
    return np.append(turnaround_ms[:1], turnaround_ms[rows]), np.append([0.0], (rows + 1) / arrived)


_HEADING: dict[str, Any] = {
    "showarrow": False, "xanchor": "left", "yanchor": "bottom", "font": {"size": 13, "color": "#222"},
}  # fmt: skip


def _trace(x: list[float], y: list[str], name: str, marker: dict[str, Any]) -> dict[str, Any]:
    trace = {"type": "scatter", "mode": "markers", "x": _short(x), "y": y, "name": name, "marker": marker}
    return trace | {"hovertemplate": "%{x:.4g}<extra>%{fullData.name}</extra>"}


def _layout(**more: Any) -> dict[str, Any]:
    font = {"family": "system-ui, sans-serif", "size": 12, "color": "#333"}
    margin = {"l": 60, "r": 16, "t": 28, "b": 44}
    return {"font": font, "margin": margin, "paper_bgcolor": "#fff", "plot_bgcolor": "#fff", **more}


def _axis(title: str, **more: Any) -> dict[str, Any]:
    return {"title": {"text": title}, "gridcolor": "#e6e6e6", "zerolinecolor": "#ccc", "automargin": True, **more}


def _colour(scheduler: int) -> str:
    return COLOURS[scheduler % len(COLOURS)]


def _short(values: Any) -> list[float | None]:
    """Five significant digits: what a screen can show."""
    return [float(f"{v:.5g}") if math.isfinite(v) else None for v in values]

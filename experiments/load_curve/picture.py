"""Load curves as a picture for pages: a line a scheduler, a band over its seeds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpusched_env.display.palette import LINES, MARKERS, Look
from gpusched_env.experiments.lib.drawing import drawing
from gpusched_env.experiments.load_curve.figures import CurveFigures
from gpusched_env.experiments.load_curve.tables import leading, looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL_IN = (4.6, 3.4)
LEGEND_IN = 1.7


def panels(curve: CurveFigures) -> list[tuple[str, str, float]]:
    """Figures that are drawn: key, words of the axis, factor to the shown unit."""
    key, axis, _, scale = leading(curve)
    attained = [("slo_attainment", "within the objective, lowest tenant, %", 100.0)] if curve.objectives else []
    return [(key, axis, scale), ("turnaround_p99_us", "p99 of turnaround, ms", 1e-3), *attained]


def picture_svg(curve: CurveFigures) -> bytes:
    """The panels beside each other, with one legend.

    Raises:
        InputError: matplotlib is not installed.
    """
    found = panels(curve)
    with drawing((PANEL_IN[0] * len(found) + LEGEND_IN, PANEL_IN[1])) as (figure, finished):
        axes = figure.subplots(1, len(found), squeeze=False)[0]
        for place, (key, axis, scale) in zip(axes, found, strict=True):
            for name, own in looks(curve).items():
                _line(place, curve, name, own, key, scale)
            place.set_xlabel(curve.axis.field)
            place.set_ylabel(axis)
            place.set_ylim(bottom=0.0)
            place.grid(color="#ececec", linewidth=0.6)
            place.set_axisbelow(True)
            if key == "slo_attainment":
                place.axhline(100.0 * curve.share, color="#888", linewidth=0.8, linestyle=":")
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside right upper", frameon=False)
        return finished()


def _line(place: Axes, curve: CurveFigures, name: str, look: Look, key: str, scale: float) -> None:
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

"""What all charts share: colours, dashes and symbols of tenants and series; distribution functions, averages over
bins, and ticks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COLOURS = ("#4269d0", "#e8710a", "#2a9d6f", "#d6336c", "#8a63d2", "#0b8fa8", "#a0522d", "#7a7a7a", "#b8a200", "#111111")
"""Colours of series, by their numbers; the last is kept for what the others are compared with."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
TENANTS = (
    "#4269d0", "#e8710a", "#2a9d6f", "#8a63d2", "#d6336c", "#0b8fa8", "#a0522d", "#7a7a7a", "#8fb0ff", "#b8a200",
    "#5c7a29", "#f19bb5",
)  # fmt: skip
"""Colours of tenants, by their rows; a thirteenth has the first one's again."""
GREY = "#c4c8ce"
"""The colour of series that are not told apart until they are chosen."""
PALE = "#9db3e8"
"""The colour of the parts whose mean has the first colour."""
TRAFFIC = "#be3c3c"
"""The colour of DRAM traffic: no tenant's."""
LINES = {
    "solid": "-",
    "dash": (0, (6, 3)),
    "dot": (0, (1.5, 2)),
    "dashdot": (0, (6, 2, 1.5, 2)),
    "longdash": (0, (10, 3)),
    "longdashdot": (0, (10, 2.5, 1.5, 2.5)),
}
"""Dashes as Matplotlib draws them."""
MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "cross": "P", "star": "*"}
"""Symbols as Matplotlib draws them."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a series looks."""

    colour: str
    dash: str = "solid"
    symbol: str = "circle"
    faint: bool = False
    """Grey until it is chosen in the legend."""


BASELINE = Look(COLOURS[-1])
"""The look of what the others are compared with."""


def look(number: int, *, faint: bool = False) -> Look:
    """Looks of series by number: the first twelve differ in colour or dash at a glance, the first fifty differ."""
    colours = COLOURS[:-1]
    row = number // 3 + number // (2 * len(colours))
    return Look(colours[number % len(colours)], DASHES[row % len(DASHES)], SYMBOLS[row % len(SYMBOLS)], faint)


def tenant(row: int) -> Look:
    """The look of the tenant in this row of its scenario."""
    return Look(TENANTS[row % len(TENANTS)])


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of ``#rrggbb``, 0 to 255."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue


Floats = NDArray[np.float64]
WIDE = 8.0
"""Both ends of values that differ by more than this factor only show on a logarithmic axis."""


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


def wide(values: Floats) -> bool:
    """Whether positive ``values`` lie so far apart that an axis should be logarithmic; not if one is 0."""
    return len(values) > 0 and bool(values.min() > 0.0 and values.max() > WIDE * values.min())

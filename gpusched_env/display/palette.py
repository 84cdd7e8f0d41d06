"""Colours, dashes and symbols: the one place that knows how tenants and series look, in charts, pages and pictures."""

from __future__ import annotations

from dataclasses import dataclass

COLOURS = ("#4269d0", "#e8710a", "#2a9d6f", "#d6336c", "#8a63d2", "#0b8fa8", "#a0522d", "#7a7a7a", "#b8a200", "#111111")
"""Of series, by their numbers; the last is kept for what the others are compared with."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "star")
TENANTS = (
    "#4269d0", "#e8710a", "#2a9d6f", "#8a63d2", "#d6336c", "#0b8fa8", "#a0522d", "#7a7a7a", "#8fb0ff", "#b8a200",
    "#5c7a29", "#f19bb5",
)  # fmt: skip
"""Of tenants, by their rows; a thirteenth has the first one's again."""
GREY = "#c4c8ce"
"""Of series that are not told apart until they are chosen."""
PALE = "#9db3e8"
"""Of the parts whose mean has the first colour."""
TRAFFIC = "#be3c3c"
"""Of DRAM traffic: no tenant's."""
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
"""Of what the others are compared with."""


def look(number: int, *, faint: bool = False) -> Look:
    """Of the series with this number; the first twelve differ in colour or dash at a glance, the first fifty differ."""
    colours = COLOURS[:-1]
    row = number // 3 + number // (2 * len(colours))
    return Look(colours[number % len(colours)], DASHES[row % len(DASHES)], SYMBOLS[row % len(SYMBOLS)], faint)


def tenant(row: int) -> Look:
    """Of the tenant in this row of its scenario."""
    return Look(TENANTS[row % len(TENANTS)])


def rgb(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of ``#rrggbb``, 0 to 255."""
    red, green, blue = bytes.fromhex(colour.removeprefix("#"))
    return red, green, blue

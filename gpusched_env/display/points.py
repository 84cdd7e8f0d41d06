"""What charts draw of raw values: distribution functions, averages over bins, and where an axis has its ticks."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

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

"""Up to which load a scheduler keeps its tenants' objectives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

SHARE = 0.95
"""Of a tenant's jobs that must be within its objective."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The highest value at which the objective is kept."""

    value: float
    """Between two points of the grid, by linear interpolation; its end where ``where`` is not ``within``."""
    where: Literal["within", "above", "below", "unknown"]
    """``above``: kept at every point. ``below``: at none, not even the lowest. ``unknown``: no job's outcome is."""

    def __str__(self) -> str:
        if self.where == "unknown":
            return "–"
        return f"{self.value:.3g}" if self.where == "within" else f"{self.where} {self.value:.3g}"


def capacity(values: Sequence[float], attained: Sequence[float], share: float = SHARE) -> Capacity:
    """Where ``attained`` first falls below ``share``.

    Args:
        values: ascending.
        attained: at each of them, 0 to 1; NaN where it is not known, such points are left out.
        share: that must be attained.
    """
    points = [(v, a) for v, a in zip(values, attained, strict=True) if math.isfinite(a)]
    if not points:
        return Capacity(math.nan, "unknown")
    first = next((i for i, (_, a) in enumerate(points) if a < share), None)
    if first is None:
        return Capacity(points[-1][0], "above")
    if first == 0:
        return Capacity(points[0][0], "below")
    (kept, high), (broken, low) = points[first - 1], points[first]
    return Capacity(kept + (high - share) / (high - low) * (broken - kept), "within")

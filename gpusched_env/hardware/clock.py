"""The clock of simulated devices: whole picoseconds since the reset.

A float of microseconds wears out: after ten seconds its last place is larger than the time that a block has left,
and the end of the block never comes. Whole picoseconds are as fine after a hundred days as at the start. Whatever
is computed in microseconds (block times, latencies, arrivals) becomes a time by rounding to the nearest
picosecond; so two events less than half a picosecond apart are at one instant, on every device.
"""

from __future__ import annotations

import math
from typing import Final

from gpusched_env.compiling import law

PS_PER_US: Final = 1_000_000
NEVER: Final = 1 << 62
"""The time of what will not happen (146 years)."""


@law
def to_ps(us: float) -> int:
    """Microseconds (>= 0, ``inf``: :data:`NEVER`) as the nearest number of picoseconds."""
    if us >= 4.0e12:
        return NEVER
    return math.floor(us * 1e6 + 0.5)


@law
def to_us(ps: int) -> float:
    """Picoseconds as microseconds; :data:`NEVER` is ``inf``."""
    if ps >= NEVER:
        return math.inf
    return ps / 1e6

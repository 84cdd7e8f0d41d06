"""How warps that run on one SM slow each other, at the granularity of warps.

Devices at the granularity of blocks use the laws of :mod:`gpusched_env.hardware.contention`, fitted on recordings of an
H100. Those need each kernel's profile; here an application is known by its loop alone, and what an SM holds changes
with every warp. So the law is the simplest that has the three limits of the Kepler that SPAWN (HPCA 2017)
simulates: all running warps of an SM progress at one common rate, ``1 / stretch``, and

    stretch = sqrt(1 + (traffic of the GPU / capacity)² + (traffic of the SM / capacity)² + (issue of the SM)²)

where traffic and issue are what the running warps would ask for if nobody slowed them. An SM is thus a clock that runs
slower the more it holds: a phase that takes ``d`` cycles alone ends when its SM's clock has gone on by ``d``.

Devices: :mod:`gpusched_env.games.child_launches.devices`.
"""

from __future__ import annotations

import math
from typing import Final

from gpusched_env.compiling import law

DEMAND_UNIT: Final = 1.0 / (1 << 40)
"""Demands are whole multiples of this, so that sums do not depend on the order in which warps came and went."""
MOST_DEMAND: Final = 512.0
"""Of a warp, far more than one can ask for: sums over 8,192 warps stay within 64 bits."""


@law
def cycles_to_ps(cycles: float, ps_per_cycle: float) -> int:
    """Core cycles as the nearest whole number of picoseconds."""
    return math.floor(cycles * ps_per_cycle + 0.5)


@law
def demand(amount: float, cycles: float) -> int:
    """``amount`` (lines, or issue cycles) in ``cycles`` as a rate, in :data:`DEMAND_UNIT` a cycle."""
    return math.floor(min(amount / cycles, MOST_DEMAND) / DEMAND_UNIT + 0.5)


@law
def stretch(gpu_lines: int, gpu_capacity: float, sm_lines: int, sm_capacity: float, issue: int) -> float:
    """Factor (>= 1) on the time of every running warp of an SM.

    Args:
        gpu_lines, sm_lines: demand of the running warps of the GPU and of this SM for lines of 128 bytes.
        gpu_capacity, sm_capacity: lines a cycle that can be served.
        issue: demand of the SM's warps for its schedulers; one is all that they have.
    """
    shared = gpu_lines * DEMAND_UNIT / gpu_capacity
    own = sm_lines * DEMAND_UNIT / sm_capacity
    slots = issue * DEMAND_UNIT
    return math.sqrt(1.0 + shared * shared + own * own + slots * slots)


@law
def clock_now(clock: float, since_ps: int, rate: float, now_ps: int) -> float:
    """An SM's clock (cycles) at ``now_ps`` if it showed ``clock`` at ``since_ps`` and ran at ``rate`` cycles a ps."""
    return clock + (now_ps - since_ps) * rate


@law
def time_of(target: float, clock: float, since_ps: int, rate: float, now_ps: int) -> int:
    """When an SM's clock shows ``target`` (ps), with ``clock``, ``since_ps`` and ``rate`` as in :func:`clock_now`:
    later than ``now_ps``."""
    return max(now_ps + 1, since_ps + math.ceil((target - clock) / rate))

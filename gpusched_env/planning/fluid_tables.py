"""Tables and figures of the fluid model of the GPU (:mod:`gpusched_env.planning.fluid`)."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NOBODY: Final = -1
ROUNDING_US: Final = 1e-6
"""Times are sums of quotients."""


class FluidTenant(enum.IntEnum):
    """Columns of the table of tenants."""

    ALONE_US = 0
    """Profiled turnaround of a job alone."""
    SLO_US = enum.auto()
    """``inf`` without an objective."""
    WEIGHT = enum.auto()
    JOBS_A_US = enum.auto()
    """Mean rate of arrivals; 0 without an objective."""
    GRAPHS = enum.auto()
    """1: its jobs are launched as graphs."""


class FluidJob(enum.IntEnum):
    """Columns of the table of jobs, which are in order of deadlines; those behind :attr:`LEFT_US` are worked in."""

    TENANT = 0
    DUE_US = enum.auto()
    """From now on; ``inf`` without an objective."""
    LEFT_US = enum.auto()
    """Profiled device time left."""
    LATE = enum.auto()
    """1: it is late for sure and lost, but has to be done, as nothing can be rejected."""
    EARNS = enum.auto()
    """Weight over the time left."""
    KEPT = enum.auto()
    SPEED = enum.auto()


class Model(NamedTuple):
    """Figures of the model."""

    horizon_us: float
    """How far futures go."""
    price: float
    """A job that is worth less than this for each microsecond of its time is not kept (weight a microsecond)."""
    scale: float
    """What a job takes of the machine in the plan of those kept, in multiples of its time."""
    first: float
    """Speed of the job that goes first while others are in service, 0 to 1."""
    others: float
    """Speed of all others together, 0 or more."""
    pairs: Floats
    """Speeds of two tenants' jobs side by side, shape ``(tenants, tenants, 2)``, which take the place of ``first`` and
    ``others`` (:func:`~gpusched_env.planning.interference.speed_table`); with no rows: they are not known."""
    exponent: float
    """Of :func:`~gpusched_env.planning.interference.disturbance`."""
    rejects: bool = True
    """Whether jobs can be rejected; otherwise late ones stand in the way of those behind them
    (:mod:`gpusched_env.planning.in_order`)."""

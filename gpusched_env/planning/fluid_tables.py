"""Tables of the fluid model (:mod:`gpusched_env.planning.fluid`): tenants, jobs, and the memory that a future is played
in.
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called

Floats = NDArray[np.float64]

NOBODY: Final = -1
ROUNDING_US: Final = 1e-6
"""Tolerance of comparisons of times, which are sums of quotients."""
STEPS_A_US: Final = 2.0**20
"""Times left are multiples of one over this: other last digits on other processors would decide between jobs that earn
the same."""
ROUNDING: Final = 1e-9
"""Far more than what rounding makes of a time, as a share of it."""


@called
def stepped(time_us: float) -> float:
    """The nearest multiple of 1 / :data:`STEPS_A_US`; ``inf`` stays."""
    return float(np.rint(time_us * STEPS_A_US) / STEPS_A_US)


class FluidTenant(enum.IntEnum):
    """Columns of the table of tenants."""

    ALONE_US = 0
    """Profiled turnaround of a job alone."""
    SLO_US = enum.auto()
    """Objective for turnarounds; ``inf`` without one."""
    WEIGHT = enum.auto()
    JOBS_A_US = enum.auto()
    """Mean rate of arrivals; 0 without an objective."""
    GRAPHS = enum.auto()
    """1 if its jobs are launched as graphs."""


class FluidJob(enum.IntEnum):
    """Columns of the table of jobs, which are in order of deadlines."""

    TENANT = 0
    DUE_US = enum.auto()
    """Deadline, from now on; ``inf`` without an objective."""
    LEFT_US = enum.auto()
    """Profiled device time left."""


START_ROWS: Final = 5
"""Rows of :class:`Work` that a future begins with, the first ones."""
MEMORY_ROWS: Final = 4
LOG_ROWS: Final = 32
MOST: Final = 64
"""Jobs in the model at a time: what comes while so many are there is not seen."""
REMEMBERED: Final = MEMORY_ROWS * MOST
"""Entries of the memory of disturbances."""


@enum.unique
class Work(enum.IntEnum):
    """Rows of the memory that a future is played in: by place of a job, in order of deadlines, unless it says
    otherwise."""

    TENANT = 0
    DUE_US = enum.auto()
    LEFT_US = enum.auto()
    EARNS = enum.auto()
    """Weight over the time left."""
    LATE = enum.auto()
    """1 if it is late for sure and lost, but has to be done, as nothing can be rejected."""
    KEPT = enum.auto()
    """1 if it is to be in time."""
    BEFORE = enum.auto()
    """Place of the job before it of its tenant, where nothing can be rejected."""
    SERVED = enum.auto()
    """Places of jobs that are served, from the first on."""
    SPEED = enum.auto()
    """Speeds of :attr:`SERVED`."""
    ORDER = enum.auto()
    """Places of jobs in the order in which they are served."""
    OTHERS = enum.auto()
    """Places of jobs that go behind those that are kept."""
    LAST_KEPT = enum.auto()
    """Place of the last job that is kept, by tenant, where nothing can be rejected."""
    NEWEST = enum.auto()
    """Place of the last job so far, by tenant, while jobs are chosen."""
    SHARES = enum.auto()
    """Summed shares of arrivals, by tenant."""
    START = 14
    """First of :data:`START_ROWS` rows: jobs as they are at the beginning of every future."""
    FROM = START + START_ROWS
    """Place of a job at the beginning, by its row of the table."""
    PAIR = FROM + 1
    """First of :data:`MEMORY_ROWS` rows, by entry of the memory of disturbances: who is disturbed, and by whom."""
    PAIR_SPEED = PAIR + MEMORY_ROWS
    """... the speed of the one behind."""
    DISTURBED = PAIR_SPEED + MEMORY_ROWS
    """... the disturbance."""
    IDLE = DISTURBED + MEMORY_ROWS
    """By arrival that found nobody there: where in the log begins what is lost from then on."""
    LOG = IDLE + 1
    """First of :data:`LOG_ROWS` rows: what was lost in the present future, one after the other."""


WORK: Final = (Work.LOG + LOG_ROWS, MOST)
"""Shape of the memory that futures are played in."""


class Model(NamedTuple):
    """Figures of the model."""

    horizon_us: float
    """Simulated time that futures go on for (us)."""
    price: float
    """A job that is worth less than this for each microsecond of its time is not kept (weight a microsecond)."""
    scale: float
    """What a job takes of the machine in the plan of kept jobs, in multiples of its time."""
    first: float
    """Speed of the job that goes first while others are in service, 0 to 1."""
    others: float
    """Speed of all others together, 0 or more."""
    pairs: Floats
    """Speeds of two tenants' jobs side by side, shape ``(tenants, tenants, 2)``, which take the place of ``first`` and
    ``others`` (:func:`~gpusched_env.planning.interference.speed_table`); with no rows: they are not known."""
    exponent: float
    """Exponent of :func:`~gpusched_env.planning.interference.disturbance`."""
    rejects: bool = True
    """Whether jobs can be rejected; otherwise late ones stand in the way of those behind them
    (:mod:`gpusched_env.planning.fluid`)."""

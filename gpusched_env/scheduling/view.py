"""What a scheduler can know: a read-only snapshot in plain arrays.

Only what a real host-side scheduler could observe: launches it intercepted, completions, profiles
measured beforehand, counters of the driver. Never actual durations, later arrivals, or work that the
host has not issued.

Every table is one float64 array of shape ``(rows, columns)``; columns are named by an ``IntEnum`` and
readable as attributes (``view.pending.profiled_us`` is a column). Ids and counts are exact integers
stored as floats. Unknown times are ``inf``.
"""

from __future__ import annotations

import enum
import itertools
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import GpuschedError


class PendingColumn(enum.IntEnum):
    """Kernels that a host issued and the scheduler has not launched yet, oldest first within a tenant."""

    ID = 0
    """Launch id, unique in the episode, increasing in order of issue."""
    TENANT = enum.auto()
    """Row of the tenant table."""
    JOB = enum.auto()
    """Job number of the tenant, from 0."""
    IDENTITY = enum.auto()
    """Row of ``Knowledge.kernels``: equal name, grid and block give an equal identity."""
    LAUNCHABLE = enum.auto()
    """1 if ``Launch`` of it is legal now: it is its tenant's oldest pending kernel."""
    PRIORITY = enum.auto()
    """Tenant's urgency, 0 is the most urgent."""
    BLOCKS = enum.auto()
    """Blocks still to run (the grid, or what a preemption left)."""
    THREADS = enum.auto()
    """Threads a block."""
    BLOCKS_PER_SM = enum.auto()
    """Blocks that an empty SM holds."""
    SMS = enum.auto()
    """SMs that the kernel would use on an empty GPU."""
    PROFILED_US = enum.auto()
    """Profiled mean duration alone (of the whole kernel); NaN if it was never measured."""
    PROFILED_GAP_US = enum.auto()
    """Profiled mean time from its end to the start of its tenant's next kernel, alone on the GPU; NaN if it was never
    measured."""
    PROFILED_ISSUE = enum.auto()
    """Profiled share of issue slots it uses alone, 0 to 1."""
    PROFILED_DRAM = enum.auto()
    """Profiled share of DRAM bandwidth it uses alone, 0 to 1."""
    ISSUED_US = enum.auto()
    """When the host issued it."""
    WAITED_US = enum.auto()
    """How long it has been pending."""
    JOB_ARRIVED_US = enum.auto()
    """When its job arrived."""
    DEADLINE_US = enum.auto()
    """When its job exceeds the tenant's SLO; ``inf`` without one."""
    JOB_LEFT_US = enum.auto()
    """Profiled device time of what is left of its job, this kernel included: the job's, which its service knows, spread
    over its kernels as their profiles say."""
    PREEMPTED = enum.auto()
    """1 if it ran before and was preempted."""


class RunningColumn(enum.IntEnum):
    """Launched, unfinished kernels, in order of launch."""

    ID = 0
    TENANT = enum.auto()
    JOB = enum.auto()
    IDENTITY = enum.auto()
    PRIORITY = enum.auto()
    """Tenant's urgency."""
    STREAM_PRIORITY = enum.auto()
    """Stream priority it was launched with (0 or negative)."""
    STARTED = enum.auto()
    """1 once a block of it was dispatched."""
    PREEMPTING = enum.auto()
    """1 while a preemption of it is under way (of some of its blocks: until they are saved)."""
    LAUNCHED_US = enum.auto()
    STARTED_US = enum.auto()
    """Start of its first block; ``inf`` before."""
    ELAPSED_US = enum.auto()
    """Time since its first block started; 0 before."""
    BLOCKS = enum.auto()
    """Blocks of the grid."""
    BLOCKS_WAITING = enum.auto()
    """Blocks not yet dispatched, and saved ones that have to be dispatched again."""
    BLOCKS_RESIDENT = enum.auto()
    """Blocks on SMs now, those included that are being saved."""
    PROFILED_US = enum.auto()
    """NaN if it was never measured."""
    PROFILED_ISSUE = enum.auto()
    PROFILED_DRAM = enum.auto()
    DEADLINE_US = enum.auto()
    IDEMPOTENT = enum.auto()
    """1 if it may be reset."""
    PREEMPTIBLE = enum.auto()
    """1 if ``Preempt`` of all of it is legal now (``reset``: if it is idempotent, too): it has started, no preemption
    of it is under way, and no kernel of its tenant was preempted at this instant already."""


class TenantColumn(enum.IntEnum):
    """One row a tenant, in the scenario's order."""

    PRIORITY = 0
    WEIGHT = enum.auto()
    SLO_US = enum.auto()
    """``inf`` without one."""
    ALONE_US = enum.auto()
    """Profiled turnaround of one job alone on the GPU."""
    JOBS_WAITING = enum.auto()
    """Jobs that arrived and have not completed (the one in service included)."""
    JOBS_DONE = enum.auto()
    KERNELS_PENDING = enum.auto()
    """Issued kernels that wait for the scheduler (also those beyond the look-ahead)."""
    KERNELS_LAUNCHED = enum.auto()
    """Launched kernels that have not finished."""
    OLDEST_ARRIVED_US = enum.auto()
    """Arrival of the oldest unfinished job; ``inf`` without one."""
    LAST_TURNAROUND_US = enum.auto()
    """Turnaround of the last completed job; 0 before."""
    MEAN_TURNAROUND_US = enum.auto()
    """Exponential mean (weight 1/8 for the newest) of turnarounds; 0 before."""
    PARTITION_FIRST = enum.auto()
    PARTITION_SMS = enum.auto()
    LAST_END_US = enum.auto()
    """When the tenant's last kernel or copy to finish did so; 0 before."""
    LAUNCHED_LEFT_US = enum.auto()
    """Predicted time left of its launched, unfinished kernels, summed: of each ``max(0, PROFILED_US - ELAPSED_US)``, 0
    if it was never measured."""
    RUNNING_LEFT_US = enum.auto()
    """The same of its kernel that has started (``STARTED``); ``inf`` without one. A stream runs its kernels in
    order, so a tenant has one at most."""
    PARTITIONABLE = enum.auto()
    """1 if ``SetPartition`` is legal now: the partition was not set at this instant already."""


class Table:
    """A ``(rows, columns)`` float64 array whose columns read as attributes, in lower case."""

    __slots__ = ("_columns", "array")

    def __init__(self, array: NDArray[np.float64], columns: type[enum.IntEnum]) -> None:
        self.array = array
        self._columns = columns

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        try:
            return self.array[:, self._columns[name.upper()]]
        except KeyError:
            names = ", ".join(c.name.lower() for c in self._columns)
            raise AttributeError(f"no column {name!r}; columns: {names}") from None

    def __len__(self) -> int:
        return len(self.array)

    def __reduce__(self) -> Any:
        return (Table, (self.array, self._columns))


@dataclass(frozen=True)
class View:
    """A snapshot at one decision epoch; to be read before the next command is applied."""

    time_us: float
    pending: Table
    """Columns :class:`PendingColumn`; at most the scenario's look-ahead for each tenant."""
    running: Table
    """Columns :class:`RunningColumn`."""
    tenants: Table
    """Columns :class:`TenantColumn`."""
    sms: int
    """SMs of the GPU."""
    busy_sms: int
    """SMs with at least one resident block, as a driver counter would show."""
    occupancy: float
    """Resident threads over the GPU's maximum, 0 to 1."""
    dram: float
    """DRAM traffic over the nominal bandwidth, 0 to 1."""
    horizon_us: float


class Source(Protocol):
    """A device behind a :class:`LazyView`."""

    epoch: int
    """Counts commands; a view is valid within one epoch."""


S = TypeVar("S", bound=Source)


_NUMBERS: weakref.WeakKeyDictionary[Source, int] = weakref.WeakKeyDictionary()
_SOURCES: weakref.WeakValueDictionary[int, Source] = weakref.WeakValueDictionary()
_NEXT = itertools.count()


def _number(source: Source) -> int:
    """What stands for a device in its views: they must not hold the device itself, which holds the truth."""
    found = _NUMBERS.get(source)
    if found is None:
        found = _NUMBERS[source] = next(_NEXT)
        _SOURCES[found] = source
    return found


class LazyView(View):
    """A view whose fields are made when they are first read: most schedulers read few of them."""

    def __init__(self, source: S, time_us: float, builders: Mapping[str, Callable[[S], Any]]) -> None:
        """``builders``: what makes each field but ``time_us``."""
        fields = self.__dict__
        fields["_source"] = _number(source)
        fields["_builders"] = builders
        fields["_epoch"] = source.epoch
        fields["time_us"] = time_us

    def __getattr__(self, name: str) -> Any:
        builder = self.__dict__["_builders"].get(name)
        if builder is None:
            raise AttributeError(name)
        source = _SOURCES.get(self.__dict__["_source"])
        if source is None or source.epoch != self.__dict__["_epoch"]:
            raise GpuschedError("a view must be read before the next command is applied")
        value = self.__dict__[name] = builder(source)
        return value

    def complete(self) -> View:
        """All of it, independent of the device."""
        return View(time_us=self.time_us, **{name: getattr(self, name) for name in self.__dict__["_builders"]})

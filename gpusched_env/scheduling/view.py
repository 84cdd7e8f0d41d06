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
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpusched_env.display.frame import frame
from gpusched_env.display.table import Table as TextTable
from gpusched_env.display.table import of_columns
from gpusched_env.display.words import counted
from gpusched_env.scheduling.cores import CoreColumn
from gpusched_env.scheduling.guards import read_only_copy

if TYPE_CHECKING:
    from gpusched_env.display.frame import DataFrame


class PendingColumn(enum.IntEnum):
    """What was issued and the scheduler has not launched yet: kernels, and graphs as wholes.

    A window of the scenario's look-ahead for each tenant, tenant after tenant, oldest first. Copies are not shown:
    they go to their streams as soon as everything that they wait for has.
    """

    ID = 0
    """Launch id, unique in the episode, increasing in order of issue."""
    TENANT = enum.auto()
    """Row of the tenant table."""
    JOB = enum.auto()
    """Job number of the tenant, from 0."""
    IDENTITY = enum.auto()
    """Row of ``Knowledge.kernels``: equal name, grid and block give an equal identity."""
    LAUNCHABLE = enum.auto()
    """1 if ``Launch`` of it is legal now: nothing that it waits for is pending itself. What is launched but has not
    finished does not hold it up: the device does, by stream order or event. In a window: one of the scheduler's streams
    has room, and all that it waits for and that is not known to have ended is in that stream."""
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
    """When its job exceeds the tenant's SLO; ``inf`` without one. Where an engine's request has its first token: when
    the next one does that waits for one, as it waits for this."""
    JOB_LEFT_US = enum.auto()
    """Profiled device time of what is left of its job, this kernel included: the job's, which its service knows, spread
    over its kernels as their profiles say."""
    PREEMPTED = enum.auto()
    """1 if it ran before and was preempted."""
    STREAM = enum.auto()
    """Row of ``Knowledge.streams`` that its program launches it into, or that it was launched into before a preemption;
    -1: none, the device launched it."""
    UPSTREAM = enum.auto()
    """Unfinished operations that it is known to wait for (``view.dependencies`` has them)."""
    NODES = enum.auto()
    """Kernels in it: 1, of a graph all."""
    PARENT = enum.auto()
    """Id of the launch that launched it from the device; -1: its host did."""
    QUEUED_US = enum.auto()
    """Profiled time left, in a window, of what it would be behind in the stream that it gets if the command names none;
    0 if it may not be launched."""
    BETWEEN_US = enum.auto()
    """Part of ``queued_us`` that is behind the last one that it waits for: how much later it begins in that stream than
    right behind what it waits for."""
    DEPENDENTS = enum.auto()
    """Pending launches, copies included, that are known to wait for it, in a window."""
    PRODUCER = enum.auto()
    """Id of the launch whose tiles it needs; -1: none, or it has ended."""
    NEEDS = enum.auto()
    """What its tiles need of that launch's: 0 those of its row, 1 the one at its place, 2 a share of all, 3 its row of
    one matrix and its column's of another, as :data:`~gpusched_env.scheduling.synchronising.NEEDS`; -1: it needs none.
    """
    FOLD = enum.auto()
    """Matrices that its producer has side by side; 0: it needs no tiles."""
    STEPS = enum.auto()
    """Steps of its inner loop that read one tile of a row; 0: it needs none."""
    SYNCHRONISABLE = enum.auto()
    """1 if ``Synchronise`` of it is legal now: its producer is of another stream, it was never launched and no block of
    the producer has started, and neither it nor another consumer of the producer's tiles was synchronised."""
    ROWS = enum.auto()
    """Rows of its grid, as tiles; 0: a graph has none."""
    COLUMNS = enum.auto()
    """Columns of its grid, as tiles; 0: a graph has none."""
    SLICES = enum.auto()
    """Slices that share the work of a tile (split-K); 0: a graph has none."""
    POLICY = enum.auto()
    """The policy by which its blocks wait for tiles: a place in :data:`~gpusched_env.scheduling.commands.POLICIES`, 0:
    it starts behind what it waits for."""
    POSTS = enum.auto()
    """The policy by which blocks of a consumer wait for its tiles; 0: none does."""
    FORMS = enum.auto()
    """How many forms ``Reshape`` may give it now, the first ones of ``Knowledge.kernels[identity].forms``; 0 where its
    kernel has none, it was launched or given one before, its tiles are synchronised with another's, or it passes a
    window."""
    FORM1_US = enum.auto()
    """Profiled mean duration alone in the first form; NaN if it was never measured, 0 if there is no such form."""
    FORM1_ROWS = enum.auto()
    """Rows of the grid of the first form, as tiles; 0 if there is no such form, as in the columns below."""
    FORM1_COLUMNS = enum.auto()
    """Columns of the grid of the first form, as tiles."""
    FORM1_SLICES = enum.auto()
    """Slices that share the work of a tile of the first form."""
    FORM1_PER_SM = enum.auto()
    """Blocks of the first form that an empty SM holds."""
    FORM2_US = enum.auto()
    """Profiled mean duration alone in the second form; NaN if it was never measured, 0 if there is no such form."""
    FORM2_ROWS = enum.auto()
    """Rows of the grid of the second form, as tiles; 0 if there is no such form, as in the columns below."""
    FORM2_COLUMNS = enum.auto()
    """Columns of the grid of the second form, as tiles."""
    FORM2_SLICES = enum.auto()
    """Slices that share the work of a tile of the second form."""
    FORM2_PER_SM = enum.auto()
    """Blocks of the second form that an empty SM holds."""
    FORM3_US = enum.auto()
    """Profiled mean duration alone in the third form; NaN if it was never measured, 0 if there is no such form."""
    FORM3_ROWS = enum.auto()
    """Rows of the grid of the third form, as tiles; 0 if there is no such form, as in the columns below."""
    FORM3_COLUMNS = enum.auto()
    """Columns of the grid of the third form, as tiles."""
    FORM3_SLICES = enum.auto()
    """Slices that share the work of a tile of the third form."""
    FORM3_PER_SM = enum.auto()
    """Blocks of the third form that an empty SM holds."""


class RunningColumn(enum.IntEnum):
    """Launched, unfinished kernels and graphs, in order of launch."""

    ID = 0
    """Launch id, as it was in the pending table."""
    TENANT = enum.auto()
    """Row of the tenant table."""
    JOB = enum.auto()
    """Job number of the tenant, from 0."""
    IDENTITY = enum.auto()
    """Row of ``Knowledge.kernels``."""
    PRIORITY = enum.auto()
    """Urgency of its tenant."""
    STREAM_PRIORITY = enum.auto()
    """Stream priority it was launched with (0 or negative)."""
    STARTED = enum.auto()
    """1 once a block of it was dispatched."""
    PREEMPTING = enum.auto()
    """1 while a preemption of it is under way (of some of its blocks: until they are saved)."""
    LAUNCHED_US = enum.auto()
    """When it was last launched."""
    STARTED_US = enum.auto()
    """Start of its first block since it was last launched; ``inf`` before."""
    ELAPSED_US = enum.auto()
    """Time since ``started_us``, and what it ran before that if a preemption kept its progress; 0 after a reset."""
    BLOCKS = enum.auto()
    """Blocks of the grid."""
    BLOCKS_WAITING = enum.auto()
    """Blocks not yet dispatched, and saved ones that have to be dispatched again."""
    BLOCKS_RESIDENT = enum.auto()
    """Blocks on SMs now, those included that are being saved."""
    PROFILED_US = enum.auto()
    """Profiled mean duration alone; NaN if it was never measured."""
    PROFILED_ISSUE = enum.auto()
    """Profiled share of issue slots it uses alone, 0 to 1."""
    PROFILED_DRAM = enum.auto()
    """Profiled share of DRAM bandwidth it uses alone, 0 to 1."""
    DEADLINE_US = enum.auto()
    """When its job exceeds the tenant's SLO; ``inf`` without one. Where an engine's request has its first token: when
    the next one does that waits for one, as it waits for this."""
    IDEMPOTENT = enum.auto()
    """1 if it may be reset: its kernel may run again from its start, and it posts no tiles."""
    PREEMPTIBLE = enum.auto()
    """1 if ``Preempt`` of it is legal now (``reset``: if it is idempotent, too): it has started, is no graph, no
    preemption of it is under way, and none was commanded at this instant already."""
    STREAM = enum.auto()
    """Row of ``Knowledge.streams`` that it was launched into; -1: none, it is a child."""
    NODES = enum.auto()
    """Kernels in it: 1, of a graph all."""
    PARENT = enum.auto()
    """Id of the launch that launched it from the device; -1: its host did."""
    POLICY = enum.auto()
    """The policy by which its blocks wait for tiles, as of pending launches."""
    POSTS = enum.auto()
    """The policy by which blocks of a consumer wait for its tiles, as of pending launches."""


class TenantColumn(enum.IntEnum):
    """One row a tenant, in the scenario's order."""

    PRIORITY = 0
    """Urgency, 0 is the most urgent."""
    WEIGHT = enum.auto()
    """Weight of its jobs in the cost."""
    SLO_US = enum.auto()
    """Service objective for the turnaround of a job; ``inf`` without one."""
    ALONE_US = enum.auto()
    """Profiled turnaround of one job alone on the GPU, of a serving engine's request up to its first token."""
    DEVICE_US = enum.auto()
    """Profiled durations of the kernels of a job, summed: :attr:`ALONE_US` without the gaps between them; 0 if none was
    ever measured."""
    JOBS_A_US = enum.auto()
    """Mean rate of its arrivals, as who runs the service has measured it, jobs a microsecond; 0 where jobs wait for
    each other or are all there at once."""
    JOBS_WAITING = enum.auto()
    """Jobs that arrived and have not completed (those in service included)."""
    JOBS_DONE = enum.auto()
    """Jobs that it completed."""
    KERNELS_PENDING = enum.auto()
    """Issued kernels that wait for the scheduler (also those beyond the look-ahead)."""
    KERNELS_LAUNCHED = enum.auto()
    """Launched kernels that have not finished."""
    OLDEST_ARRIVED_US = enum.auto()
    """Arrival of the oldest unfinished job, of a serving engine the oldest without a first token; ``inf`` without one.
    """
    LAST_TURNAROUND_US = enum.auto()
    """Turnaround of the last completed job, or time to the latest first token of a serving engine; 0 before."""
    MEAN_TURNAROUND_US = enum.auto()
    """Exponential mean (weight 1/8 for the newest) of ``last_turnaround_us``; 0 before."""
    PARTITION_FIRST = enum.auto()
    """First SM of the partition that its launches get, in placement order."""
    PARTITION_SMS = enum.auto()
    """SMs of the partition that its launches get; all of the GPU where none was set."""
    LAST_END_US = enum.auto()
    """When the tenant's last kernel or copy to finish did so; 0 before."""
    LAUNCHED_LEFT_US = enum.auto()
    """Predicted time left of its launched, unfinished kernels, summed: of each ``max(0, PROFILED_US - ELAPSED_US)``, 0
    if it was never measured."""
    RUNNING_LEFT_US = enum.auto()
    """The least predicted time left of its kernels that have started (``STARTED``); ``inf`` without one."""
    PARTITIONABLE = enum.auto()
    """1 if ``SetPartition`` is legal now: the partition was not set at this instant already."""
    OLDEST_REJECTABLE = enum.auto()
    """Number of its oldest job that ``Reject`` may name now; -1: none."""
    NEWEST_REJECTABLE = enum.auto()
    """Number of its newest job that ``Reject`` may name now; -1: none."""
    PAUSE_US = enum.auto()
    """How long its host sleeps before it begins a job; 0 where it was not throttled."""
    THROTTLABLE = enum.auto()
    """1 if ``Throttle`` is legal now: the tenant was not throttled at this instant already."""


class JobColumn(enum.IntEnum):
    """Jobs that arrived and have neither completed nor been rejected, tenant after tenant, oldest first."""

    TENANT = 0
    """Row of the tenant table."""
    JOB = enum.auto()
    """Job number of the tenant, from 0."""
    ARRIVED_US = enum.auto()
    """When the job arrived."""
    DEADLINE_US = enum.auto()
    """When it exceeds the tenant's SLO; ``inf`` without one, and behind the first token of an engine's request."""
    STARTED_US = enum.auto()
    """When its host took it up; ``inf`` before."""
    UNFINISHED = enum.auto()
    """Share of its operations on the device that have not ended, 0 to 1; of an engine's request those of its step."""
    REJECTABLE = enum.auto()
    """1 if ``Reject`` of it is legal now, where the scenario offers that. It is not where a job of its tenant was
    rejected at this instant and it arrived at the same one, so that a client that asks again at once cannot stop the
    clock; nor of a request that a serving engine runs."""


class DependencyColumn(enum.IntEnum):
    """What the launches of the pending table are known to wait for: one row a pair, in order of the launches."""

    LAUNCH = 0
    """Launch id in ``view.pending``."""
    WAITS_FOR = enum.auto()
    """Launch id of an unfinished operation (a kernel, graph or copy), ascending within a launch."""


class ViewTable:
    """A ``(rows, columns)`` float64 array whose columns read as attributes, in lower case."""

    __slots__ = ("_columns", "_rows", "array")

    def __init__(self, array: NDArray[np.float64], columns: type[enum.IntEnum]) -> None:
        self.array = array
        self._columns = columns
        self._rows: list[list[float]] | None = None

    @property
    def rows(self) -> list[list[float]]:
        """The rows as plain lists, which are read much faster one number at a time; not to be changed."""
        if self._rows is None:
            self._rows = self.array.tolist()
        return self._rows

    def __getattr__(self, name: str) -> NDArray[np.float64]:
        try:
            return self.array[:, self._columns[name.upper()]]
        except KeyError:
            names = ", ".join(c.name.lower() for c in self._columns)
            raise AttributeError(f"no column {name!r}; columns: {names}") from None

    def __len__(self) -> int:
        return len(self.array)

    def __reduce__(self) -> Any:
        return (ViewTable, (self.array, self._columns))

    def frozen(self) -> ViewTable:
        """A copy over ``bytes``, whose array nobody can write to."""
        return ViewTable(read_only_copy(self.array), self._columns)

    def to_frame(self) -> DataFrame:
        """A pandas frame with the columns' names.

        Raises:
            InputError: pandas is not installed.
        """
        return frame({column.name.lower(): self.array[:, column] for column in self._columns})

    def _shown(self) -> TextTable:
        title = f"{self._columns.__name__.removesuffix('Column')}: {counted(len(self), 'row')}"
        return of_columns(title, [column.name for column in self._columns], self.array)

    def __repr__(self) -> str:
        return str(self._shown())

    def _repr_html_(self) -> str:
        return self._shown()._repr_html_()


def no_cores() -> ViewTable:
    """The table where a scenario names no CPU cores."""
    return ViewTable(np.empty((0, len(CoreColumn))), CoreColumn)


@dataclass(frozen=True, repr=False)
class View:
    """A snapshot at one decision epoch; to be read before the next command is applied."""

    time_us: float
    """Simulated (or real) time since the reset."""
    pending: ViewTable
    """Columns :class:`PendingColumn`; at most the scenario's look-ahead for each tenant."""
    running: ViewTable
    """Launched, unfinished kernels and graphs; columns :class:`RunningColumn`."""
    tenants: ViewTable
    """Tenants; columns :class:`TenantColumn`."""
    jobs: ViewTable
    """Jobs; columns :class:`JobColumn`."""
    dependencies: ViewTable
    """Dependencies; columns :class:`DependencyColumn`."""
    sms: int
    """SMs of the GPU."""
    busy_sms: int
    """SMs with at least one resident block, as a driver counter would show."""
    occupancy: float
    """Resident threads over the GPU's maximum, 0 to 1."""
    dram: float
    """DRAM traffic over the nominal bandwidth, 0 to 1."""
    horizon_us: float
    """The episode ends here at the latest."""
    cores: ViewTable = field(default_factory=no_cores)
    """CPU cores; columns :class:`~gpusched_env.scheduling.cores.CoreColumn`."""

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(getattr(self, name))} {name}" for name in ("pending", "running", "tenants", "jobs"))
        return f"<View at {self.time_us:g} us: {sizes}, {self.busy_sms} of {self.sms} SMs busy>"

    def _repr_html_(self) -> str:
        tables = (self.pending, self.running, self.tenants, self.jobs, self.dependencies, self.cores)
        return f"<p>{escape(repr(self))}</p>" + "".join(table._repr_html_() for table in tables)

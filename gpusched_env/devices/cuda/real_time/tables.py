"""What compiled code that drives a GPU works on: tables of numbers, what it launches, and the functions of the driver
that it calls.

A kernel of ``synthetic.cu`` is launched as it is. Anything else is captured into a CUDA graph for each queue that it
may go into.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called
from gpusched_env.devices.compiled.intrinsics import call_c
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.devices.cuda.launching import Call
from gpusched_env.errors import GpuError
from gpusched_env.scenarios.program import HostOp

Ints = NDArray[np.int64]

LIBRARY: Final = "libcuda.so.1"
MONOTONIC: Final = 1
"""The number of ``CLOCK_MONOTONIC``, which ``time.perf_counter_ns`` reads on Linux."""
NS_PER_S: Final = 1_000_000_000
SUCCESS, NOT_READY = 0, 600
"""The values of ``CUDA_SUCCESS`` and ``CUDA_ERROR_NOT_READY``."""


class Function(enum.IntEnum):
    """Rows of the addresses that :func:`functions` gives."""

    LAUNCH_KERNEL = 0
    LAUNCH_GRAPH = 1
    RECORD_EVENT = 2
    WAIT_EVENT = 3
    QUERY_STREAM = 4
    CLOCK = 5


NAMES: Final = ("cuLaunchKernel", "cuGraphLaunch", "cuEventRecord", "cuStreamWaitEvent", "cuStreamQuery")


def functions() -> Ints:
    """Addresses, by :class:`Function`.

    Raises:
        GpuError: there is no driver, or an older one.
    """
    try:
        driver, library = ctypes.CDLL(LIBRARY), ctypes.CDLL(None)
        found = [getattr(driver, name) for name in NAMES] + [library.clock_gettime]
    except (OSError, AttributeError) as error:
        raise GpuError(f"the driver cannot be called: {error}") from error
    return np.array([ctypes.cast(each, ctypes.c_void_p).value for each in found], np.int64)


@called
def launch_kernel(functions, call, stream):
    """Call ``cuLaunchKernel``; ``call``: function, blocks, threads, bytes of shared memory, address of parameters."""
    shape = (call[1], 1, 1, call[2], 1, 1, call[3])
    return call_c(functions[Function.LAUNCH_KERNEL], (call[0], *shape, stream, call[4], 0))


@called
def launch_graph(functions, graph, stream):
    """Call ``cuGraphLaunch``."""
    return call_c(functions[Function.LAUNCH_GRAPH], (graph, stream))


@called
def record_event(functions, event, stream):
    """Call ``cuEventRecord``."""
    return call_c(functions[Function.RECORD_EVENT], (event, stream))


@called
def wait_event(functions, stream, event):
    """Call ``cuStreamWaitEvent``."""
    return call_c(functions[Function.WAIT_EVENT], (stream, event, 0))


@called
def query_stream(functions, stream):
    """Call ``cuStreamQuery``."""
    return call_c(functions[Function.QUERY_STREAM], (stream,))


@called
def host_ns(functions, timespec, address):
    """The host's clock, nanoseconds; ``timespec``: ``(2,)``, written, and its ``address``."""
    call_c(functions[Function.CLOCK], (MONOTONIC, address))
    return timespec[0] * NS_PER_S + timespec[1]


Floats = NDArray[np.float64]
Words = NDArray[np.uint64]

REPORT_WORDS: Final = 3
"""Words of 8 bytes of ``Report`` in ``synthetic.cu``: start and end in the GPU's time, and how many blocks ran."""
LOOK_S: Final = 1e-3
"""How often the driver is asked for errors while nothing happens."""
HANG_S: Final = 10.0
"""Seconds without a start or an end after which something on the GPU hangs."""
BY_PYTHON: Final = -1
"""What stands in place of a command's code where Python gave it."""
FAULT, HANGS, UNABLE, COMMANDED, GOES_ON = -1, -2, -3, -4, -5
"""Why :func:`~gpusched_env.devices.cuda.real_time.loop.drive` stopped, besides the reasons of
:mod:`~gpusched_env.devices.compiled.layout`: the driver says so, nothing happens any more, what was launched is on some
SMs only or there is too much of it, the scheduler has a command (or an error) of its own, or nothing at all: an
interrupt may wait to be heard."""
NO_ANSWER, STANDS, OWN = 0, 1, 2
"""Values of :attr:`Mail.ANSWER`: none yet; a decision that stands from now on; a command, or an error."""


class PieceColumn(enum.IntEnum):
    """Columns of the table of what operations launch."""

    FUNCTION = 0
    """Handle of the driver for a function; the first five columns are what
    :func:`~gpusched_env.devices.cuda.real_time.tables.launch_kernel` takes."""
    BLOCKS = 1
    THREADS = 2
    SHARED = 3
    PLACES = 4
    WORDS = 5
    """Address of a stand-in's parameters, of which some differ from launch to launch; 0: there are none."""
    GRAPH = 6
    """Row of the table of graphs; :data:`~gpusched_env.devices.compiled.layout.NONE`: it is a stand-in."""


class QueueColumn(enum.IntEnum):
    """Columns of the table of queues: a stream at a priority, a row each."""

    HANDLE = 0
    FIRST = 1
    """Report of its oldest launch that has not ended; :data:`NONE`: there is none."""
    LAST = 2
    STARTED = 3
    """1: the start of its oldest launch was told."""


class LoopCount(enum.IntEnum):
    """Numbers that :func:`~gpusched_env.devices.cuda.real_time.loop.drive` keeps from call to call."""

    REPORT = 0
    """The report that was given out last."""
    SEED = enum.auto()
    TOLD = enum.auto()
    """Rows of :attr:`Tables.told`, and which of them is the next to be heard."""
    NEXT_TOLD = enum.auto()
    NOW_PS = enum.auto()
    """When the rows of :attr:`Tables.told` were read."""
    INTERVAL_PS = enum.auto()
    UNTIL_PS = enum.auto()
    """End of the present interval."""
    DECIDING = enum.auto()
    """1 while a decision is being made."""
    ASKED_PS = enum.auto()
    """When the decision under way was asked for, or when the last one was begun."""
    DECISIONS = enum.auto()
    """Decisions that were made."""
    FREE_PS = enum.auto()
    """When the host was last done with a command, or had waited."""
    COMMANDS = enum.auto()
    """Commands that were given, waits too."""
    WAITS = enum.auto()
    NEWS_NS = enum.auto()
    """When something started or ended last."""
    LOOKED_NS = enum.auto()
    LISTEN_PS = enum.auto()
    """When Python is to hear of interrupts next."""
    STATUS = enum.auto()
    """What the driver said."""


class ReportColumn(enum.IntEnum):
    """Columns of the table of reports."""

    SLOT = 0
    """Slot of the launch that has the report."""
    NEXT = 1
    """The report of the next launch in its queue; :data:`NONE`: there is none yet."""
    RECORDED = 2
    """1: its event is recorded behind the launch."""


class Mail(enum.IntEnum):
    """Numbers by which the thread that decides and the one that drives tell each other; each is written by one of them
    at a time, the first two last."""

    QUESTION = 0
    """1: a view is there to be decided on; the thread that decides makes it 0."""
    ANSWER = 1
    """:data:`STANDS`, :data:`OWN` or :data:`NO_ANSWER`; the thread that drives makes it that."""
    TENANT = 2
    """The fields of a decision that stands from now on, a :class:`~gpusched_env.planning.interval.Serve`."""
    OTHERS = 3


class AddressRow(enum.IntEnum):
    """Addresses, and how the clocks differ."""

    TIMESPEC = 0
    REPORTS = 1
    COUNTERS = 2
    """Counters on the GPU, of 4 bytes a report, 0 between two launches."""
    ZERO_NS = 3
    AHEAD_NS = 4


class Tables(NamedTuple):
    """What :func:`~gpusched_env.devices.cuda.real_time.loop.drive` works on."""

    functions: Ints
    """Addresses of functions, by :func:`gpusched_env.devices.cuda.real_time.tables.functions`."""
    places: Ints
    """Addresses, and how the clocks differ, ``(len(AddressRow),)``."""
    timespec: Ints
    """A time that the C library writes, ``(2,)``."""
    pieces: Ints
    """What operations launch, ``(operations, len(PieceColumn))``, by row of the arena's table of operations."""
    graphs: Ints
    """Handles of graphs, ``(graphs, priorities)``, for the streams of the operations."""
    mark: Ints
    """A row of :attr:`pieces`, the kernel that notes the time before and behind a graph."""
    queues: Ints
    """Queues, ``(streams * priorities, len(QueueColumn))``; of a stream priority 0 first, then more urgent ones."""
    reports: Words
    """Reports, ``(reports * REPORT_WORDS,)``, in memory that the GPU writes."""
    events: Ints
    """Handles of events, ``(reports,)``."""
    owners: Ints
    """Owners of reports, ``(reports, len(ReportColumn))``."""
    given: Ints
    """The report of each launch, ``(slots or more,)``, by slot."""
    told: Ints
    """What was told, ``(rows, 4)``, as :func:`gpusched_env.devices.compiled.entry.report` takes it."""
    decided_ps: Ints
    """How long each decision took, ``(decisions,)``, from the question to when it stood; the first ones, as far as
    there is room."""
    took: Ints
    """How long each command took, picoseconds, and its code, or :data:`BY_PYTHON`, ``(commands, 2)``; the first ones,
    as far as there is room."""
    counts: Ints
    """Numbers that are kept from call to call, ``(len(LoopCount),)``."""


class Seen(NamedTuple):
    """What a decision is made on: tables of a View, with room."""

    pending: Floats
    running: Floats
    tenants: Floats
    jobs: Floats
    dependencies: Floats
    rows: Ints
    """Number of rows of each table, ``(len(SeenTable),)``."""
    numbers: Floats
    """Numbers of a View, ``(len(SeenNumber),)``."""


class SeenTable(enum.IntEnum):
    """Tables of a View with a varying number of rows."""

    PENDING = 0
    RUNNING = 1
    JOBS = 2
    DEPENDENCIES = 3


class SeenNumber(enum.IntEnum):
    """Fields of a View."""

    TIME_US = 0
    BUSY_SMS = 1
    OCCUPANCY = 2
    DRAM = 3


ROWS: Final = 1024
"""Most reports that are heard at once."""
LAUNCHES: Final = 1 << 14
"""Most unfinished launches, of all tenants."""
COMMANDS: Final = 1 << 20
DECISIONS: Final = 1 << 16
"""Most decisions whose times are kept."""


class Maker(Protocol):
    """What CuPy makes of operations."""

    def kernel(self, op: HostOp) -> Call | None:
        """A stand-in that reports itself; ``None``: it is something else."""

    def graph(self, op: HostOp, priority: int) -> int:
        """The handle of a graph of what is no such stand-in, for the operation's stream at a priority."""


def piece_of(call: Call) -> list[int]:
    """A row of the table of pieces."""
    words = int(call.words.ctypes.data)
    return [call.function, call.blocks, call.threads, call.shared_bytes, call.at, words, NONE]


def pieces_of(
    operations: Sequence[HostOp | None], offered: Sequence[Collection[int]], priorities: int, maker: Maker
) -> tuple[Ints, Ints]:
    """The tables of pieces and of graphs.

    Args:
        operations: rows of the arena's table; ``None``: none that a host launches.
        offered: by stream the priorities that something in it can have.
        priorities: of the GPU, 0 and so many less one below.
        maker: makes what each launches.
    """
    pieces = np.full((len(operations), len(PieceColumn)), NONE, np.int64)
    graphs: list[list[int]] = []
    known: dict[tuple[Any, ...], int] = {}
    for row, op in enumerate(operations):
        if op is None or op.launches == 0:
            continue
        call = maker.kernel(op)
        if call is not None:
            pieces[row] = piece_of(call)
            continue
        # Kernels of a library occur many times, each occurrence an operation of its own.
        key = (id(op),) if op.nodes else (op.stream, op.kind, op.identity, op.scale, op.bytes)
        if key not in known:
            known[key] = len(graphs)
            offers = offered[op.stream]
            graphs.append([maker.graph(op, -level) if -level in offers else NONE for level in range(priorities)])
        pieces[row, PieceColumn.GRAPH] = known[key]
    return pieces, np.array(graphs, np.int64).reshape(-1, priorities)


def tables(
    pieces: Ints, graphs: Ints, mark: Call, queues: Sequence[int], events: Sequence[int], places: dict[AddressRow, int],
    reports: Words,
) -> Tables:  # fmt: skip
    """All that is needed at the start of an episode: nothing is on the GPU.

    Args:
        pieces, graphs: of :func:`pieces_of`.
        mark: the kernel that notes the time.
        queues: handles.
        events: handles, one a report.
        places: those of memory.
        reports: memory that the GPU writes.
    """
    timespec = np.zeros(2, np.int64)
    rows = np.full((len(queues), len(QueueColumn)), NONE, np.int64)
    rows[:, QueueColumn.HANDLE], rows[:, QueueColumn.STARTED] = queues, 0
    known = {AddressRow.TIMESPEC: int(timespec.ctypes.data), AddressRow.ZERO_NS: 0, AddressRow.AHEAD_NS: 0, **places}
    return Tables(
        functions=functions(),
        places=np.array([known[place] for place in AddressRow], np.int64),
        timespec=timespec,
        pieces=pieces,
        graphs=graphs,
        mark=np.array(piece_of(mark), np.int64),
        queues=rows,
        reports=reports,
        events=np.array(events, np.int64),
        owners=np.full((len(events), len(ReportColumn)), NONE, np.int64),
        given=np.zeros(LAUNCHES, np.int64),
        told=np.zeros((ROWS, 4), np.int64),
        decided_ps=np.zeros(DECISIONS, np.int64),
        took=np.zeros((COMMANDS, 2), np.int64),
        counts=np.zeros(len(LoopCount), np.int64),
    )

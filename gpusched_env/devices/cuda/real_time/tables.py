"""What compiled code that drives a GPU works on (:mod:`~gpusched_env.devices.cuda.real_time.loop`): tables of numbers,
and what their columns are."""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

REPORT_WORDS: Final = 3
"""Of 8 bytes, of ``Report`` in ``synthetic.cu``: start and end in the GPU's time, and how many blocks ran."""
LOOK_S: Final = 1e-3
"""How often the driver is asked for errors while nothing happens."""
HANG_S: Final = 10.0
"""Nothing has started or ended for so long: something on the GPU hangs."""
BY_PYTHON: Final = -1
"""In place of a command's code: Python gave it."""
FAULT, HANGS, UNABLE, COMMANDED, GOES_ON = -1, -2, -3, -4, -5
"""Why :func:`~gpusched_env.devices.cuda.real_time.loop.drive` stopped, besides the reasons of
:mod:`~gpusched_env.devices.compiled.layout`: the driver says so, nothing happens any more, what was launched is on some
SMs only or there is too much of it, the scheduler has a command (or an error) of its own, or nothing at all: an
interrupt may wait to be heard."""
NO_ANSWER, STANDS, OWN = 0, 1, 2
"""Of :attr:`Mail.ANSWER`: none yet; a decision that stands from now on; a command, or an error."""


class Piece(enum.IntEnum):
    """Columns of the table of what operations launch."""

    FUNCTION = 0
    """Of the driver; the first five columns are what
    :func:`~gpusched_env.devices.cuda.real_time.driver.launch_kernel` takes."""
    BLOCKS = 1
    THREADS = 2
    SHARED = 3
    PLACES = 4
    WORDS = 5
    """Address of a stand-in's parameters, of which some differ from launch to launch; 0: there are none."""
    GRAPH = 6
    """Row of the table of graphs; :data:`~gpusched_env.devices.compiled.layout.NONE`: it is a stand-in."""


class Queue(enum.IntEnum):
    """Columns of the table of queues: a stream at a priority, a row each."""

    HANDLE = 0
    FIRST = 1
    """Report of its oldest launch that has not ended; :data:`NONE`: there is none."""
    LAST = 2
    STARTED = 3
    """1: the start of the oldest one was told."""


class Count(enum.IntEnum):
    """Numbers that :func:`~gpusched_env.devices.cuda.real_time.loop.drive` keeps from call to call."""

    REPORT = 0
    """That was given out last."""
    SEED = enum.auto()
    TOLD = enum.auto()
    """Rows of :attr:`Tables.told`, and the next to be heard."""
    NEXT_TOLD = enum.auto()
    NOW_PS = enum.auto()
    """When they were read."""
    INTERVAL_PS = enum.auto()
    UNTIL_PS = enum.auto()
    """End of the present interval."""
    DECIDING = enum.auto()
    """1: a decision is being made."""
    ASKED_PS = enum.auto()
    """Since when, or when the last one was begun."""
    DECISIONS = enum.auto()
    """That were made."""
    FREE_PS = enum.auto()
    """When the host was last done with a command, or had waited."""
    COMMANDS = enum.auto()
    """That were given, waits too."""
    WAITS = enum.auto()
    NEWS_NS = enum.auto()
    """When something started or ended last."""
    LOOKED_NS = enum.auto()
    LISTEN_PS = enum.auto()
    """When Python is to hear of interrupts next."""
    STATUS = enum.auto()
    """What the driver said."""


class Owner(enum.IntEnum):
    """Columns of the table of reports."""

    SLOT = 0
    """Of the launch that has it."""
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
    """Of a decision that stands from now on, a :class:`~gpusched_env.planning.interval.Serve`."""
    OTHERS = 3


class Place(enum.IntEnum):
    """Addresses, and how the clocks differ."""

    TIMESPEC = 0
    REPORTS = 1
    COUNTERS = 2
    """On the GPU, of 4 bytes a report, 0 between two launches."""
    ZERO_NS = 3
    AHEAD_NS = 4


class Tables(NamedTuple):
    """What :func:`~gpusched_env.devices.cuda.real_time.loop.drive` works on."""

    functions: Ints
    """Of :func:`gpusched_env.devices.cuda.real_time.driver.functions`."""
    places: Ints
    """``(len(Place),)``."""
    timespec: Ints
    """``(2,)``, written by the C library."""
    pieces: Ints
    """``(operations, len(Piece))``, by row of the arena's table of operations."""
    graphs: Ints
    """``(graphs, priorities)``: handles, for the streams of the operations."""
    mark: Ints
    """A row of :attr:`pieces`, the kernel that notes the time before and behind a graph."""
    queues: Ints
    """``(streams * priorities, len(Queue))``; the priority 0 of a stream first, then the more urgent ones."""
    reports: Words
    """``(reports * REPORT_WORDS,)``, in memory that the GPU writes."""
    events: Ints
    """``(reports,)``: handles."""
    owners: Ints
    """``(reports, len(Owner))``: who has each."""
    given: Ints
    """``(slots or more,)``: the report of each launch, by slot."""
    told: Ints
    """``(rows, 4)``, as :func:`gpusched_env.devices.compiled.entry.report` takes them."""
    decided_ps: Ints
    """``(decisions,)``: how long each took, from the question to when it stood; the first ones, as far as there is
    room."""
    took: Ints
    """``(commands, 2)``: how long each took, picoseconds, and its code, or :data:`BY_PYTHON`; the first ones, as far as
    there is room."""
    counts: Ints
    """``(len(Count),)``."""


class Seen(NamedTuple):
    """What a decision is made on: tables of a View, with room."""

    pending: Floats
    running: Floats
    tenants: Floats
    jobs: Floats
    dependencies: Floats
    rows: Ints
    """``(len(Table),)``: how many rows each has."""
    numbers: Floats
    """``(len(Figure),)``."""


class Table(enum.IntEnum):
    """Of those with a varying number of rows."""

    PENDING = 0
    RUNNING = 1
    JOBS = 2
    DEPENDENCIES = 3


class Figure(enum.IntEnum):
    """Fields of a View."""

    TIME_US = 0
    BUSY_SMS = 1
    OCCUPANCY = 2
    DRAM = 3

"""A GPU driven in compiled code, between two decisions for an interval: hear what it reports, let tenants' hosts issue,
dispatch by the decision that stands, launch. No Python is in between, so that tenants need not live in slow motion.

What a launch needs of CuPy stands in tables beforehand (:mod:`gpusched_env.devices.cuda.work_tables`).
"""

from __future__ import annotations

import enum
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached, called
from gpusched_env.devices.compiled.access import clients, edges, env_at, launches, ops, outbox, problem
from gpusched_env.devices.compiled.entry import report
from gpusched_env.devices.compiled.interval import put_next_command, stand
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.layout import DEADLOCK, DECIDE, IDLE, NONE, NUMBER
from gpusched_env.devices.compiled.listing import list_dependencies, list_jobs, list_pending, list_running
from gpusched_env.devices.compiled.memory import records
from gpusched_env.devices.compiled.slots import holds
from gpusched_env.devices.compiled.views import fill_tenants, occupancy
from gpusched_env.devices.cuda.driver import (
    host_ns,
    launch_graph,
    launch_kernel,
    query_stream,
    record_event,
    wait_event,
)
from gpusched_env.devices.cuda.launching import BLOCKS, ENDED, RECALL, REPORT, SEED
from gpusched_env.hardware.clock import NEVER, to_us
from gpusched_env.scheduling.commands import WAITING

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

word = records(NUMBER)
"""A word of 8 bytes at an address."""

REPORT_WORDS: Final = 3
"""``Report`` in ``synthetic.cu``: start and end in the GPU's time, and how many blocks ran."""
PS_PER_NS: Final = 1000
SUCCESS, NOT_READY = 0, 600
"""``CUDA_SUCCESS`` and ``CUDA_ERROR_NOT_READY``."""
LOOK_NS: Final = 1_000_000
"""How often the driver is asked for errors while nothing happens."""
HANG_NS: Final = 10_000_000_000
"""Nothing has started or ended for so long: something on the GPU hangs."""
BY_PYTHON: Final = -1
"""In place of a command's code: Python gave it."""
FAULT, HANGS, UNABLE, COMMANDED = -1, -2, -3, -4
"""Why :func:`drive` stopped, besides the reasons of :mod:`~gpusched_env.devices.compiled.layout`: the driver says so,
nothing happens any more, what was launched is on some SMs only or there is too much of it, or the scheduler has a
command (or an error) of its own."""
NO_ANSWER, STANDS, OWN = 0, 1, 2


class Piece(enum.IntEnum):
    """Columns of the table of what operations launch."""

    FUNCTION = 0
    """Of the driver; the first five are what :func:`~gpusched_env.devices.cuda.driver.launch_kernel` takes."""
    BLOCKS = 1
    THREADS = 2
    SHARED = 3
    PLACES = 4
    WORDS = 5
    """Address of a stand-in's parameters, of which some differ from launch to launch; 0: there are none."""
    GRAPH = 6
    """Row of the table of graphs; :data:`NONE`: it is a stand-in."""


class Queue(enum.IntEnum):
    """Columns of the table of queues: a stream at a priority, a row each."""

    HANDLE = 0
    FIRST = 1
    """Report of its oldest launch that has not ended; :data:`NONE`: there is none."""
    LAST = 2
    STARTED = 3
    """1: the start of the oldest one was told."""


class Count(enum.IntEnum):
    """Numbers that :func:`drive` keeps from call to call."""

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
    """What :func:`drive` works on."""

    functions: Ints
    """Of :func:`gpusched_env.devices.cuda.driver.functions`."""
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


@cached(nogil=True)
def drive(address, drive_at, gpu, mail, seen, standing, outlook, lookahead, scratch):
    """Drive the GPU by the decision that stands, and ask for the next when its interval is over.

    Another thread answers meanwhile. Until it does, the decision before stands.

    Args:
        address, drive_at: as for :func:`gpusched_env.devices.compiled.entry.report`.
        gpu: :class:`Tables`.
        mail: ``(len(Mail),)``.
        seen: :class:`Seen`.
        standing, outlook, lookahead, scratch: as for
            :func:`~gpusched_env.devices.compiled.interval.put_next_command`.

    Returns:
        why it stopped: ``OVER``, ``DEADLOCK``, for something that Python serves (then call again), or :data:`FAULT`,
        :data:`HANGS`, :data:`UNABLE`, :data:`COMMANDED`.
    """
    w, counts = env_at(address, 0), gpu.counts
    while True:
        if mail[Mail.ANSWER] != NO_ANSWER:
            if mail[Mail.ANSWER] == OWN:
                return COMMANDED
            take_answer(w, gpu, mail, standing)
        if counts[Count.NEXT_TOLD] >= counts[Count.TOLD]:
            # In this order: what is reported later has happened later. A report may be a little ahead.
            now_ps = host_ps(gpu)
            rows = poll(gpu)
            counts[Count.TOLD], counts[Count.NEXT_TOLD] = rows, 0
            counts[Count.NOW_PS] = max(now_ps, gpu.told[rows - 1, 0]) if rows > 0 else now_ps
        told = gpu.told[: counts[Count.TOLD]]
        counts[Count.NEXT_TOLD], reason = report(address, drive_at, told, counts[Count.NEXT_TOLD], counts[Count.NOW_PS])
        problems = send(w, gpu)
        if problems == 0 and reason == IDLE:
            problems = rest(w, gpu)
        if problems != 0:
            return problems
        if reason == DECIDE:
            if w.now_ps >= counts[Count.UNTIL_PS] and not counts[Count.DECIDING] and not ask(w, gpu, mail, seen):
                return UNABLE
            until_ps = NEVER if counts[Count.DECIDING] else counts[Count.UNTIL_PS]
            put_next_command(w, standing, outlook, lookahead, scratch, until_ps)
            counts[Count.WAITS] += w.command == WAITING
            code = w.command
            call(drive_at, address, 0)
            problems = send(w, gpu)
            if problems != 0:
                return problems
            note_command(gpu, code)
        elif reason != IDLE:
            return reason


@called
def ask(w, gpu, mail, seen):
    """Show the present to the thread that decides; whether there is room."""
    counts, rows = gpu.counts, seen.rows
    launched = 0
    for tenant in range(problem(w).tenants):
        launched += clients(w, tenant).kernels_launched
    if launched > seen.running.shape[0]:
        return False
    rows[Table.PENDING] = list_pending(w, problem(w).lookahead, seen.pending)
    list_running(w, seen.running)
    rows[Table.RUNNING] = launched
    fill_tenants(w, seen.tenants)
    rows[Table.JOBS] = min(list_jobs(w, seen.jobs), seen.jobs.shape[0])
    pairs = list_dependencies(w, problem(w).lookahead, seen.dependencies)
    rows[Table.DEPENDENCIES] = min(pairs, seen.dependencies.shape[0])
    seen.numbers[Figure.TIME_US] = to_us(w.now_ps)
    seen.numbers[Figure.BUSY_SMS] = w.busy_sms
    seen.numbers[Figure.OCCUPANCY] = occupancy(w)
    seen.numbers[Figure.DRAM] = w.traffic / problem(w).nominal_bytes_per_us
    counts[Count.DECIDING], counts[Count.ASKED_PS] = 1, w.now_ps
    mail[Mail.QUESTION] = 1
    return True


@called
def take_answer(w, gpu, mail, standing):
    """Let the decision that was made stand, from now on to the end of an interval since it was asked for."""
    counts = gpu.counts
    stand(standing, mail[Mail.TENANT], mail[Mail.OTHERS])
    mail[Mail.ANSWER] = NO_ANSWER
    counts[Count.DECIDING] = 0
    counts[Count.UNTIL_PS] = counts[Count.ASKED_PS] + counts[Count.INTERVAL_PS]
    if counts[Count.DECISIONS] < gpu.decided_ps.size:
        gpu.decided_ps[counts[Count.DECISIONS]] = host_ps(gpu) - counts[Count.ASKED_PS]
    counts[Count.DECISIONS] += 1
    # Whoever waits for it need not wait any more.
    w.timer_ps = w.now_ps


@called
def host_ps(gpu):
    """The real time since the start, picoseconds."""
    since_ns = host_ns(gpu.functions, gpu.timespec, gpu.places[Place.TIMESPEC]) - gpu.places[Place.ZERO_NS]
    return since_ns * PS_PER_NS


@cached(nogil=True)
def note_own_command(gpu):
    """A command that Python gave was carried out."""
    note_command(gpu, BY_PYTHON)


@called
def note_command(gpu, code):
    """A command with a code was carried out."""
    counts, now_ps = gpu.counts, host_ps(gpu)
    row = counts[Count.COMMANDS]
    if row < gpu.took.shape[0]:
        gpu.took[row, 0], gpu.took[row, 1] = now_ps - counts[Count.FREE_PS], code
    counts[Count.COMMANDS] += 1
    counts[Count.FREE_PS] = now_ps


@called
def rest(w, gpu):
    """Nothing is to be done now; 0, or what is wrong."""
    counts, now_ps = gpu.counts, host_ps(gpu)
    counts[Count.FREE_PS] = now_ps
    now_ns = now_ps // PS_PER_NS
    busy = False
    for queue in range(gpu.queues.shape[0]):
        busy |= gpu.queues[queue, Queue.FIRST] != NONE
    if not busy or counts[Count.TOLD] > 0:
        counts[Count.NEWS_NS] = now_ns
    if not busy:
        return DEADLOCK if w.due_ps == NEVER else 0
    if now_ns - max(counts[Count.NEWS_NS], counts[Count.LOOKED_NS]) < LOOK_NS:
        return 0
    counts[Count.LOOKED_NS] = now_ns
    for queue in range(gpu.queues.shape[0]):
        if gpu.queues[queue, Queue.FIRST] != NONE:
            status = query_stream(gpu.functions, gpu.queues[queue, Queue.HANDLE])
            if status not in (SUCCESS, NOT_READY):
                counts[Count.STATUS] = status
                return FAULT
    return HANGS if now_ns - counts[Count.NEWS_NS] > HANG_NS else 0


# ---- what happens ----------------------------------------------------------------------------------------------------


@called
def poll(gpu):
    """Write what has started and ended since the last call, in order of time; returns the number of rows."""
    rows = 0
    for number in range(gpu.queues.shape[0]):
        queue = gpu.queues[number]
        while queue[Queue.FIRST] != NONE and rows + 2 <= gpu.told.shape[0]:
            first = queue[Queue.FIRST]
            # In this order: who sees the end sees the start.
            ended = gpu.reports[REPORT_WORDS * first + 1]
            started = gpu.reports[REPORT_WORDS * first]
            if started == 0:
                break
            if queue[Queue.STARTED] == 0:
                queue[Queue.STARTED] = 1
                rows = tell(gpu, rows, started, first, 0)
            if ended == 0:
                break
            rows = tell(gpu, rows, max(started, ended), first, 1)
            queue[Queue.FIRST], queue[Queue.STARTED] = gpu.owners[first, Owner.NEXT], 0
    return rows


@called
def tell(gpu, rows, gpu_ns, number, ended):
    """Add a row behind those that are not later; returns the number of rows."""
    at_ps = max(0, np.int64(gpu_ns) - gpu.places[Place.AHEAD_NS] - gpu.places[Place.ZERO_NS]) * PS_PER_NS
    place = rows
    while place > 0 and gpu.told[place - 1, 0] > at_ps:
        for column in range(gpu.told.shape[1]):
            gpu.told[place, column] = gpu.told[place - 1, column]
        place -= 1
    row = gpu.told[place]
    row[0], row[1], row[2], row[3] = at_ps, gpu.owners[number, Owner.SLOT], ended, 0
    return rows + 1


# ---- launching -------------------------------------------------------------------------------------------------------


@called
def send(w, gpu):
    """Hand over what was launched; 0, or what is wrong."""
    for place in range(w.sent):
        slot = outbox(w, place).value
        if slot < 0 or slot >= gpu.given.size or launches(w, slot).partition_sms < problem(w).sms:
            return UNABLE
        status = submit(w, gpu, slot)
        if status != SUCCESS:
            gpu.counts[Count.STATUS] = status
            return FAULT
    w.sent = 0
    return 0


@called
def queue_of(w, launch):
    """The row of a launch's queue."""
    return launch.stream * problem(w).priorities - launch.priority


@called
def submit(w, gpu, slot):
    """Hand a launch to its queue; returns the driver's status."""
    launch, counts = launches(w, slot), gpu.counts
    number = queue_of(w, launch)
    queue = gpu.queues[number]
    stream = queue[Queue.HANDLE]
    status = wait_for_others(w, gpu, launch, number)
    mine = counts[Count.REPORT] = (counts[Count.REPORT] + 1) % gpu.events.size
    for place in range(REPORT_WORDS):
        gpu.reports[REPORT_WORDS * mine + place] = 0
    report_at = gpu.places[Place.REPORTS] + 8 * REPORT_WORDS * mine
    piece = gpu.pieces[launch.op]
    if piece[Piece.GRAPH] == NONE:
        counts[Count.SEED] += 1
        words = piece[Piece.WORDS]
        word(words, SEED).value = counts[Count.SEED]
        word(words, ENDED).value = gpu.places[Place.COUNTERS] + 4 * mine
        word(words, REPORT).value = report_at
        word(words, BLOCKS).value = word(words, RECALL).value = 0
        status |= launch_kernel(gpu.functions, piece, stream)
    else:
        status |= mark(gpu, report_at, stream)
        status |= launch_graph(gpu.functions, gpu.graphs[piece[Piece.GRAPH], -launch.priority], stream)
        status |= mark(gpu, report_at + 8, stream)
    gpu.given[slot] = mine
    owner = gpu.owners[mine]
    owner[Owner.SLOT], owner[Owner.NEXT], owner[Owner.RECORDED] = slot, NONE, 0
    if ops(w, launch.op).mark >= 0:
        # What waits for it must not wait for those behind it.
        status |= record(gpu, mine, stream)
    if queue[Queue.FIRST] == NONE:
        queue[Queue.FIRST] = mine
    else:
        gpu.owners[queue[Queue.LAST], Owner.NEXT] = mine
    queue[Queue.LAST] = mine
    return status


@called
def mark(gpu, report_at, stream):
    """Note the GPU's time in a stream."""
    word(gpu.mark[Piece.WORDS], 0).value = report_at
    return launch_kernel(gpu.functions, gpu.mark, stream)


@called
def wait_for_others(w, gpu, launch, number):
    """Let a queue wait for unfinished launches of other queues that a launch waits for."""
    status = 0
    if launch.previous != NONE:
        status |= wait_for(w, gpu, launch.previous, number)
    edge_number = launch.edges_in
    while edge_number != NONE:
        edge = edges(w, edge_number)
        if holds(w, edge.source, edge.source_id):
            status |= wait_for(w, gpu, edge.source, number)
        edge_number = edge.next_in
    return status


@called
def wait_for(w, gpu, slot, number):
    """Let a queue wait for a launch, if that is in another one.

    Most launches are waited for by nobody in another queue, so that their events are recorded when somebody is: behind
    a launch whose stream goes on in another queue nothing else is in its own.
    """
    other = queue_of(w, launches(w, slot))
    if other == number:
        return SUCCESS
    theirs = gpu.given[slot]
    status = SUCCESS
    if gpu.owners[theirs, Owner.RECORDED] == 0:
        status |= record(gpu, theirs, gpu.queues[other, Queue.HANDLE])
    return status | wait_event(gpu.functions, gpu.queues[number, Queue.HANDLE], gpu.events[theirs])


@called
def record(gpu, number, stream):
    """Record the event of a report."""
    gpu.owners[number, Owner.RECORDED] = 1
    return record_event(gpu.functions, gpu.events[number], stream)

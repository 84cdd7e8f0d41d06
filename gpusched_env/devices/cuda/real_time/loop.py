"""A GPU driven in compiled code: hear what it reports, let hosts issue, dispatch by the decision that stands, launch.

Another thread decides meanwhile, so that nothing that Python does keeps a launch waiting.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gpusched_env.compiling import called, native
from gpusched_env.devices.compiled.access import clients, edges, env_at, given, launches, ops, outbox, problem
from gpusched_env.devices.compiled.entry import report
from gpusched_env.devices.compiled.interval import put_next_command, set_decision
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.layout import DEADLOCK, DECIDE, IDLE, NONE, NUMBER
from gpusched_env.devices.compiled.listing import list_dependencies, list_pending, list_running
from gpusched_env.devices.compiled.memory import records
from gpusched_env.devices.compiled.slots import holds
from gpusched_env.devices.compiled.views import occupancy
from gpusched_env.devices.cuda.launching import BLOCKS, ENDED, RECALL, REPORT, SEED
from gpusched_env.devices.cuda.real_time.tables import (
    BY_PYTHON,
    COMMANDED,
    FAULT,
    GOES_ON,
    HANG_S,
    HANGS,
    LOOK_S,
    NO_ANSWER,
    NOT_READY,
    OWN,
    REPORT_WORDS,
    SUCCESS,
    UNABLE,
    AddressRow,
    LoopCount,
    Mail,
    PieceColumn,
    QueueColumn,
    ReportColumn,
    SeenNumber,
    SeenTable,
    host_ns,
    launch_graph,
    launch_kernel,
    query_stream,
    record_event,
    wait_event,
)
from gpusched_env.devices.rules.rows import fill_tenants, list_jobs
from gpusched_env.hardware.clock import NEVER, to_us
from gpusched_env.scheduling.commands import WAITING

word = records(NUMBER)
"""A word of 8 bytes at an address."""


@called
def send(w, gpu):
    """Hand over what was launched; 0, or what is wrong."""
    for place in range(w.sent):
        slot = outbox(w, place).value
        if slot < 0 or slot >= gpu.given.size or launches(w, slot).partition_sms < problem(w).sms:
            return UNABLE
        status = submit(w, gpu, slot)
        if status != SUCCESS:
            gpu.counts[LoopCount.STATUS] = status
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
    stream = queue[QueueColumn.HANDLE]
    status = wait_for_others(w, gpu, launch, number)
    mine = counts[LoopCount.REPORT] = (counts[LoopCount.REPORT] + 1) % gpu.events.size
    for place in range(REPORT_WORDS):
        gpu.reports[REPORT_WORDS * mine + place] = 0
    report_at = gpu.places[AddressRow.REPORTS] + 8 * REPORT_WORDS * mine
    piece = gpu.pieces[launch.op]
    if piece[PieceColumn.GRAPH] == NONE:
        counts[LoopCount.SEED] += 1
        words = piece[PieceColumn.WORDS]
        word(words, SEED).value = counts[LoopCount.SEED]
        word(words, ENDED).value = gpu.places[AddressRow.COUNTERS] + 4 * mine
        word(words, REPORT).value = report_at
        word(words, BLOCKS).value = word(words, RECALL).value = 0
        status |= launch_kernel(gpu.functions, piece, stream)
    else:
        status |= mark(gpu, report_at, stream)
        status |= launch_graph(gpu.functions, gpu.graphs[piece[PieceColumn.GRAPH], -launch.priority], stream)
        status |= mark(gpu, report_at + 8, stream)
    gpu.given[slot] = mine
    owner = gpu.owners[mine]
    owner[ReportColumn.SLOT], owner[ReportColumn.NEXT], owner[ReportColumn.RECORDED] = slot, NONE, 0
    if ops(w, launch.op).mark >= 0:
        # What waits for it must not wait for those behind it.
        status |= record(gpu, mine, stream)
    if queue[QueueColumn.FIRST] == NONE:
        queue[QueueColumn.FIRST] = mine
    else:
        gpu.owners[queue[QueueColumn.LAST], ReportColumn.NEXT] = mine
    queue[QueueColumn.LAST] = mine
    return status


@called
def mark(gpu, report_at, stream):
    """Note the GPU's time in a stream."""
    word(gpu.mark[PieceColumn.WORDS], 0).value = report_at
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
    if gpu.owners[theirs, ReportColumn.RECORDED] == 0:
        status |= record(gpu, theirs, gpu.queues[other, QueueColumn.HANDLE])
    return status | wait_event(gpu.functions, gpu.queues[number, QueueColumn.HANDLE], gpu.events[theirs])


@called
def record(gpu, number, stream):
    """Record the event of a report."""
    gpu.owners[number, ReportColumn.RECORDED] = 1
    return record_event(gpu.functions, gpu.events[number], stream)


PS_PER_NS: Final = 1000
LOOK_NS: Final = round(LOOK_S * 1e9)
HANG_NS: Final = round(HANG_S * 1e9)
LISTEN_PS: Final = 500_000_000_000
"""How often Python hears of interrupts: half a second."""


@native()
def drive(address, drive_at, gpu, mail, seen, standing, outlook, lookahead, scratch):
    """Drive the GPU by the decision that stands, and ask for the next when its interval is over.

    Another thread answers meanwhile. Until it does, the decision before stands.

    Args:
        address, drive_at: as for :func:`gpusched_env.devices.compiled.entry.report`.
        gpu: :class:`~gpusched_env.devices.cuda.real_time.tables.Tables`.
        mail: ``(len(Mail),)``.
        seen: :class:`~gpusched_env.devices.cuda.real_time.tables.Seen`.
        standing, outlook, lookahead, scratch: as for
            :func:`~gpusched_env.devices.compiled.interval.put_next_command`.

    Returns:
        why it stopped: ``OVER``, ``DEADLOCK``, for something that Python serves (then call again), or :data:`FAULT`,
        :data:`HANGS`, :data:`UNABLE`, :data:`COMMANDED`, :data:`GOES_ON`.
    """
    w, counts = env_at(address, 0), gpu.counts
    while True:
        if mail[Mail.ANSWER] != NO_ANSWER:
            if mail[Mail.ANSWER] == OWN:
                return COMMANDED
            take_answer(w, gpu, mail, standing)
        if counts[LoopCount.NEXT_TOLD] >= counts[LoopCount.TOLD]:
            # In this order: what is reported later has happened later. A report may be a little ahead.
            now_ps = host_ps(gpu)
            if now_ps >= counts[LoopCount.LISTEN_PS]:
                counts[LoopCount.LISTEN_PS] = now_ps + LISTEN_PS
                return GOES_ON
            rows = poll(gpu)
            counts[LoopCount.TOLD], counts[LoopCount.NEXT_TOLD] = rows, 0
            counts[LoopCount.NOW_PS] = max(now_ps, gpu.told[rows - 1, 0]) if rows > 0 else now_ps
        told = gpu.told[: counts[LoopCount.TOLD]]
        counts[LoopCount.NEXT_TOLD], reason = report(
            address, drive_at, told, counts[LoopCount.NEXT_TOLD], counts[LoopCount.NOW_PS]
        )
        problems = send(w, gpu)
        if problems == 0 and reason == IDLE:
            problems = rest(w, gpu)
        if problems != 0:
            return problems
        if reason == DECIDE:
            if (
                w.now_ps >= counts[LoopCount.UNTIL_PS]
                and not counts[LoopCount.DECIDING]
                and not ask(w, gpu, mail, seen)
            ):
                return UNABLE
            until_ps = NEVER if counts[LoopCount.DECIDING] else counts[LoopCount.UNTIL_PS]
            put_next_command(w, standing, outlook, lookahead, scratch, until_ps)
            code = given(w).code
            counts[LoopCount.WAITS] += code == WAITING
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
    rows[SeenTable.PENDING] = list_pending(w, problem(w).lookahead, seen.pending)
    list_running(w, seen.running)
    rows[SeenTable.RUNNING] = launched
    fill_tenants(w, seen.tenants)
    rows[SeenTable.JOBS] = min(list_jobs(w, seen.jobs), seen.jobs.shape[0])
    pairs = list_dependencies(w, problem(w).lookahead, seen.dependencies)
    rows[SeenTable.DEPENDENCIES] = min(pairs, seen.dependencies.shape[0])
    seen.numbers[SeenNumber.TIME_US] = to_us(w.now_ps)
    seen.numbers[SeenNumber.BUSY_SMS] = w.busy_sms
    seen.numbers[SeenNumber.OCCUPANCY] = occupancy(w)
    seen.numbers[SeenNumber.DRAM] = w.traffic / problem(w).nominal_bytes_per_us
    counts[LoopCount.DECIDING], counts[LoopCount.ASKED_PS] = 1, w.now_ps
    mail[Mail.QUESTION] = 1
    return True


@called
def take_answer(w, gpu, mail, standing):
    """Let the decision that was made stand, from now on to the end of an interval since it was asked for."""
    counts = gpu.counts
    set_decision(standing, mail[Mail.TENANT], mail[Mail.OTHERS])
    mail[Mail.ANSWER] = NO_ANSWER
    counts[LoopCount.DECIDING] = 0
    counts[LoopCount.UNTIL_PS] = counts[LoopCount.ASKED_PS] + counts[LoopCount.INTERVAL_PS]
    if counts[LoopCount.DECISIONS] < gpu.decided_ps.size:
        gpu.decided_ps[counts[LoopCount.DECISIONS]] = host_ps(gpu) - counts[LoopCount.ASKED_PS]
    counts[LoopCount.DECISIONS] += 1
    # Whoever waits for it need not wait any more.
    w.timer_ps = w.now_ps


@called
def host_ps(gpu):
    """The real time since the start, picoseconds."""
    since_ns = host_ns(gpu.functions, gpu.timespec, gpu.places[AddressRow.TIMESPEC]) - gpu.places[AddressRow.ZERO_NS]
    return since_ns * PS_PER_NS


@native()
def note_own_command(gpu):
    """A command that Python gave was carried out."""
    note_command(gpu, BY_PYTHON)


@called
def note_command(gpu, code):
    """A command with a code was carried out."""
    counts, now_ps = gpu.counts, host_ps(gpu)
    row = counts[LoopCount.COMMANDS]
    if row < gpu.took.shape[0]:
        gpu.took[row, 0], gpu.took[row, 1] = now_ps - counts[LoopCount.FREE_PS], code
    counts[LoopCount.COMMANDS] += 1
    counts[LoopCount.FREE_PS] = now_ps


@called
def rest(w, gpu):
    """Rest, as nothing is to be done now; gives 0, or what is wrong."""
    counts, now_ps = gpu.counts, host_ps(gpu)
    counts[LoopCount.FREE_PS] = now_ps
    now_ns = now_ps // PS_PER_NS
    busy = False
    for queue in range(gpu.queues.shape[0]):
        busy |= gpu.queues[queue, QueueColumn.FIRST] != NONE
    if not busy or counts[LoopCount.TOLD] > 0:
        counts[LoopCount.NEWS_NS] = now_ns
    if not busy:
        return DEADLOCK if w.due_ps == NEVER else 0
    if now_ns - max(counts[LoopCount.NEWS_NS], counts[LoopCount.LOOKED_NS]) < LOOK_NS:
        return 0
    counts[LoopCount.LOOKED_NS] = now_ns
    for queue in range(gpu.queues.shape[0]):
        if gpu.queues[queue, QueueColumn.FIRST] != NONE:
            status = query_stream(gpu.functions, gpu.queues[queue, QueueColumn.HANDLE])
            if status not in (SUCCESS, NOT_READY):
                counts[LoopCount.STATUS] = status
                return FAULT
    return HANGS if now_ns - counts[LoopCount.NEWS_NS] > HANG_NS else 0


# ---- what happens ----------------------------------------------------------------------------------------------------


@called
def poll(gpu):
    """Write what has started and ended since the last call, in order of time; returns the number of rows."""
    rows = 0
    for number in range(gpu.queues.shape[0]):
        queue = gpu.queues[number]
        while queue[QueueColumn.FIRST] != NONE and rows + 2 <= gpu.told.shape[0]:
            first = queue[QueueColumn.FIRST]
            # In this order: who sees the end sees the start.
            ended = gpu.reports[REPORT_WORDS * first + 1]
            started = gpu.reports[REPORT_WORDS * first]
            if started == 0:
                break
            if queue[QueueColumn.STARTED] == 0:
                queue[QueueColumn.STARTED] = 1
                rows = tell(gpu, rows, started, first, 0)
            if ended == 0:
                break
            rows = tell(gpu, rows, max(started, ended), first, 1)
            queue[QueueColumn.FIRST], queue[QueueColumn.STARTED] = gpu.owners[first, ReportColumn.NEXT], 0
    return rows


@called
def tell(gpu, rows, gpu_ns, number, ended):
    """Add a row behind those that are not later; returns the number of rows."""
    at_ps = max(0, np.int64(gpu_ns) - gpu.places[AddressRow.AHEAD_NS] - gpu.places[AddressRow.ZERO_NS]) * PS_PER_NS
    place = rows
    while place > 0 and gpu.told[place - 1, 0] > at_ps:
        for column in range(gpu.told.shape[1]):
            gpu.told[place, column] = gpu.told[place - 1, column]
        place -= 1
    row = gpu.told[place]
    row[0], row[1], row[2], row[3] = at_ps, gpu.owners[number, ReportColumn.SLOT], ended, 0
    return rows + 1

"""A GPU driven in compiled code: hear what it reports, let tenants' hosts issue, dispatch by the decision that stands,
launch. Another thread decides meanwhile (:mod:`~gpusched_env.devices.cuda.real_time.decider`), so that nothing that
Python does keeps a launch waiting, and tenants need not live in slow motion.

What a launch needs of CuPy stands in tables beforehand (:mod:`gpusched_env.devices.cuda.real_time.pieces`).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gpusched_env.compiling import cached, called
from gpusched_env.devices.compiled.access import clients, env_at, given, problem
from gpusched_env.devices.compiled.entry import report
from gpusched_env.devices.compiled.interval import put_next_command, stand
from gpusched_env.devices.compiled.intrinsics import call
from gpusched_env.devices.compiled.layout import DEADLOCK, DECIDE, IDLE, NONE
from gpusched_env.devices.compiled.listing import list_dependencies, list_pending, list_running
from gpusched_env.devices.compiled.views import occupancy
from gpusched_env.devices.cuda.real_time.driver import NOT_READY, SUCCESS, host_ns, query_stream
from gpusched_env.devices.cuda.real_time.submitting import send
from gpusched_env.devices.cuda.real_time.tables import (
    BY_PYTHON,
    COMMANDED,
    FAULT,
    GOES_ON,
    HANG_S,
    HANGS,
    LOOK_S,
    NO_ANSWER,
    OWN,
    REPORT_WORDS,
    UNABLE,
    Count,
    Figure,
    Mail,
    Owner,
    Place,
    Queue,
    Table,
)
from gpusched_env.devices.rules.rows import fill_tenants, list_jobs
from gpusched_env.hardware.clock import NEVER, to_us
from gpusched_env.scheduling.commands import WAITING

PS_PER_NS: Final = 1000
LOOK_NS: Final = round(LOOK_S * 1e9)
HANG_NS: Final = round(HANG_S * 1e9)
LISTEN_PS: Final = 500_000_000_000
"""How often Python hears of interrupts: half a second."""


@cached(nogil=True)
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
        if counts[Count.NEXT_TOLD] >= counts[Count.TOLD]:
            # In this order: what is reported later has happened later. A report may be a little ahead.
            now_ps = host_ps(gpu)
            if now_ps >= counts[Count.LISTEN_PS]:
                counts[Count.LISTEN_PS] = now_ps + LISTEN_PS
                return GOES_ON
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
            code = given(w).code
            counts[Count.WAITS] += code == WAITING
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

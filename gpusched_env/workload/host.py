"""Hosts and arrivals: jobs arrive, a tenant's host threads work through their operations in order.

This is the only text of it. The reference device runs it as plain Python, the compiled device compiles it; whatever
issues work to a GPU (a real one, a fleet) can drive it. It works on a *world* ``w``, which knows nothing of how
launches are carried out and has, by the access functions below, a client a tenant, jobs, host threads, streams, marks
and the tables of the programs. It calls :func:`issue` when a thread reaches an operation of the device, and is told by
:func:`operation_finished` that one has ended (or has vanished). Time passes by :func:`set_timer`: when a timer of
:data:`ARRIVAL`, :data:`DEADLINE` or :data:`HOST` is due, whoever keeps the clock calls :func:`arrival_due`,
:func:`deadline_due` or :func:`thread_due`. At one instant a thread takes one step an event.

Hosts of one process slow each other (an interpreter's lock, the lock of a CUDA context). A tenant is *serving* from
when its host takes up a job until all its threads have done with it, and *at work* while one of them spends the host
time of an operation; otherwise they wait for the GPU, in calls of the driver. The host time of an operation is the
longer, the more other tenants were at work, or waited, when it began (:func:`spend`). Of a tenant's own threads the
recorded times tell already.

A tenant may be throttled (:func:`throttle`): its host sleeps before it begins a job, and what that costs, once, is
added to the next sleep.

In all functions ``tenant`` is a row of the tenants, ``number`` one of their jobs (counted from 0), ``k`` a row of the
host threads of all tenants.
"""

from __future__ import annotations

import math
from typing import Any, Final

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.workload.arrivals import ArrivalProcess, Backlog, Bursts, ClosedLoop, Periodic, Poisson, Regimes
from gpusched_env.workload.workload import OpKind

RANDOM_STREAMS: Final = (1, 2)
"""Spawn keys of a tenant's random number generators: of its arrivals, and of what varies from job to job."""

# Timers of this module.
ARRIVAL: Final = 0
"""The next job of a tenant."""
DEADLINE: Final = 1
"""The earliest deadline of a tenant's jobs that is not past."""
HOST: Final = 2
"""The next step of a host thread."""

# Arrival processes.
CLOSED_LOOP: Final = 0
POISSON: Final = 1
PERIODIC: Final = 2
BURSTS: Final = 3
BACKLOG: Final = 4
REGIMES: Final = 5


def arrival_numbers(process: ArrivalProcess) -> dict[str, float]:
    """An arrival process as the numbers that :func:`program` has."""
    numbers = {
        "arrivals": 0.0, "start_us": process.start_us, "think_us": 0.0, "rate_per_s": 0.0, "period_us": 0.0,
        "burst_go": 0.0, "busy_rate_per_s": 0.0, "calm_us": 0.0, "busy_us": 0.0,
    }  # fmt: skip
    match process:
        case ClosedLoop():
            return numbers | {"arrivals": CLOSED_LOOP, "think_us": process.think_us}
        case Poisson():
            return numbers | {"arrivals": POISSON, "rate_per_s": process.rate_per_s}
        case Periodic():
            return numbers | {"arrivals": PERIODIC, "period_us": process.period_us}
        case Bursts():
            burst_go = 1.0 - 1.0 / process.mean_size
            return numbers | {"arrivals": BURSTS, "rate_per_s": process.rate_per_s, "burst_go": burst_go}
        case Regimes():
            both = {"rate_per_s": process.rate_per_s, "busy_rate_per_s": process.busy_rate_per_s}
            return numbers | both | {"arrivals": REGIMES, "calm_us": process.calm_us, "busy_us": process.busy_us}
        case Backlog():
            return numbers | {"arrivals": BACKLOG}


# States of a job.
WAITING: Final = 0
SERVED: Final = 1
"""Its tenant's host has taken it up."""
GONE: Final = 2
"""Completed or rejected."""

# States of a host thread.
IDLE: Final = 0
"""It has done its part of the job, or there is none."""
SPENDING: Final = 1
"""The timer runs to the end of the host time before its operation; or it looks again."""
BLOCKED: Final = 2
"""What its operation needs has not happened yet."""
RETURNING: Final = 3
"""The timer runs to the return of a synchronisation."""

AWAKE: Final = 0
"""``Client.asleep_until_ps`` of a host that does not sleep before a job."""

# States of a mark.
UNISSUED: Final = -1
"""``Mark.launch`` of an operation that was not issued yet."""
HOST_S_OWN: Final = -2
"""Of one that is the host's alone, and done."""

SYNC: Final = int(OpKind.SYNC)
SYNC_STREAM: Final = int(OpKind.SYNC_STREAM)
SYNC_EVENT: Final = int(OpKind.SYNC_EVENT)
HOST_ONLY: Final = int(OpKind.HOST)


# ---- what a world has; compiled code reads its own memory instead (devices.compiled.hosting) ------------------------


def rules(w: Any) -> Any:
    """``launch_depth``, ``sync_latency_ps``, ``throttle_ps``, ``horizon_us``, ``arrivals_until_ps``,
    ``host_contention``, ``waiting_contention`` and ``peak_w`` (power at full load) of the problem."""
    return w.rules


def program(w: Any, tenant: int) -> Any:
    """A tenant's arrivals (``arrivals`` and their numbers), ``jobs`` (-1: no end), ``slo_us``, ``alone_us``, and how
    many ``variants`` and host ``factors`` its jobs draw from."""
    return w.programs[tenant]


def client(w: Any, tenant: int) -> Any:
    """A tenant at run time."""
    return w.clients[tenant]


def job(w: Any, tenant: int, number: int) -> Any:
    """A job that is not gone, or was not when the oldest one that is not gone arrived."""
    return w.jobs[tenant][number]


def thread(w: Any, k: int) -> Any:
    """A host thread."""
    return w.threads[k]


def stream(w: Any, row: int) -> Any:
    """A stream: ``outstanding`` operations and ``last_end_ps``."""
    return w.streams[row]


def mark(w: Any, tenant: int, m: int) -> Any:
    """A mark of the job in service: id of its ``launch``, whether it has ``finished``, and when."""
    return w.marks[tenant][m]


def op(w: Any, place: int) -> Any:
    """An operation: ``kind``, ``host_us``, ``stream``, ``mark``."""
    return w.ops[place]


def awaits(w: Any, place: int) -> int:
    """How many marks an operation waits for."""
    return len(w.ops[place].after)


def awaited(w: Any, place: int, i: int) -> int:
    """One of them."""
    return int(w.ops[place].after[i])


def draw_variant(w: Any, tenant: int, u: float) -> Any:
    """The variant that the draw ``u`` (0 <= u < 1) picks: ``first_op``, ``device_ops``, ``marks``."""
    variants = w.variants[tenant]
    return variants[int(u * len(variants))]


def draw_factor(w: Any, tenant: int, u: float) -> float:
    """The factor on host times that the draw ``u`` picks."""
    factors = w.factors[tenant]
    return float(factors[int(u * len(factors))])


def thread_ops(w: Any, tenant: int, number: int, i: int) -> int:
    """Operations of the ``i``-th host thread in the variant of a job."""
    return int(w.jobs[tenant][number].variant.threads[i])


def uniform(w: Any, tenant: int, which: int) -> float:
    """The next draw of a tenant's generator, 0 <= u < 1; ``which``: 0 for arrivals, 1 for variation."""
    return float(w.generators[tenant][which].random())


def new_job(w: Any, tenant: int, number: int, variant: Any) -> Any:
    """Make room for a job of a variant, ``unfinished`` device operations and ``first_op`` filled in."""
    return w.new_job(tenant, number, variant)


def set_timer(w: Any, kind: int, number: int, at_ps: int) -> None:
    """Set the timer of a tenant or a thread, which may be set already; :data:`NEVER`: stop it."""
    w.set_timer(kind, number, at_ps)


def issue(w: Any, k: int) -> None:
    """Thread ``k`` issues the operation that it stands at (``thread(w, k).op``)."""
    w.issue(k)


def log_job(w: Any, tenant: int, number: int) -> None:
    """A job has completed."""
    w.log_job(tenant, number)


def log_rejection(w: Any, tenant: int, number: int) -> None:
    """A job was rejected."""
    w.log_rejection(tenant, number)


# ---- arrivals ------------------------------------------------------------------------------------------------------


@procedure
def exponential_us(u, rate_per_s):
    """A random gap of mean ``1e6 / rate_per_s``: the quantile function at the draw ``u``."""
    return -math.log1p(-u) * 1e6 / rate_per_s


@procedure
def regimes_gap_us(w, tenant):
    """To the next job where the rate switches: of whatever happens next, with the chance that it is the switch."""
    p = program(w, tenant)
    c = client(w, tenant)
    gap_us = 0.0
    while True:
        rate_per_s = p.busy_rate_per_s if c.regime == 1 else p.rate_per_s
        switches_per_s = 1e6 / p.busy_us if c.regime == 1 else 1e6 / p.calm_us
        gap_us += exponential_us(uniform(w, tenant, 0), rate_per_s + switches_per_s)
        if uniform(w, tenant, 0) * (rate_per_s + switches_per_s) < rate_per_s:
            return gap_us
        c.regime = 1 - c.regime


@procedure
def begin(w, tenant):
    """The first timer of a tenant."""
    p = program(w, tenant)
    first_ps = to_ps(p.start_us)
    if p.arrivals == REGIMES:
        c = client(w, tenant)
        c.regime = 1 if uniform(w, tenant, 0) * (p.calm_us + p.busy_us) < p.busy_us else 0
        first_ps += to_ps(regimes_gap_us(w, tenant))
    if p.arrivals == POISSON or p.arrivals == BURSTS:
        # Times are added as whole numbers: a late start does not round the gap.
        first_ps += to_ps(exponential_us(uniform(w, tenant, 0), p.rate_per_s))
    send_at(w, tenant, first_ps)


@procedure
def send_at(w, tenant, at_ps):
    """A job of a tenant arrives then, or where nobody sends one any more after the horizon, which ends the episode."""
    if program(w, tenant).arrivals != CLOSED_LOOP and at_ps > rules(w).arrivals_until_ps:
        at_ps = max(at_ps, to_ps(rules(w).horizon_us) + 1)
    set_timer(w, ARRIVAL, tenant, at_ps)


@procedure
def gap_us(w, tenant):
    """From the arrival of a job to the next one (in a closed loop: from its completion)."""
    p = program(w, tenant)
    if p.arrivals == CLOSED_LOOP:
        return p.think_us
    if p.arrivals == POISSON:
        return exponential_us(uniform(w, tenant, 0), p.rate_per_s)
    if p.arrivals == PERIODIC:
        return p.period_us
    if p.arrivals == REGIMES:
        return regimes_gap_us(w, tenant)
    # A burst goes on with probability 1 - 1/mean: a geometric size without a counter to keep.
    if p.arrivals == BURSTS and uniform(w, tenant, 0) >= p.burst_go:
        return exponential_us(uniform(w, tenant, 0), p.rate_per_s)
    return 0.0


@procedure
def arrival_due(w, tenant):
    """A job arrives; which recorded iteration it repeats, and how fast the host is, is drawn."""
    p = program(w, tenant)
    c = client(w, tenant)
    number = c.arrived
    j = new_job(w, tenant, number, draw_variant(w, tenant, uniform(w, tenant, 1)))
    j.factor = draw_factor(w, tenant, uniform(w, tenant, 1))
    j.state = WAITING
    j.overdue = 0
    j.arrived_ps = w.now_ps
    j.started_ps = NEVER
    j.deadline_ps = w.now_ps + to_ps(p.slo_us) if p.slo_us < math.inf else NEVER
    accrue_jobs(w, tenant)
    c.arrived += 1
    arm_deadline(w, tenant)
    w.awake = 1
    if c.busy == 0:
        set_timer(w, HOST, c.first_thread, max(w.now_ps, c.asleep_until_ps))
    if p.arrivals != CLOSED_LOOP and (p.jobs < 0 or c.arrived < p.jobs):
        send_at(w, tenant, w.now_ps + to_ps(gap_us(w, tenant)))


# ---- host threads --------------------------------------------------------------------------------------------------


@procedure
def take_job(w, tenant):
    """An idle host takes up the oldest job that waits; before that it may sleep."""
    c = client(w, tenant)
    # Those that were rejected before their turn may be forgotten.
    c.taken = max(c.taken, c.first)
    while c.taken < c.arrived:
        number = c.taken
        j = job(w, tenant, number)
        if j.state == WAITING and sleeps(w, tenant):
            return
        c.taken += 1
        if j.state != WAITING:
            continue
        c.asleep_until_ps = AWAKE
        j.state = SERVED
        j.started_ps = w.now_ps
        c.host_job = number
        c.busy = c.threads
        w.tenants_serving += 1
        c.host_factor = j.factor
        for m in range(j.marks):
            mark(w, tenant, m).launch = UNISSUED
            mark(w, tenant, m).finished = 0
        first = j.first_op
        for i in range(c.threads):
            t = thread(w, c.first_thread + i)
            t.op = first
            first += thread_ops(w, tenant, number, i)
            t.end = first
            next_operation(w, c.first_thread + i)
        return
    # Whatever it slept for was rejected.
    c.asleep_until_ps = AWAKE


@procedure
def sleeps(w, tenant):
    """Whether an idle host that could begin a job sleeps first."""
    c = client(w, tenant)
    if c.asleep_until_ps == AWAKE:
        c.asleep_until_ps = w.now_ps + c.pause_ps + c.owed_ps
        c.owed_ps = 0
    if c.asleep_until_ps <= w.now_ps:
        return False
    set_timer(w, HOST, c.first_thread, c.asleep_until_ps)
    return True


@procedure
def throttle(w, tenant, pause_ps):
    """A tenant's host sleeps so long before each job that it begins from now on; the next one begins later for that."""
    c = client(w, tenant)
    c.pause_ps = pause_ps
    c.throttled_ps = w.now_ps
    delay(w, tenant, rules(w).throttle_ps)


@procedure
def delay(w, tenant, ps):
    """A tenant's next job begins so much later, once: the sleep before it is longer, which may be under way."""
    c = client(w, tenant)
    if c.asleep_until_ps > w.now_ps:
        c.asleep_until_ps += ps
        set_timer(w, HOST, c.first_thread, c.asleep_until_ps)
    else:
        c.owed_ps += ps


@procedure
def next_operation(w, k):
    """A thread turns to its next operation, or is done with the job."""
    t = thread(w, k)
    c = client(w, t.tenant)
    if t.op < t.end:
        spend(w, k)
        return
    t.state = IDLE
    c.busy -= 1
    if c.busy == 0:
        c.host_job = -1
        w.tenants_serving -= 1
        set_timer(w, HOST, c.first_thread, w.now_ps)


@procedure
def spend(w, k):
    """A thread begins with the host time of its next operation."""
    t = thread(w, k)
    c = client(w, t.tenant)
    t.state = SPENDING
    host_us = op(w, t.op).host_us * c.host_factor
    if rules(w).host_contention + rules(w).waiting_contention > 0.0 and host_us > 0.0:
        if c.at_work == 0:
            w.tenants_at_work += 1
        c.at_work += 1
        t.at_work = 1
        waiting = w.tenants_serving - w.tenants_at_work
        host_us *= 1.0 + rules(w).host_contention * (w.tenants_at_work - 1) + rules(w).waiting_contention * waiting
    set_timer(w, HOST, k, w.now_ps + to_ps(host_us))


@procedure
def stop_work(w, k):
    """A thread has spent the host time of an operation, or its job is given up."""
    t = thread(w, k)
    if t.at_work == 1:
        t.at_work = 0
        c = client(w, t.tenant)
        c.at_work -= 1
        if c.at_work == 0:
            w.tenants_at_work -= 1


@procedure
def thread_due(w, k):
    """A host thread takes its next step."""
    stop_work(w, k)
    t = thread(w, k)
    if t.state == IDLE:
        if client(w, t.tenant).busy == 0:
            take_job(w, t.tenant)
        return
    if t.state == SPENDING:
        kind = op(w, t.op).kind
        if not may_pass(w, t.tenant, t.op, kind):
            t.state = BLOCKED
            return
        if kind in (SYNC, SYNC_STREAM, SYNC_EVENT):
            returns_ps = awaited_end_ps(w, t.tenant, t.op, kind) + rules(w).sync_latency_ps
            if returns_ps > w.now_ps:
                t.state = RETURNING
                set_timer(w, HOST, k, returns_ps)
                return
        elif kind == HOST_ONLY:
            host_done(w, t.tenant, op(w, t.op).mark)
        else:
            issue(w, k)
    t.op += 1
    next_operation(w, k)


@procedure
def host_done(w, tenant, m):
    """A thread has spent the host time of an operation that is nothing else, which others may wait for."""
    if m >= 0:
        mark(w, tenant, m).launch = HOST_S_OWN
        mark(w, tenant, m).finished = 1
        wake_threads(w, tenant)


@procedure
def may_pass(w, tenant, place, kind):
    """Whether nothing keeps a host thread at an operation."""
    c = client(w, tenant)
    if kind == HOST_ONLY and awaits(w, place) == 0:
        return True
    if kind == SYNC:
        return c.outstanding == 0
    if kind == SYNC_STREAM:
        return stream(w, op(w, place).stream).outstanding == 0
    for i in range(awaits(w, place)):
        m = mark(w, tenant, awaited(w, place, i))
        if m.launch == UNISSUED or (kind == SYNC_EVENT and m.finished == 0):
            return False
    if kind == SYNC_EVENT:
        return True
    return c.outstanding < rules(w).launch_depth


@procedure
def awaited_end_ps(w, tenant, place, kind):
    """When the last operation ended that a synchronisation waits for; far in the past if there was none."""
    if kind == SYNC:
        return client(w, tenant).last_end_ps
    if kind == SYNC_STREAM:
        return stream(w, op(w, place).stream).last_end_ps
    latest = -NEVER
    for i in range(awaits(w, place)):
        latest = max(latest, mark(w, tenant, awaited(w, place, i)).ended_ps)
    return latest


@procedure
def wake_threads(w, tenant):
    """Something that a tenant's threads may wait for has happened: they look again."""
    c = client(w, tenant)
    for k in range(c.first_thread, c.first_thread + c.threads):
        t = thread(w, k)
        if t.state == BLOCKED:
            t.state = SPENDING
            set_timer(w, HOST, k, w.now_ps)


@procedure
def operation_issued(w, tenant, number, row, m, launch):
    """A device operation of a job was issued: into a stream, with a mark (-1: none), as ``launch``."""
    client(w, tenant).outstanding += 1
    stream(w, row).outstanding += 1
    if m >= 0:
        mark(w, tenant, m).launch = launch
        wake_threads(w, tenant)


@procedure
def operation_finished(w, tenant, number, row, m, launch):
    """A device operation has ended, or has vanished with its job; arguments as for :func:`operation_issued`."""
    c = client(w, tenant)
    c.outstanding -= 1
    c.last_end_ps = w.now_ps
    s = stream(w, row)
    s.outstanding -= 1
    s.last_end_ps = w.now_ps
    if m >= 0 and c.host_job == number and mark(w, tenant, m).launch == launch:
        mark(w, tenant, m).finished = 1
        mark(w, tenant, m).ended_ps = w.now_ps
    if number >= c.first:
        j = job(w, tenant, number)
        if j.state != GONE:
            j.unfinished -= 1
            if j.unfinished == 0:
                complete_job(w, tenant, number)
    wake_threads(w, tenant)


# ---- jobs ----------------------------------------------------------------------------------------------------------


@procedure
def accrue_jobs(w, tenant):
    """Count the time that the jobs in the system have spent up to now."""
    c = client(w, tenant)
    c.jobs_us += (c.arrived - c.completed - c.rejected) * ((w.now_ps - c.jobs_since_ps) / 1e6)
    c.jobs_since_ps = w.now_ps


@procedure
def complete_job(w, tenant, number):
    """All operations of a job have finished."""
    c = client(w, tenant)
    j = job(w, tenant, number)
    accrue_jobs(w, tenant)
    c.completed += 1
    turnaround_us = (w.now_ps - j.arrived_ps) / 1e6
    c.last_turnaround_us = turnaround_us
    mean_us = c.mean_turnaround_us
    c.mean_turnaround_us = turnaround_us if c.completed == 1 else mean_us + (turnaround_us - mean_us) / 8.0
    log_job(w, tenant, number)
    job_leaves(w, tenant, number)


@procedure
def job_leaves(w, tenant, number):
    """A job has completed or was rejected."""
    p = program(w, tenant)
    c = client(w, tenant)
    job(w, tenant, number).state = GONE
    while c.first < c.arrived and job(w, tenant, c.first).state == GONE:
        c.first += 1
    arm_deadline(w, tenant)
    if p.jobs >= 0:
        w.to_complete -= 1
        if w.to_complete == 0:
            w.done = 1
            w.done_ps = w.now_ps
    w.awake = 1
    if p.arrivals == CLOSED_LOOP and (p.jobs < 0 or c.arrived < p.jobs):
        send_at(w, tenant, w.now_ps + to_ps(gap_us(w, tenant)))


@procedure
def arm_deadline(w, tenant):
    """Set the timer to the earliest deadline that is not past (deadlines come in order of arrival)."""
    c = client(w, tenant)
    c.due_job = max(c.due_job, c.first)
    while c.due_job < c.arrived:
        j = job(w, tenant, c.due_job)
        if j.state != GONE and j.overdue == 0:
            set_timer(w, DEADLINE, tenant, j.deadline_ps)
            return
        c.due_job += 1
    set_timer(w, DEADLINE, tenant, NEVER)


@procedure
def deadline_due(w, tenant):
    """A job in the system has exceeded its SLO."""
    c = client(w, tenant)
    c.slo_misses += 1
    job(w, tenant, c.due_job).overdue = 1
    arm_deadline(w, tenant)


@procedure
def rejectable(w, tenant, number):
    """Whether a job in the system may be rejected now: an end to charge it up to, and no loop at one instant."""
    c = client(w, tenant)
    again = c.rejected_ps == w.now_ps and job(w, tenant, number).arrived_ps == w.now_ps
    return rules(w).horizon_us < math.inf and not again


@procedure
def reject(w, tenant, number):
    """A job is given up: charged as if it stayed until the horizon and were then done alone, and the host goes on.

    The caller lets the job's pending launches vanish.
    """
    p = program(w, tenant)
    c = client(w, tenant)
    j = job(w, tenant, number)
    accrue_jobs(w, tenant)
    c.rejected += 1
    c.rejected_ps = w.now_ps
    c.jobs_us += max(0.0, rules(w).horizon_us - w.now_ps / 1e6) + p.alone_us
    if p.slo_us < math.inf and j.overdue == 0:
        c.slo_misses += 1
    w.charged_energy_j += p.alone_us * rules(w).peak_w * 1e-6
    if p.jobs >= 0:
        w.charged_makespan_us += p.alone_us
    log_rejection(w, tenant, number)
    if c.host_job == number:
        c.host_job = -1
        c.busy = 0
        w.tenants_serving -= 1
        for k in range(c.first_thread, c.first_thread + c.threads):
            stop_work(w, k)
            thread(w, k).state = IDLE
            set_timer(w, HOST, k, NEVER)
        set_timer(w, HOST, c.first_thread, w.now_ps)
    job_leaves(w, tenant, number)

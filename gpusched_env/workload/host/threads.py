"""Host threads: they take jobs up and work through their operations in order, or give a job up."""

from __future__ import annotations

import math

from gpusched_env.compiling import procedure
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.workload.host.batching import begin_step, end_step, has_step
from gpusched_env.workload.host.jobs import charge_rejection, complete_job
from gpusched_env.workload.host.states import (
    AWAKE,
    BLOCKED,
    DONE_BY_HOST,
    HAS_LEFT,
    HOST,
    HOST_ONLY,
    IDLE,
    NO_JOB,
    RETURNING,
    SERVED,
    SPENDING,
    SYNC,
    SYNC_EVENT,
    SYNC_STREAM,
    UNISSUED,
    WAITING,
)
from gpusched_env.workload.host.world import (
    awaited,
    awaits,
    client,
    host_changed,
    issue,
    job,
    mark,
    op,
    program,
    rules,
    set_timer,
    stream,
    thread,
    thread_ops,
)


@procedure
def take_job(w, tenant):
    """An idle host takes up the oldest job that waits, or the next step of a serving engine; before, it may sleep."""
    c = client(w, tenant)
    if program(w, tenant).max_batch > 0:
        if not has_step(w, tenant):
            c.asleep_until_ps = AWAKE
        elif not sleeps(w, tenant):
            serve(w, tenant, begin_step(w, tenant))
        return
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
        serve(w, tenant, number)
        return
    # Whatever it slept for was rejected.
    c.asleep_until_ps = AWAKE


@procedure
def serve(w, tenant, number):
    """An idle host begins with the operations of a job."""
    c = client(w, tenant)
    j = job(w, tenant, number)
    c.asleep_until_ps = AWAKE
    j.state = SERVED
    j.started_ps = min(j.started_ps, w.now_ps)
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
        begin_host_time(w, k)
        return
    t.state = IDLE
    c.busy -= 1
    if c.busy == 0 and not waits_for_step(w, t.tenant):
        be_idle(w, t.tenant)


@procedure
def waits_for_step(w, tenant):
    """Whether a host that has issued all of a serving engine's step waits for its end."""
    return program(w, tenant).max_batch > 0 and job(w, tenant, client(w, tenant).host_job).unfinished > 0


@procedure
def be_idle(w, tenant):
    """A host has done with a job, or with a step, whose tokens are there then, and looks for the next."""
    c = client(w, tenant)
    if program(w, tenant).max_batch > 0:
        end_step(w, tenant)
    c.host_job = NO_JOB
    w.tenants_serving -= 1
    set_timer(w, HOST, c.first_thread, w.now_ps)


@procedure
def begin_host_time(w, k):
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
    step(w, k)
    if rules(w).cores > 0:
        host_changed(w, thread(w, k).tenant)


@procedure
def step(w, k):
    """What a host thread does next."""
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
    if rules(w).cores > 0:
        release_lock(w, k)
    t.op += 1
    next_operation(w, k)


@procedure
def release_lock(w, k):
    """A synchronisation behind which nothing of the tenant is left gives its bandwidth lock back."""
    t = thread(w, k)
    c = client(w, t.tenant)
    if c.outstanding == 0 and op(w, t.op).kind in (SYNC, SYNC_STREAM, SYNC_EVENT):
        c.holds_lock = 0


@procedure
def host_done(w, tenant, m):
    """A thread has spent the host time of an operation that is nothing else, which others may wait for."""
    if m >= 0:
        mark(w, tenant, m).launch = DONE_BY_HOST
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
            if rules(w).cores > 0:
                host_changed(w, tenant)


@procedure
def operation_issued(w, tenant, number, row, m, launch):
    """A device operation of a job was issued: into a stream, with a mark (-1: none), as ``launch``."""
    client(w, tenant).outstanding += 1
    client(w, tenant).holds_lock = 1
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
        if j.state != HAS_LEFT:
            j.unfinished -= 1
            if j.unfinished == 0:
                if program(w, tenant).max_batch == 0:
                    complete_job(w, tenant, number)
                elif c.busy == 0:
                    be_idle(w, tenant)
    wake_threads(w, tenant)


@procedure
def rejectable(w, tenant, number):
    """Whether a job in the system may be rejected now: an end to charge it up to, and no loop at one instant.

    A request that runs may not: its steps are those of others, too.
    """
    c = client(w, tenant)
    j = job(w, tenant, number)
    again = c.rejected_ps == w.now_ps and j.arrived_ps == w.now_ps
    runs = program(w, tenant).max_batch > 0 and j.state == SERVED
    return rules(w).horizon_us < math.inf and not again and not runs


@procedure
def reject(w, tenant, number):
    """A scheduler gives a job up, and the host goes on.

    The caller lets the job's pending launches vanish.
    """
    c = client(w, tenant)
    c.rejected_ps = w.now_ps
    if c.host_job == number:
        c.host_job = NO_JOB
        c.busy = 0
        w.tenants_serving -= 1
        for k in range(c.first_thread, c.first_thread + c.threads):
            stop_work(w, k)
            thread(w, k).state = IDLE
            set_timer(w, HOST, k, NEVER)
        set_timer(w, HOST, c.first_thread, w.now_ps)
        if rules(w).cores > 0:
            host_changed(w, tenant)
    charge_rejection(w, tenant, number)

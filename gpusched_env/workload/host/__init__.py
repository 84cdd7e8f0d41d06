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

A tenant may be a serving engine, which serves several jobs together, step by step (:mod:`.batching`).

Tenants that are closed loops may be told from outside to come and to go (:func:`start_closed_loop`,
:func:`stop_closed_loop`).

In all functions ``tenant`` is a row of the tenants, ``number`` one of their jobs (counted from 0), ``k`` a row of the
host threads of all tenants.
"""

from __future__ import annotations

from gpusched_env.workload.host.jobs import (
    arrival_due,
    begin_arrivals,
    deadline_due,
    has_started,
    oldest_unanswered,
    send_next,
    start_closed_loop,
    stop_closed_loop,
)
from gpusched_env.workload.host.states import (
    ARRIVAL,
    AWAKE,
    DEADLINE,
    HAS_LEFT,
    IDLE,
    NO_JOB,
    NO_LIMIT,
    NO_LIMIT_UNSTARTED,
    RANDOM_STREAMS,
    UNISSUED,
    WAITING,
    arrival_numbers,
)
from gpusched_env.workload.host.threads import (
    delay,
    operation_finished,
    operation_issued,
    reject,
    rejectable,
    thread_due,
    throttle,
)
from gpusched_env.workload.host.world import (
    awaited,
    awaits,
    client,
    covering,
    draw_factor,
    draw_variant,
    issue,
    job,
    length,
    log_job,
    log_rejection,
    log_request,
    mark,
    new_job,
    op,
    program,
    recorded_ps,
    repeat,
    rules,
    set_timer,
    stream,
    thread,
    thread_ops,
    uniform,
)

__all__ = [
    "ARRIVAL", "AWAKE", "DEADLINE", "HAS_LEFT", "IDLE", "NO_JOB", "NO_LIMIT", "NO_LIMIT_UNSTARTED",
    "RANDOM_STREAMS", "UNISSUED", "WAITING", "arrival_due", "arrival_numbers", "awaited", "awaits",
    "begin_arrivals", "client", "covering", "deadline_due", "delay", "draw_factor", "draw_variant", "has_started",
    "issue", "job", "length", "log_job", "log_rejection", "log_request", "mark", "new_job", "oldest_unanswered",
    "op", "operation_finished", "operation_issued", "program", "recorded_ps", "reject", "rejectable", "repeat",
    "rules", "send_next", "set_timer", "start_closed_loop", "stop_closed_loop", "stream", "thread", "thread_due",
    "thread_ops", "throttle", "uniform",
]  # fmt: skip

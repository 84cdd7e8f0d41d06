"""What happened, written to the log: rows of the timeline's tables."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import copies, flight_of, grids, log, members, ops, rows, sm_ids, word
from gpusched_env.devices.compiled.intrinsics import lowest
from gpusched_env.devices.compiled.layout import (
    JOBS_ONLY,
    KERNELS,
    LOG_BLOCKS,
    LOG_COPY,
    LOG_DECISION,
    LOG_JOB,
    LOG_KERNEL,
    LOG_REJECTION,
    LOG_REQUEST,
    LOG_SMS,
    LOG_TURN,
)
from gpusched_env.devices.compiled.members import BITS, NONE, ONE


@inlined
def next_row(w, table):
    """A new row of the log."""
    row = log(w, w.log_rows)
    w.log_rows += 1
    row.table = table
    return row


@inlined
def log_job(w, tenant, number, job):
    """A job has completed."""
    if w.detail < JOBS_ONLY:
        return
    row = next_row(w, LOG_JOB)
    row.c1 = tenant
    row.c2 = number
    row.c3 = job.arrived_ps
    row.c4 = job.started_ps
    row.c5 = w.now_ps


@inlined
def log_rejection(w, tenant, number, job):
    """A job was rejected."""
    if w.detail < JOBS_ONLY:
        return
    row = next_row(w, LOG_REJECTION)
    row.c1 = tenant
    row.c2 = number
    row.c3 = job.arrived_ps
    row.c4 = w.now_ps


@inlined
def log_request(w, tenant, number, job):
    """A request of a serving engine has completed."""
    if w.detail < JOBS_ONLY:
        return
    row = next_row(w, LOG_REQUEST)
    row.c1 = tenant
    row.c2 = number
    row.c3 = job.first_token_ps
    row.c4 = job.tokens
    row.c5 = job.preemptions


@called
def log_kernel(w, launch):
    """All blocks of a kernel have ended."""
    flight = flight_of(w, launch)
    if w.detail < KERNELS:
        return
    row = next_row(w, LOG_KERNEL)
    row.c1 = launch.id
    row.c2 = launch.tenant
    row.c3 = launch.job
    row.c4 = launch.identity
    row.c5 = launch.issued_ps
    row.c6 = launch.launched_ps
    row.c7 = flight.first_started_ps
    row.c8 = w.now_ps
    row.c9 = launch.priority
    row.c10 = flight.preemptions
    row.c11 = launch.stream
    row.c12 = launch.parent_id


@inlined
def log_sms(w):
    """The meter's rates have changed."""
    if w.detail < KERNELS:
        return
    row = next_row(w, LOG_SMS)
    row.c1 = w.now_ps
    row.c2 = w.busy_sms
    row.f1 = w.traffic
    row.f2 = w.power_w


@inlined
def log_turn(w, context):
    """A time-sliced context has got the GPU, or -1: it changes hands."""
    if w.detail < KERNELS:
        return
    row = next_row(w, LOG_TURN)
    row.c1 = w.now_ps
    row.c2 = context


@inlined
def log_decision(w, command, launch):
    """A command was given."""
    if w.detail < KERNELS:
        return
    row = next_row(w, LOG_DECISION)
    row.c1 = w.now_ps
    row.c2 = command
    row.c3 = launch


@inlined
def log_copy(w, engine, launch):
    """A copy has ended."""
    if w.detail < KERNELS:
        return
    row = next_row(w, LOG_COPY)
    row.c1 = engine
    row.c2 = launch.tenant
    row.c3 = copies(w, ops(w, launch.op).more).bytes
    row.c4 = flight_of(w, launch).started_ps
    row.c5 = w.now_ps


@called
def log_residency(w, x, c, r, now_ps):
    """The blocks of a row have ended, on all SMs of its class."""
    ended = rows(x, c, r)
    for k in range(x.words):
        bits = word(members(x, c), k).bits
        while bits != NONE:
            row = next_row(w, LOG_BLOCKS)
            row.c1 = sm_ids(w, k * BITS + lowest(bits))
            row.c2 = grids(x, ended.grid).launch
            row.c3 = ended.blocks
            row.c4 = ended.since_ps
            row.c5 = now_ps
            bits &= bits - ONE

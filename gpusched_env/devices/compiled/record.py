"""What happened, written to the log: rows of the timeline's tables."""

from __future__ import annotations

from gpusched_env.devices.compiled.access import clients, grids, log, members, rows, sm_ids, word
from gpusched_env.devices.compiled.intrinsics import lowest
from gpusched_env.devices.compiled.jit import called, inlined
from gpusched_env.devices.compiled.layout import (
    JOBS_ONLY,
    LOG_BLOCKS,
    LOG_COPY,
    LOG_DECISION,
    LOG_JOB,
    LOG_KERNEL,
    LOG_SMS,
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
    row = next_row(w, LOG_JOB)
    row.c1 = tenant
    row.c2 = number
    row.c3 = job.arrived_us
    row.c4 = job.started_us
    row.c5 = w.now_us


@called
def log_kernel(w, tenant, launch, op):
    """A kernel has finished."""
    if w.detail == JOBS_ONLY:
        return
    client = clients(w, tenant)
    row = next_row(w, LOG_KERNEL)
    row.c1 = launch.id
    row.c2 = tenant
    row.c3 = launch.job
    row.c4 = op.identity
    row.c5 = launch.issued_us
    row.c6 = launch.launched_us
    row.c7 = client.started_us
    row.c8 = w.now_us
    row.c9 = launch.priority
    row.c10 = client.preemptions


@inlined
def log_sms(w):
    """The meter's rates have changed."""
    if w.detail == JOBS_ONLY:
        return
    row = next_row(w, LOG_SMS)
    row.c1 = w.now_us
    row.c2 = w.busy_sms
    row.c3 = w.traffic
    row.c4 = w.power_w


@inlined
def log_decision(w, command, kernel):
    """A command was given."""
    if w.detail == JOBS_ONLY:
        return
    row = next_row(w, LOG_DECISION)
    row.c1 = w.now_us
    row.c2 = command
    row.c3 = kernel


@inlined
def log_copy(w, engine, tenant, bytes_, started_us):
    """A copy has ended."""
    if w.detail == JOBS_ONLY:
        return
    row = next_row(w, LOG_COPY)
    row.c1 = engine
    row.c2 = tenant
    row.c3 = bytes_
    row.c4 = started_us
    row.c5 = w.now_us


@called
def log_residency(w, x, c, r, now):
    """The blocks of a row have ended, on all SMs of its class."""
    ended = rows(x, c, r)
    for k in range(x.words):
        bits = word(members(x, c), k).bits
        while bits != NONE:
            row = next_row(w, LOG_BLOCKS)
            row.c1 = sm_ids(w, k * BITS + lowest(bits))
            row.c2 = grids(x, ended.grid).launch
            row.c3 = ended.blocks
            row.c4 = ended.since_us
            row.c5 = now
            bits &= bits - ONE

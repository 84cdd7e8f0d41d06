"""The world that :mod:`gpusched_env.workload.host` runs on in compiled code: its access functions on records.

Importing this module lets Numba compile the host interpreter for an ``ENV`` record.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import timing
from gpusched_env.devices.compiled.access import (
    afters,
    clients,
    factors,
    jobs,
    lengths,
    marks,
    ops,
    problem,
    programs,
    randoms,
    recorded,
    streams,
    thread_ops,
    threads,
    variants,
)
from gpusched_env.devices.compiled.ahead import beyond_window, run_ahead
from gpusched_env.devices.compiled.issuing import make_launch, settle_issue
from gpusched_env.devices.compiled.overloading import on_records
from gpusched_env.devices.compiled.randomness import uniform
from gpusched_env.devices.compiled.slots import next_id
from gpusched_env.devices.rules import logs
from gpusched_env.hardware.clock import NEVER
from gpusched_env.workload import host
from gpusched_env.workload.host import ARRIVAL, DEADLINE, operation_issued
from gpusched_env.workload.host.states import PROMPT


@on_records(host.rules)
def _rules(w):
    return problem(w)


@on_records(host.program)
def _program(w, tenant):
    return programs(w, tenant)


@on_records(host.client)
def _client(w, tenant):
    return clients(w, tenant)


@on_records(host.job)
def _job(w, tenant, number):
    return jobs(w, tenant, number)


@on_records(host.thread)
def _thread(w, k):
    return threads(w, k)


@on_records(host.stream)
def _stream(w, row):
    return streams(w, row)


@on_records(host.mark)
def _mark(w, tenant, m):
    return marks(w, tenant, m)


@on_records(host.op)
def _op(w, place):
    return ops(w, place)


@on_records(host.awaits)
def _awaits(w, place):
    return ops(w, place).afters


@on_records(host.awaited)
def _awaited(w, place, i):
    return afters(w, ops(w, place).first_after + i)


@on_records(host.draw_variant)
def _draw_variant(w, tenant, u):
    p = programs(w, tenant)
    return variants(w, p.first_variant + int(u * p.variants))


@on_records(host.length)
def _length(w, tenant, which, place):
    p = programs(w, tenant)
    return lengths(w, place + (p.first_prompts if which == PROMPT else p.first_answers))


@on_records(host.recorded_ps)
def _recorded_ps(w, tenant, place):
    return recorded(w, programs(w, tenant).first_recorded + place)


@on_records(host.covering)
def _covering(w, tenant, batch, tokens):
    row = programs(w, tenant).first_variant
    while not covers(variants(w, row), batch, tokens):
        row += 1
    return variants(w, row)


@inlined
def covers(step, batch, tokens):
    """Whether a recorded step covers so many requests with so many tokens each."""
    return (step.batch == 0) == (batch == 0) and step.batch >= batch and step.tokens >= tokens


@on_records(host.draw_factor)
def _draw_factor(w, tenant, u):
    p = programs(w, tenant)
    return factors(w, p.first_factor + int(u * p.factors))


@on_records(host.thread_ops)
def _thread_ops(w, tenant, number, i):
    return thread_ops(w, jobs(w, tenant, number).first_thread_ops + i)


@on_records(host.uniform)
def _uniform(w, tenant, which):
    return uniform(randoms(w, tenant, which))


@on_records(host.new_job)
def _new_job(w, tenant, number, variant):
    repeat(jobs(w, tenant, number), variant)
    return jobs(w, tenant, number)


@on_records(host.repeat)
def _repeat(w, tenant, number, variant):
    repeat(jobs(w, tenant, number), variant)


@inlined
def repeat(job, variant):
    """A job is to do all that a variant does."""
    job.unfinished = job.operations = variant.device_ops
    job.marks = variant.marks
    job.first_op = variant.first_op
    job.first_thread_ops = variant.first_thread_ops


@on_records(host.set_timer)
def _set_timer(w, kind, number, at_ps):
    if kind == ARRIVAL:
        if at_ps == NEVER:
            timing.stop(w, timing.arrivals_of(number))
        else:
            timing.arm_arrival(w, number, at_ps)
    elif kind == DEADLINE:
        if at_ps == NEVER:
            timing.stop(w, timing.deadlines_of(w, number))
        else:
            timing.arm_deadline(w, number, at_ps)
    elif at_ps == NEVER:
        timing.stop(w, timing.thread_s(w, number))
    else:
        timing.arm_thread(w, number, at_ps)


@on_records(host.issue)
def _issue(w, k):
    issue_operation(w, k)


@called
def issue_operation(w, k):
    """A host thread issues the operation that it stands at."""
    thread = threads(w, k)
    tenant = thread.tenant
    number = clients(w, tenant).host_job
    op = ops(w, thread.op)
    id_ = next_id(w)
    if beyond_window(w, op.stream):
        run_ahead(w, id_, thread.op, tenant, number)
        operation_issued(w, tenant, number, op.stream, op.mark, id_)
        return
    slot = make_launch(w, id_, thread.op, tenant, number)
    operation_issued(w, tenant, number, op.stream, op.mark, id_)
    if op.mark >= 0:
        marks(w, tenant, op.mark).slot = slot
    settle_issue(w, slot, w.now_ps)


@on_records(host.log_job)
def _log_job(w, tenant, number):
    logs.log_job(w, tenant, number)


@on_records(host.log_rejection)
def _log_rejection(w, tenant, number):
    logs.log_rejection(w, tenant, number)


@on_records(host.log_request)
def _log_request(w, tenant, number):
    logs.log_request(w, tenant, number)

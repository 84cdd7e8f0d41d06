"""Hosts and cores of the CPU in compiled code: the access functions of :mod:`gpusched_env.workload.host` and
:mod:`gpusched_env.workload.cores` on records, and what hosts have issued behind the scheduler's window.

Importing this module lets Numba compile both interpreters for an ``ENV`` record.

Hosts run ahead of the GPU by hundreds of operations, of which the scheduler sees a few. Those that can only go in
line wait as a few numbers each and become launches when they come into the window.

Random numbers are those of NumPy's PCG64 on plain state, so that draws equal those of ``numpy.random.Generator``
(O'Neill, *PCG: A Family of Simple Fast Space-Efficient Statistically Good Algorithms*, 2014: XSL-RR output).
"""

from __future__ import annotations

import numpy as np

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled import timing
from gpusched_env.devices.compiled.access import (
    afters,
    aheads,
    clients,
    contexts,
    cores,
    factors,
    jobs,
    launches,
    lengths,
    marks,
    on_records,
    ops,
    problem,
    processes,
    programs,
    randoms,
    read_by,
    recorded,
    stream_rows,
    streams,
    thread_ops,
    threads,
    variants,
)
from gpusched_env.devices.compiled.issuing import is_scheduled, make_launch, settle_issue
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.devices.compiled.slots import next_id
from gpusched_env.devices.rules import world as logs
from gpusched_env.hardware.clock import NEVER
from gpusched_env.hardware.shared_memory import left_for_gpu
from gpusched_env.workload import host
from gpusched_env.workload.cores import ticking as world
from gpusched_env.workload.cores.ticking import place_host
from gpusched_env.workload.host import ARRIVAL, DEADLINE, operation_finished, operation_issued
from gpusched_env.workload.host.states import PROMPT
from gpusched_env.workload.host.world import host_changed

read_by(host.rules, problem)
read_by(host.program, programs)
read_by(host.client, clients)
read_by(host.job, jobs)
read_by(host.thread, threads)
read_by(host.stream, streams)
read_by(host.mark, marks)
read_by(host.op, ops)


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
            timing.stop(w, timing.arrival_timer(number))
        else:
            timing.arm_arrival(w, number, at_ps)
    elif kind == DEADLINE:
        if at_ps == NEVER:
            timing.stop(w, timing.deadline_timer(w, number))
        else:
            timing.arm_deadline(w, number, at_ps)
    elif at_ps == NEVER:
        timing.stop(w, timing.thread_timer(w, number))
    else:
        timing.arm_thread(w, number, at_ps)


@called
def issue_operation(w, k):
    """A host thread issues the operation that it stands at."""
    thread = threads(w, k)
    tenant = thread.tenant
    number = clients(w, tenant).host_job
    op = ops(w, thread.op)
    id_ = next_id(w)
    if beyond_window(w, op.stream):
        issue_behind_window(w, id_, thread.op, tenant, number)
        operation_issued(w, tenant, number, op.stream, op.mark, id_)
        return
    slot = make_launch(w, id_, thread.op, tenant, number)
    operation_issued(w, tenant, number, op.stream, op.mark, id_)
    if op.mark >= 0:
        marks(w, tenant, op.mark).slot = slot
    settle_issue(w, slot, w.now_ps)


read_by(host.issue, issue_operation)
read_by(host.log_job, logs.log_job)
read_by(host.log_rejection, logs.log_rejection)
read_by(host.log_request, logs.log_request)


@inlined
def beyond_window(w, row):
    """Whether what is issued into a stream now is seen by nobody and can do nothing.

    So many launches before it wait for the scheduler as a tenant's look-ahead shows; it waits for the last of them.
    """
    return stream_rows(w, row).in_line == 1 and streams(w, row).window >= problem(w).lookahead


@called
def issue_behind_window(w, id_, place, tenant, job):
    """An operation waits until it comes into the window."""
    number = w.free_ahead
    ahead = aheads(w, number)
    w.free_ahead = ahead.after
    w.free_aheads -= 1
    ahead.id = id_
    ahead.issued_ps = w.now_ps
    ahead.op = place
    ahead.job = job
    ahead.after = NONE
    op = ops(w, place)
    if is_scheduled(op):
        clients(w, tenant).kernels_pending += 1
    stream = streams(w, op.stream)
    if stream.first_ahead == NONE:
        stream.first_ahead = number
    else:
        aheads(w, stream.last_ahead).after = number
    stream.last_ahead = number


@inlined
def free_ahead_slot(w, number, tenant):
    """Give the slot of something issued ahead back."""
    ahead = aheads(w, number)
    if is_scheduled(ops(w, ahead.op)):
        clients(w, tenant).kernels_pending -= 1
    ahead.after = w.free_ahead
    w.free_ahead = number
    w.free_aheads += 1


@called
def fill_window(w, row, at_ps):
    """What was issued ahead comes into a stream's window, as far as this has room; copies go on at ``at_ps``."""
    stream = streams(w, row)
    tenant = stream_rows(w, row).tenant
    while stream.first_ahead != NONE and stream.window < problem(w).lookahead:
        if not has_slots(w):
            w.short = 1
            w.short_ps = at_ps
            return
        number = stream.first_ahead
        ahead = aheads(w, number)
        stream.first_ahead = ahead.after
        slot = make_launch(w, ahead.id, ahead.op, tenant, ahead.job)
        launches(w, slot).issued_ps = ahead.issued_ps
        free_ahead_slot(w, number, tenant)
        settle_issue(w, slot, at_ps)


@inlined
def has_slots(w):
    """Whether there are more slots than one event takes."""
    return w.free_launches > problem(w).margin and w.free_edges > problem(w).edge_margin and w.free_aheads > 0


@called
def fill_all_windows(w):
    """There are slots for what found none (see :func:`fill_window`)."""
    w.short = 0
    for row in range(problem(w).streams):
        fill_window(w, row, w.short_ps)


@called
def drop_ahead_of_job(w, tenant, job):
    """What a job that was rejected has issued ahead is gone; other jobs' comes forward."""
    for row in range(problem(w).streams):
        if stream_rows(w, row).tenant != tenant:
            continue
        stream = streams(w, row)
        before = NONE
        number = stream.first_ahead
        while number != NONE:
            ahead = aheads(w, number)
            after = ahead.after
            if ahead.job != job:
                before = number
            else:
                if before == NONE:
                    stream.first_ahead = after
                else:
                    aheads(w, before).after = after
                if after == NONE:
                    stream.last_ahead = before
                operation_finished(w, tenant, job, row, NONE, ahead.id)
                free_ahead_slot(w, number, tenant)
            number = after
        fill_window(w, row, w.now_ps)


read_by(world.core_rules, problem)
read_by(world.core, cores)
read_by(world.process, processes)
read_by(world.set_core_timer, timing.arm_core)


@on_records(world.traffic_changed)
def _traffic_changed(w):
    gpu = problem(w)
    w.dram_left = left_for_gpu(gpu.dram_bytes_per_us, w.cpu_traffic, gpu.kappa, gpu.saturation)
    context = contexts(w, w.slicer_context)
    if context.active == 1:
        # The event loop settles it before anything else happens; where it is being settled its rates come last.
        context.next_ps = w.now_ps


read_by(host_changed, place_host)


MULTIPLIER_HIGH = np.uint64(2549297995355413924)
MULTIPLIER_LOW = np.uint64(4865540595714422341)
MASK_32 = np.uint64(0xFFFFFFFF)
U0, U1, U11, U32, U58, U63 = (np.uint64(n) for n in (0, 1, 11, 32, 58, 63))
TO_UNIT = 1.0 / 9007199254740992.0


@inlined
def high_product(a, b):
    """Upper 64 bits of a product of two uint64."""
    a_high = a >> U32
    a_low = a & MASK_32
    b_high = b >> U32
    b_low = b & MASK_32
    middle = a_high * b_low + ((a_low * b_low) >> U32)
    carried = (middle & MASK_32) + a_low * b_high
    return a_high * b_high + (middle >> U32) + (carried >> U32)


@inlined
def step(random):
    """Let a generator's state go on."""
    low = random.low * MULTIPLIER_LOW
    high = high_product(random.low, MULTIPLIER_LOW) + random.high * MULTIPLIER_LOW + random.low * MULTIPLIER_HIGH
    new_low = low + random.increment_low
    carry = U1 if new_low < low else U0
    new_high = high + random.increment_high + carry
    random.high = new_high
    random.low = new_low


@inlined
def uniform(random):
    """The next draw of ``Generator.random()``: 53 bits, 0 <= u < 1."""
    step(random)
    mixed = random.high ^ random.low
    turn = random.high >> U58
    mixed = (mixed >> turn) | (mixed << ((U63 - turn + U1) & U63))
    return np.float64(mixed >> U11) * TO_UNIT

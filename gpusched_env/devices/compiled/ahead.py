"""What hosts have issued behind the scheduler's window.

Hosts run ahead of the GPU by hundreds of operations, of which the scheduler sees a few, and nobody the rest. Where
these can only go in line, behind each other in their stream, they wait as a few numbers each and become launches when
they come into the window: so a decision touches what it is about, however far hosts are ahead.
"""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import aheads, clients, launches, ops, problem, stream_rows, streams
from gpusched_env.devices.compiled.issuing import is_scheduled, make_launch, settle_issue
from gpusched_env.devices.compiled.layout import NONE
from gpusched_env.workload.host import operation_finished


@inlined
def beyond_window(w, row):
    """Whether what is issued into a stream now is seen by nobody and can do nothing.

    So many launches before it wait for the scheduler as a tenant's look-ahead shows; it waits for the last of them.
    """
    return stream_rows(w, row).in_line == 1 and streams(w, row).window >= problem(w).lookahead


@called
def run_ahead(w, id_, place, tenant, job):
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
def leave_line(w, number, tenant):
    """Give the slot of something issued ahead back."""
    ahead = aheads(w, number)
    if is_scheduled(ops(w, ahead.op)):
        clients(w, tenant).kernels_pending -= 1
    ahead.after = w.free_ahead
    w.free_ahead = number
    w.free_aheads += 1


@called
def come_forward(w, row, at_ps):
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
        leave_line(w, number, tenant)
        settle_issue(w, slot, at_ps)


@inlined
def has_slots(w):
    """Whether there are more slots than one event takes."""
    return w.free_launches > problem(w).margin and w.free_edges > problem(w).edge_margin and w.free_aheads > 0


@called
def bring_forward(w):
    """There are slots for what found none (see :func:`come_forward`)."""
    w.short = 0
    for row in range(problem(w).streams):
        come_forward(w, row, w.short_ps)


@called
def vanish_ahead(w, tenant, job):
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
                leave_line(w, number, tenant)
            number = after
        come_forward(w, row, w.now_ps)

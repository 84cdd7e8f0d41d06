"""Which jobs are to be in time, when not all can be: the choice that futures and plans make alike.

Jobs are added in order of deadlines, and whenever one cannot be in time, the one that earns least for its time is left
out (Moore, 1968, with weights). Where late jobs cannot be rejected, a job needs the time of those before it of its
tenant as well.
"""

from __future__ import annotations

import math

from gpusched_env.compiling import cached, called
from gpusched_env.planning.fluid_tables import NOBODY, ROUNDING_US, Floats, Work
from gpusched_env.scheduling.view import JobColumn


@called
def keep_in_order(
    work: Floats, count: int, forced: int, now_us: float, price: float, tenants: Floats, scale: float
) -> None:
    """Choose the jobs that are to be in time, as :func:`keep` does, where nothing can be rejected.

    A job that is left out frees the GPU only if no kept one of its tenant stands behind it: so the last kept one of a
    tenant is.
    """
    for tenant in range(tenants.shape[0]):
        work[Work.LAST_KEPT, tenant] = work[Work.NEWEST, tenant] = NOBODY
    done_us = scale * work[Work.LEFT_US, forced] if forced != NOBODY else 0.0
    for job in range(count):
        tenant = int(work[Work.TENANT, job])
        work[Work.BEFORE, job], work[Work.NEWEST, tenant] = work[Work.NEWEST, tenant], job
        work[Work.KEPT, job] = 0.0
        late = work[Work.LATE, job] > 0.0 or work[Work.DUE_US, job] == math.inf
        if job == forced or late or work[Work.EARNS, job] <= price:
            continue
        work[Work.KEPT, job], work[Work.LAST_KEPT, tenant] = 1.0, job
        done_us += scale * needed_us(work, job, forced)
        while done_us > work[Work.DUE_US, job] - now_us + ROUNDING_US:
            worst, least = NOBODY, math.inf
            for other in range(tenants.shape[0]):
                last = int(work[Work.LAST_KEPT, other])
                if last != NOBODY:
                    earns = work[Work.EARNS, last]
                    if earns < least or (earns == least and last < worst):
                        worst, least = last, earns
            if worst == NOBODY:
                break
            done_us -= scale * needed_us(work, worst, forced)
            work[Work.KEPT, worst] = 0.0
            before = int(work[Work.BEFORE, worst])
            while before != NOBODY and work[Work.KEPT, before] == 0.0:
                before = int(work[Work.BEFORE, before])
            work[Work.LAST_KEPT, int(work[Work.TENANT, worst])] = before
    if forced != NOBODY:
        tenant = int(work[Work.TENANT, forced])
        work[Work.KEPT, forced] = 1.0
        work[Work.LAST_KEPT, tenant] = max(work[Work.LAST_KEPT, tenant], forced)


@called
def needed_us(work: Floats, job: int, forced: int) -> float:
    """Time of a job and of those before it of its tenant, back to one that is kept (us); the forced one is counted
    apart."""
    needed = work[Work.LEFT_US, job]
    before = int(work[Work.BEFORE, job])
    while before != NOBODY and work[Work.KEPT, before] == 0.0:
        if before != forced:
            needed += work[Work.LEFT_US, before]
        before = int(work[Work.BEFORE, before])
    return float(needed)


@cached()
def add_late_before(jobs: Floats, due_us: Floats, needs_us: Floats) -> None:
    """Add to what jobs need what late ones of their tenants need that stand before them.

    Args:
        jobs: rows of a View's table; of each tenant the oldest first.
        due_us: deadlines from now on, shape ``(jobs,)``.
        needs_us: profiled time left, of the same shape; written.
    """
    for row in range(1, jobs.shape[0]):
        before = row - 1
        while before >= 0 and jobs[before, JobColumn.TENANT] != jobs[row, JobColumn.TENANT]:
            before -= 1
        if before >= 0 and needs_us[before] > due_us[before]:
            needs_us[row] += needs_us[before]


@called
def keep(work: Floats, count: int, forced: int, now_us: float, price: float, scale: float) -> int:
    """Choose the jobs that are to be in time, those that earn most: quickly, not always the best.

    Jobs are taken in order of deadlines; whenever one would be late, the one that earns least for its time is left
    out (as by Moore for jobs of equal weight, where that is the longest). Job ``forced`` is kept, before all others.

    Returns:
        how many jobs with a deadline are left out.
    """
    done_us = scale * work[Work.LEFT_US, forced] if forced != NOBODY else 0.0
    left_out = 0
    # Of the kept ones, the first that earns least; and which that was without the newest one.
    worst, least, before, least_before = NOBODY, math.inf, NOBODY, math.inf
    for job in range(count):
        due_us, earns = work[Work.DUE_US, job], work[Work.EARNS, job]
        work[Work.KEPT, job] = 0.0
        if job == forced or due_us == math.inf:
            continue
        if earns <= price:
            left_out += 1
            continue
        work[Work.KEPT, job] = 1.0
        done_us += scale * work[Work.LEFT_US, job]
        is_worst = earns < least
        if is_worst:
            worst, least, before, least_before = job, earns, worst, least
        while done_us > due_us - now_us + ROUNDING_US and worst != NOBODY:
            work[Work.KEPT, worst] = 0.0
            done_us -= scale * work[Work.LEFT_US, worst]
            left_out += 1
            if is_worst:
                worst, least, is_worst = before, least_before, False
                continue
            worst, least = NOBODY, math.inf
            for other in range(job + 1):
                if work[Work.EARNS, other] < least and work[Work.KEPT, other] > 0.0:
                    worst, least = other, work[Work.EARNS, other]
    if forced != NOBODY:
        work[Work.KEPT, forced] = 1.0
    return left_out

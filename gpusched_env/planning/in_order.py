"""Jobs where nothing can be rejected: a tenant answers in order, so that what is late has to be done before the rest.

Where late jobs can be rejected they go, or wait until there is room. Where they cannot, one that waits for room holds
up every job of its tenant behind it, and these become late in turn. So what a job needs of the GPU is what its tenant
has before it as well, as far as that is not counted already; and whoever stands before a job that is to be in time is
as urgent as that.
"""

from __future__ import annotations

import math

from gpusched_env.compiling import cached, called
from gpusched_env.planning.fluid_tables import NOBODY, ROUNDING_US, Floats, FluidJob
from gpusched_env.scheduling.view import JobColumn


@called
def keep_in_order(work: Floats, there: int, forced: int, now_us: float, price: float, scale: float) -> None:
    """Choose the jobs that are to be in time, as :func:`~gpusched_env.planning.fluid.keep` does.

    A job that is left out frees the GPU only if no kept one of its tenant stands behind it; of others, none is.
    """
    done_us = scale * work[forced, FluidJob.LEFT_US] if forced != NOBODY else 0.0
    for job in range(there):
        work[job, FluidJob.KEPT] = 0.0
    for job in range(there):
        late = work[job, FluidJob.LATE] > 0.0 or work[job, FluidJob.DUE_US] == math.inf
        if job == forced or late or work[job, FluidJob.EARNS] <= price:
            continue
        work[job, FluidJob.KEPT] = 1.0
        done_us += scale * needed_us(work, job, forced)
        while done_us > work[job, FluidJob.DUE_US] - now_us + ROUNDING_US:
            worst, least = NOBODY, math.inf
            for other in range(job + 1):
                if (
                    work[other, FluidJob.KEPT] > 0.0
                    and work[other, FluidJob.EARNS] < least
                    and not stands_before_kept(work, job + 1, other)
                ):
                    worst, least = other, work[other, FluidJob.EARNS]
            if worst == NOBODY:
                break
            done_us -= scale * needed_us(work, worst, forced)
            work[worst, FluidJob.KEPT] = 0.0
    if forced != NOBODY:
        work[forced, FluidJob.KEPT] = 1.0


@called
def needed_us(work: Floats, job: int, forced: int) -> float:
    """Time of a job and of those before it of its tenant, back to one that is kept (us); the forced one is counted
    apart."""
    needed = work[job, FluidJob.LEFT_US]
    for before in range(job - 1, -1, -1):
        if work[before, FluidJob.TENANT] != work[job, FluidJob.TENANT]:
            continue
        if work[before, FluidJob.KEPT] > 0.0:
            break
        if before != forced:
            needed += work[before, FluidJob.LEFT_US]
    return float(needed)


@called
def stands_before_kept(work: Floats, there: int, job: int) -> bool:
    """Whether a kept job of its tenant comes after a job, among the first ``there``."""
    found = 0
    for later in range(job + 1, there):
        same = work[later, FluidJob.TENANT] == work[job, FluidJob.TENANT]
        found += same and work[later, FluidJob.KEPT] > 0.0
    return bool(found > 0)


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

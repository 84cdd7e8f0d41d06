"""A fluid model of the GPU: whole jobs that go on at speeds, for schedulers that try thousands of futures.

The device itself is too slow to be asked thousands of times for each decision, and knows too much. Here the GPU is a
machine that works on jobs as on fluids:

* A job that is alone in service goes on at the profiled speed. With others there, the one that goes first is served
  and those behind it that share a few launches in flight, as a dispatcher has it; the others wait. Speeds are those
  of these jobs side by side (:mod:`gpusched_env.planning.interference`).
* Where the speeds of pairs are not known, the one that goes first has the speed ``first``; the next ones share
  ``others``, each :data:`SHARE` of what those before it leave. Together they do more than one job's work at a time,
  as kernels of several jobs fill the GPU.
* A tenant's jobs are served one at a time, in order of arrival. A tenant without an objective always has a job.
* Jobs with a deadline are chosen anew that are to be in time (:func:`~gpusched_env.planning.in_time.keep`) whenever
  one has come or gone; the others are last. Jobs that cannot be in time any more are given up, and those that are not
  kept and stand before one of their tenant that is. Where nothing can be rejected they have to be done.

One job may be forced: it goes first whatever its deadline, until it is done.

Where late jobs can be rejected they go, or wait until there is room. Where they cannot, one that waits for room holds
up every job of its tenant behind it, and these become late in turn. So what a job needs of the GPU is what its tenant
has before it as well, as far as that is not counted already; and whoever stands before a job that is to be in time is
as urgent as that.
"""

from __future__ import annotations

import math
from typing import Final

from gpusched_env.compiling import called
from gpusched_env.planning.fluid_tables import (
    MEMORY_ROWS,
    MOST,
    NOBODY,
    REMEMBERED,
    ROUNDING,
    ROUNDING_US,
    START_ROWS,
    Floats,
    FluidJob,
    FluidTenant,
    Model,
    Work,
    stepped,
)
from gpusched_env.planning.interference import disturbance

SHARE: Final = 0.75
"""What the next job takes of the speed that is left to jobs which do not go first."""
LAUNCHES_BESIDE: Final = 4
"""Launches in flight of all jobs but the first, as dispatchers of intervals have it."""


@called
def write_job(work: Floats, job: int, left_us: float, tenants: Floats) -> None:
    """Write what is left of a job."""
    work[Work.LEFT_US, job] = stepped(left_us)
    earned = tenants[int(work[Work.TENANT, job]), FluidTenant.WEIGHT]
    work[Work.EARNS, job] = earned / max(work[Work.LEFT_US, job], ROUNDING_US)


@called
def begin(jobs: Floats, tenants: Floats, model: Model, work: Floats) -> tuple[int, float]:
    """Write what every future begins with, :attr:`Work.START` and :attr:`Work.FROM`: the jobs of a table, but for
    those that cannot be in time and are given up.

    Returns:
        jobs that are there, weights of those that cannot be in time.
    """
    lost, count = 0.0, 0
    for job in range(jobs.shape[0] - 1, -1, -1):
        if jobs[job, FluidJob.LEFT_US] > jobs[job, FluidJob.DUE_US] + ROUNDING_US:
            lost += tenants[int(jobs[job, FluidJob.TENANT]), FluidTenant.WEIGHT]
    for job in range(jobs.shape[0]):
        late = jobs[job, FluidJob.LEFT_US] > jobs[job, FluidJob.DUE_US] + ROUNDING_US
        work[Work.FROM, job] = count
        if late and model.rejects:
            continue
        work[Work.TENANT, count], work[Work.DUE_US, count] = jobs[job, FluidJob.TENANT], jobs[job, FluidJob.DUE_US]
        write_job(work, count, jobs[job, FluidJob.LEFT_US], tenants)
        work[Work.LATE, count] = 1.0 if late else 0.0
        for row in range(START_ROWS):
            work[Work.START + row, count] = work[row, count]
        count += 1
    return count, lost


@called
def begin_anew(work: Floats, count: int) -> None:
    """Begin another future with the ``count`` jobs of :func:`begin`."""
    for row in range(START_ROWS):
        for job in range(count):
            work[row, job] = work[Work.START + row, job]


@called
def give_up_late(
    work: Floats, count: int, forced: int, now_us: float, tenants: Floats, model: Model
) -> tuple[int, int, float]:
    """Remove jobs that cannot be in time, or note that they are late where nothing can be rejected.

    Returns:
        jobs that are there, which of them goes first, weights of those that are late now.
    """
    lost = 0.0
    for job in range(count - 1, -1, -1):
        if work[Work.LEFT_US, job] <= work[Work.DUE_US, job] - now_us + ROUNDING_US:
            continue
        if work[Work.LATE, job] == 0.0:
            lost += tenants[int(work[Work.TENANT, job]), FluidTenant.WEIGHT]
            work[Work.LATE, job] = 1.0
        if model.rejects:
            forced, count = removed(work, count, job, forced), count - 1
    return count, forced, lost


@called
def may_be_late_us(work: Floats, count: int) -> float:
    """The first time that any job, of those that are not late, may be found to be."""
    least = math.inf
    for job in range(count):
        if work[Work.LATE, job] == 0.0 and work[Work.DUE_US, job] < math.inf:
            least = min(least, in_time_until_us(work[Work.DUE_US, job], work[Work.LEFT_US, job]))
    return least


@called
def in_time_until_us(due_us: float, left_us: float) -> float:
    """Until then a job is not found to be late even if it is not served: a little less, as times are rounded."""
    return due_us - left_us - ROUNDING * due_us


@called
def give_up_in_the_way(work: Floats, count: int, forced: int, tenants: Floats, lost: float) -> tuple[int, int, float]:
    """Remove jobs that are not kept and stand before a kept one of their tenant.

    Returns:
        jobs that are there, which of them goes first, ``lost`` and the weights of those removed.
    """
    kept_later = 0
    for job in range(count - 1, -1, -1):
        tenant = int(work[Work.TENANT, job])
        if work[Work.KEPT, job] > 0.0:
            kept_later |= 1 << tenant
        elif kept_later >> tenant & 1 and work[Work.DUE_US, job] < math.inf:
            lost += tenants[tenant, FluidTenant.WEIGHT]
            forced, count = removed(work, count, job, forced), count - 1
    return count, forced, lost


@called
def serve(work: Floats, count: int, forced: int, alone: bool, tenants: Floats, model: Model) -> int:
    """Say who is served and how quickly, :attr:`Work.SERVED` and :attr:`Work.SPEED`; gives their number.

    Where the speeds of pairs are known, those behind the first share :data:`LAUNCHES_BESIDE` launches: a graph is one,
    and other jobs take all that are left. Where they are not, all are served.
    """
    if forced != NOBODY and alone:
        return put_in_service(work, 0, forced, 1.0)
    known = model.pairs.shape[0] > 0
    waiting = put_in_order(work, count, forced, tenants, model)
    if waiting == 0:
        return 0
    first = int(work[Work.ORDER, 0])
    served, left = put_in_service(work, 0, first, 1.0 if known or waiting == 1 else model.first), model.others
    for place in range(1, waiting):
        job = int(work[Work.ORDER, place])
        if known:
            served = serve_behind(work, served, job, model)
        else:
            served = put_in_service(work, served, job, SHARE * left)
            left -= SHARE * left
    return served


@called
def put_in_order(work: Floats, count: int, forced: int, tenants: Floats, model: Model) -> int:
    """Write :attr:`Work.ORDER`, oldest jobs of tenants: the forced one, kept ones, those without a deadline, the rest;
    the last two the other way round where nothing can be rejected. Gives the number of those that are served."""
    seen, ordered, others, launches = 0, 0, 0, LAUNCHES_BESIDE
    if forced != NOBODY:
        work[Work.ORDER, 0] = forced
        ordered = 1
    known = model.pairs.shape[0] > 0
    for job in range(count):
        tenant = int(work[Work.TENANT, job])
        is_oldest, seen = not seen >> tenant & 1, seen | 1 << tenant
        if not is_oldest or job == forced:
            continue
        if work[Work.KEPT, job] == 0.0 and (model.rejects or work[Work.LAST_KEPT, tenant] < job):
            work[Work.OTHERS, others] = job
            others += 1
            continue
        work[Work.ORDER, ordered] = job
        ordered += 1
        if known and ordered > 1:
            launches = launches - 1 if tenants[tenant, FluidTenant.GRAPHS] > 0.0 else 0
            if launches == 0:
                return ordered
    # What is late and has to be done holds up all that will come.
    for best_effort in (model.rejects, not model.rejects):
        for place in range(others):
            job = int(work[Work.OTHERS, place])
            if (work[Work.DUE_US, job] == math.inf) != best_effort:
                continue
            work[Work.ORDER, ordered] = job
            ordered += 1
            if known and ordered > 1:
                graphs = tenants[int(work[Work.TENANT, job]), FluidTenant.GRAPHS] > 0.0
                launches = launches - 1 if graphs else 0
                if launches == 0:
                    return ordered
    return ordered


@called
def put_in_service(work: Floats, served: int, job: int, speed: float) -> int:
    """Serve one job more, in order of places; the number of those that are served."""
    if speed == 0.0:
        return served
    place = served
    while place > 0 and work[Work.SERVED, place - 1] > job:
        work[Work.SERVED, place], work[Work.SPEED, place] = work[Work.SERVED, place - 1], work[Work.SPEED, place - 1]
        place -= 1
    work[Work.SERVED, place], work[Work.SPEED, place] = job, speed
    return served + 1


@called
def serve_behind(work: Floats, served: int, job: int, model: Model) -> int:
    """Serve a job behind those that are served, which slow it and are slowed by it
    (:func:`~gpusched_env.planning.interference.speeds_in_order`); the number of those that are served."""
    mine, speed = int(work[Work.TENANT, job]), 1.0
    for place in range(served):
        speed *= model.pairs[mine, int(work[Work.TENANT, int(work[Work.SERVED, place])]), 1]
    for place in range(served):
        work[Work.SPEED, place] *= disturbed(
            work, int(work[Work.TENANT, int(work[Work.SERVED, place])]), mine, speed, model
        )
    return put_in_service(work, served, job, speed)


@called
def disturbed(work: Floats, before: int, behind: int, speed: float, model: Model) -> float:
    """Factor on the speed of a tenant's job by another one's behind it that others keep at ``speed``."""
    faster, slower = model.pairs[before, behind, 0], model.pairs[behind, before, 1]
    if speed == slower:
        # Behind that one only. No power that is remembered is as quick as one that is 1.
        return float(faster)
    # Powers take longer than all else here, and few meet.
    entry = (int(speed * REMEMBERED) + 31 * before + 7 * behind) % REMEMBERED
    row, place = entry // MOST, entry % MOST
    pair = before * MOST + behind
    if work[Work.PAIR + row, place] != pair or work[Work.PAIR_SPEED + row, place] != speed:
        work[Work.PAIR + row, place], work[Work.PAIR_SPEED + row, place] = pair, speed
        work[Work.DISTURBED + row, place] = disturbance(faster, slower, speed, model.exponent)
    return float(work[Work.DISTURBED + row, place])


@called
def advance(
    work: Floats, count: int, served: int, forced: int, now_us: float, step_us: float, tenants: Floats
) -> tuple[int, int, float]:
    """Let ``step_us`` pass until ``now_us``; jobs that are done go, best-effort ones begin anew.

    Returns:
        jobs that are there, which of them goes first, what was lost, less what best-effort jobs earned.
    """
    lost = 0.0
    for place in range(served - 1, -1, -1):
        job = int(work[Work.SERVED, place])
        done_us = step_us * work[Work.SPEED, place]
        left_us = work[Work.LEFT_US, job] - done_us
        tenant = int(work[Work.TENANT, job])
        due_us = work[Work.DUE_US, job]
        best_effort = due_us == math.inf
        if best_effort:
            lost -= tenants[tenant, FluidTenant.WEIGHT] * done_us / tenants[tenant, FluidTenant.ALONE_US]
        if left_us > ROUNDING_US:
            write_job(work, job, left_us, tenants)
        elif best_effort:
            write_job(work, job, tenants[tenant, FluidTenant.ALONE_US], tenants)
            forced = NOBODY if forced == job else forced
        else:
            if now_us > due_us + ROUNDING_US and work[Work.LATE, job] == 0.0:
                lost += tenants[tenant, FluidTenant.WEIGHT]
            forced, count = removed(work, count, job, forced), count - 1
    return count, forced, lost


@called
def arrive(work: Floats, count: int, forced: int, now_us: float, tenant: int, tenants: Floats) -> int:
    """Put in a new job by its deadline; the row of the job that goes first from now on."""
    due_us = now_us + tenants[tenant, FluidTenant.SLO_US]
    place = count
    while place > 0 and work[Work.DUE_US, place - 1] > due_us:
        for row in range(START_ROWS):
            work[row, place] = work[row, place - 1]
        place -= 1
    work[Work.TENANT, place], work[Work.DUE_US, place], work[Work.LATE, place] = tenant, due_us, 0.0
    write_job(work, place, tenants[tenant, FluidTenant.ALONE_US], tenants)
    return forced + 1 if forced >= place else forced


@called
def begin_tenants(tenants: Floats, mean_gap_us: float, work: Floats) -> None:
    """Write :attr:`Work.SHARES`, each tenant's by its rate, and forget how others disturbed each other."""
    for row in range(MEMORY_ROWS):
        for entry in range(MOST):
            work[Work.PAIR + row, entry] = NOBODY
    shares = 0.0
    for tenant in range(tenants.shape[0]):
        shares += tenants[tenant, FluidTenant.JOBS_A_US] * mean_gap_us
        work[Work.SHARES, tenant] = shares


@called
def drawn_tenant(draw: float, tenants: int, work: Floats) -> int:
    """Whose job it is: each tenant's with the share of its rate."""
    tenant = 0
    while draw >= work[Work.SHARES, tenant] and tenant < tenants - 1:
        tenant += 1
    return tenant


@called
def removed(work: Floats, count: int, job: int, forced: int) -> int:
    """Take a job out; the row of the job that goes first from now on."""
    for row in range(Work.BEFORE):
        for later in range(job + 1, count):
            work[row, later - 1] = work[row, later]
    if forced == job:
        return NOBODY
    return forced - 1 if forced > job else forced


@called
def is_late(work: Floats, job: int) -> bool:
    """Whether a job has a deadline and is not kept, and was not lost before."""
    unkept = work[Work.KEPT, job] == 0.0 and work[Work.DUE_US, job] < math.inf
    return bool(unkept and work[Work.LATE, job] == 0.0)


@called
def is_oldest(jobs: Floats, job: int) -> bool:
    """Whether no job of its tenant is before it."""
    before = 0
    for other in range(job):
        before += jobs[other, FluidJob.TENANT] == jobs[job, FluidJob.TENANT]
    return bool(before == 0)

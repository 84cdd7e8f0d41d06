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
* Jobs with a deadline are chosen anew that are to be in time (:func:`keep`) whenever one has come or gone; the others
  are last. Jobs that cannot be in time any more are given up, and those that are not kept and stand before one of
  their tenant that is. Where nothing can be rejected they have to be done (:mod:`gpusched_env.planning.fluid`).

One job may be forced: it goes first whatever its deadline, until it is done.

Where late jobs can be rejected they go, or wait until there is room. Where they cannot, one that waits for room holds
up every job of its tenant behind it, and these become late in turn. So what a job needs of the GPU is what its tenant
has before it as well, as far as that is not counted already; and whoever stands before a job that is to be in time is
as urgent as that.
"""

from __future__ import annotations

import enum
import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached, called
from gpusched_env.planning.interference import disturbance
from gpusched_env.scheduling.view import JobColumn

Floats = NDArray[np.float64]

NOBODY: Final = -1
ROUNDING_US: Final = 1e-6
"""Tolerance of comparisons of times, which are sums of quotients."""


class FluidTenant(enum.IntEnum):
    """Columns of the table of tenants."""

    ALONE_US = 0
    """Profiled turnaround of a job alone."""
    SLO_US = enum.auto()
    """Objective for turnarounds; ``inf`` without one."""
    WEIGHT = enum.auto()
    JOBS_A_US = enum.auto()
    """Mean rate of arrivals; 0 without an objective."""
    GRAPHS = enum.auto()
    """1 if its jobs are launched as graphs."""


class FluidJob(enum.IntEnum):
    """Columns of the table of jobs, which are in order of deadlines; those behind :attr:`LEFT_US` are worked in."""

    TENANT = 0
    DUE_US = enum.auto()
    """Deadline, from now on; ``inf`` without an objective."""
    LEFT_US = enum.auto()
    """Profiled device time left."""
    LATE = enum.auto()
    """1 if it is late for sure and lost, but has to be done, as nothing can be rejected."""
    EARNS = enum.auto()
    """Weight over the time left."""
    KEPT = enum.auto()
    SPEED = enum.auto()


class Model(NamedTuple):
    """Figures of the model."""

    horizon_us: float
    """Simulated time that futures go on for (us)."""
    price: float
    """A job that is worth less than this for each microsecond of its time is not kept (weight a microsecond)."""
    scale: float
    """What a job takes of the machine in the plan of kept jobs, in multiples of its time."""
    first: float
    """Speed of the job that goes first while others are in service, 0 to 1."""
    others: float
    """Speed of all others together, 0 or more."""
    pairs: Floats
    """Speeds of two tenants' jobs side by side, shape ``(tenants, tenants, 2)``, which take the place of ``first`` and
    ``others`` (:func:`~gpusched_env.planning.interference.speed_table`); with no rows: they are not known."""
    exponent: float
    """Exponent of :func:`~gpusched_env.planning.interference.disturbance`."""
    rejects: bool = True
    """Whether jobs can be rejected; otherwise late ones stand in the way of those behind them
    (:mod:`gpusched_env.planning.fluid`)."""


@called
def keep_in_order(work: Floats, count: int, forced: int, now_us: float, price: float, scale: float) -> None:
    """Choose the jobs that are to be in time, as :func:`~gpusched_env.planning.fluid.keep` does.

    A job that is left out frees the GPU only if no kept one of its tenant stands behind it; of others, none is.
    """
    done_us = scale * work[forced, FluidJob.LEFT_US] if forced != NOBODY else 0.0
    for job in range(count):
        work[job, FluidJob.KEPT] = 0.0
    for job in range(count):
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
def stands_before_kept(work: Floats, count: int, job: int) -> bool:
    """Whether a kept job of its tenant comes after a job, among the first ``count``."""
    found = 0
    for later in range(job + 1, count):
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


SHARE: Final = 0.75
"""What the next job takes of the speed that is left to jobs which do not go first."""
LAUNCHES_BESIDE: Final = 4
"""Launches in flight of all jobs but the first, as dispatchers of intervals have it."""


@called
def write_job(work: Floats, job: int, tenant: int, due_us: float, left_us: float, tenants: Floats) -> None:
    """Write a job's row."""
    work[job, FluidJob.TENANT], work[job, FluidJob.DUE_US], work[job, FluidJob.LEFT_US] = tenant, due_us, left_us
    work[job, FluidJob.EARNS] = tenants[tenant, FluidTenant.WEIGHT] / max(left_us, ROUNDING_US)


@called
def give_up(
    work: Floats, count: int, forced: int, now_us: float, tenants: Floats, model: Model
) -> tuple[int, int, float]:
    """Remove jobs that cannot be in time, plan, and remove those in the way of kept ones.

    Returns:
        jobs that are there, which of them goes first, weights of those removed.
    """
    lost = 0.0
    for job in range(count - 1, -1, -1):
        if work[job, FluidJob.LEFT_US] <= work[job, FluidJob.DUE_US] - now_us + ROUNDING_US:
            continue
        if work[job, FluidJob.LATE] == 0.0:
            lost += tenants[int(work[job, FluidJob.TENANT]), FluidTenant.WEIGHT]
            work[job, FluidJob.LATE] = 1.0
        if model.rejects:
            forced, count = removed(work, count, job, forced), count - 1
    keep(work, count, forced, now_us, model.price, model)
    if not model.rejects:
        return count, forced, lost
    kept_later = 0
    for job in range(count - 1, -1, -1):
        tenant = int(work[job, FluidJob.TENANT])
        if work[job, FluidJob.KEPT] > 0.0:
            kept_later |= 1 << tenant
        elif kept_later >> tenant & 1 and work[job, FluidJob.DUE_US] < math.inf:
            lost += tenants[tenant, FluidTenant.WEIGHT]
            forced, count = removed(work, count, job, forced), count - 1
    return count, forced, lost


@called
def keep(work: Floats, count: int, forced: int, now_us: float, price: float, model: Model) -> None:
    """Choose the jobs that are to be in time, those that earn most: quickly, not always the best.

    Jobs are taken in order of deadlines; whenever one would be late, the one that earns least for its time is left
    out (as by Moore for jobs of equal weight, where that is the longest). Job ``forced`` is kept, before all others.
    """
    scale = model.scale
    if not model.rejects:
        keep_in_order(work, count, forced, now_us, price, scale)
        return
    done_us = scale * work[forced, FluidJob.LEFT_US] if forced != NOBODY else 0.0
    for job in range(count):
        if job == forced or work[job, FluidJob.DUE_US] == math.inf or work[job, FluidJob.EARNS] <= price:
            work[job, FluidJob.KEPT] = 0.0
            continue
        work[job, FluidJob.KEPT] = 1.0
        done_us += scale * work[job, FluidJob.LEFT_US]
        while done_us > work[job, FluidJob.DUE_US] - now_us + ROUNDING_US:
            worst, least = NOBODY, math.inf
            for other in range(job + 1):
                if work[other, FluidJob.KEPT] > 0.0 and work[other, FluidJob.EARNS] < least:
                    worst, least = other, work[other, FluidJob.EARNS]
            if worst == NOBODY:
                break
            work[worst, FluidJob.KEPT] = 0.0
            done_us -= scale * work[worst, FluidJob.LEFT_US]
    if forced != NOBODY:
        work[forced, FluidJob.KEPT] = 1.0


@called
def set_speeds(work: Floats, count: int, forced: int, alone: bool, tenants: Floats, model: Model) -> None:
    """Oldest jobs of tenants are served in this order: the forced one, kept ones, those without a deadline, the rest;
    the last two the other way round where nothing can be rejected.

    Where the speeds of pairs are known, those behind the first share :data:`LAUNCHES_BESIDE` launches: a graph is one,
    and other jobs take all that are left. Where they are not, all are served.
    """
    seen, first, left, launches = 0, forced, model.others, LAUNCHES_BESIDE
    for job in range(count):
        tenant = int(work[job, FluidJob.TENANT])
        # Until it has a speed: minus its class.
        work[job, FluidJob.SPEED] = 0.0 if seen >> tenant & 1 else -urgency_class(work, count, job, model.rejects)
        seen |= 1 << tenant
    if forced != NOBODY:
        if alone:
            for job in range(count):
                work[job, FluidJob.SPEED] = 0.0
        work[forced, FluidJob.SPEED] = 1.0
        if alone:
            return
    for class_ in range(1, 4):
        for job in range(count):
            if work[job, FluidJob.SPEED] != -class_:
                continue
            tenant = int(work[job, FluidJob.TENANT])
            if first == NOBODY:
                first = job
                work[job, FluidJob.SPEED] = 1.0
            elif model.pairs.shape[0] > 0:
                work[job, FluidJob.SPEED] = 0.0
                if launches > 0:
                    serve_behind(work, count, job, model)
                    launches = launches - 1 if tenants[tenant, FluidTenant.GRAPHS] > 0.0 else 0
            else:
                work[first, FluidJob.SPEED] = model.first
                work[job, FluidJob.SPEED] = SHARE * left
                left -= SHARE * left


@called
def serve_behind(work: Floats, count: int, job: int, model: Model) -> None:
    """Serve a job behind those that are served, which slow it and are slowed by it
    (:func:`~gpusched_env.planning.interference.speeds_in_order`)."""
    mine, speed = int(work[job, FluidJob.TENANT]), 1.0
    for other in range(count):
        if work[other, FluidJob.SPEED] > 0.0:
            speed *= model.pairs[mine, int(work[other, FluidJob.TENANT]), 1]
    for other in range(count):
        if work[other, FluidJob.SPEED] > 0.0:
            theirs = int(work[other, FluidJob.TENANT])
            before, behind = model.pairs[theirs, mine, 0], model.pairs[mine, theirs, 1]
            work[other, FluidJob.SPEED] *= disturbance(before, behind, speed, model.exponent)
    work[job, FluidJob.SPEED] = speed


@called
def urgency_class(work: Floats, count: int, job: int, rejects: bool) -> float:
    """1 to 3 in the order of :func:`set_speeds`, which puts the forced one before all."""
    if work[job, FluidJob.KEPT] > 0.0 or (not rejects and stands_before_kept(work, count, job)):
        return 1.0
    # What is late and has to be done holds up all that will come.
    best_effort = work[job, FluidJob.DUE_US] == math.inf
    return 2.0 if best_effort == rejects else 3.0


@called
def advance(
    work: Floats, count: int, forced: int, now_us: float, step_us: float, tenants: Floats
) -> tuple[int, int, float]:
    """Let ``step_us`` pass until ``now_us``; jobs that are done go, best-effort ones begin anew.

    Returns:
        jobs that are there, which of them goes first, what was lost, less what best-effort jobs earned.
    """
    lost = 0.0
    for job in range(count - 1, -1, -1):
        if work[job, FluidJob.SPEED] == 0.0:
            continue
        done_us = step_us * work[job, FluidJob.SPEED]
        left_us = work[job, FluidJob.LEFT_US] - done_us
        tenant = int(work[job, FluidJob.TENANT])
        due_us = work[job, FluidJob.DUE_US]
        best_effort = due_us == math.inf
        if best_effort:
            lost -= tenants[tenant, FluidTenant.WEIGHT] * done_us / tenants[tenant, FluidTenant.ALONE_US]
        if left_us > ROUNDING_US:
            write_job(work, job, tenant, due_us, left_us, tenants)
        elif best_effort:
            write_job(work, job, tenant, due_us, tenants[tenant, FluidTenant.ALONE_US], tenants)
            forced = NOBODY if forced == job else forced
        else:
            if now_us > due_us + ROUNDING_US and work[job, FluidJob.LATE] == 0.0:
                lost += tenants[tenant, FluidTenant.WEIGHT]
            forced, count = removed(work, count, job, forced), count - 1
    return count, forced, lost


@called
def arrive(work: Floats, count: int, forced: int, now_us: float, tenant: int, tenants: Floats) -> int:
    """Put in a new job by its deadline; the row of the job that goes first from now on."""
    due_us = now_us + tenants[tenant, FluidTenant.SLO_US]
    place = count
    while place > 0 and work[place - 1, FluidJob.DUE_US] > due_us:
        for column in range(FluidJob.KEPT):
            work[place, column] = work[place - 1, column]
        place -= 1
    write_job(work, place, tenant, due_us, tenants[tenant, FluidTenant.ALONE_US], tenants)
    work[place, FluidJob.LATE] = 0.0
    return forced + 1 if forced >= place else forced


@called
def drawn_tenant(draw: float, tenants: Floats, mean_gap_us: float) -> int:
    """Whose job it is: each tenant's with the share of its rate."""
    tenant, shares = 0, tenants[0, FluidTenant.JOBS_A_US] * mean_gap_us
    while draw >= shares and tenant < tenants.shape[0] - 1:
        tenant += 1
        shares += tenants[tenant, FluidTenant.JOBS_A_US] * mean_gap_us
    return tenant


@called
def removed(work: Floats, count: int, job: int, forced: int) -> int:
    """Take a job out; the row of the job that goes first from now on."""
    for later in range(job + 1, count):
        for column in range(work.shape[1]):
            work[later - 1, column] = work[later, column]
    if forced == job:
        return NOBODY
    return forced - 1 if forced > job else forced


@called
def is_late(work: Floats, job: int) -> bool:
    """Whether a job has a deadline and is not kept, and was not lost before."""
    unkept = work[job, FluidJob.KEPT] == 0.0 and work[job, FluidJob.DUE_US] < math.inf
    return bool(unkept and work[job, FluidJob.LATE] == 0.0)


@called
def is_oldest(jobs: Floats, job: int) -> bool:
    """Whether no job of its tenant is before it."""
    before = 0
    for other in range(job):
        before += jobs[other, FluidJob.TENANT] == jobs[job, FluidJob.TENANT]
    return bool(before == 0)

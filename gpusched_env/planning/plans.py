"""Which jobs can all be in time and are worth most (Lawler and Moore's dynamic programme), and what that plan says
of each tenant's.

J. M. Moore, *An n Job, One Machine Sequencing Algorithm for Minimizing the Number of Late Jobs* (Management Science
1968); E. L. Lawler, J. M. Moore, *A Functional Equation and Its Application to Resource Allocation and Sequencing
Problems* (Management Science 1969) for jobs of different weights. Jobs that are to be in time go by deadline; of the
partial plans that are done at a time only those count that are worth more than every plan that is done before.

The scheduler ``moore`` asks it, and observations show what it says (:mod:`gpusched_env.envs.extra_columns`).

Which jobs can be in time together (:mod:`gpusched_env.planning.plans`) is no function of one job, and hard to
learn. A scheduler could do no better than such a plan if nothing came any more and the GPU did one job at a time at
the profiled speed.
"""

from __future__ import annotations

import enum
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached, called
from gpusched_env.planning.fluid_tables import stepped
from gpusched_env.planning.in_time import add_late_before
from gpusched_env.planning.outlook import Outlook
from gpusched_env.scheduling.view import JobColumn, PendingColumn, TenantColumn, View

Floats = NDArray[np.float64]

FRONT: Final = 256
"""Partial plans that go on, those that are done first: with fewer jobs than nine all of them."""
MOST_JOBS: Final = 52
"""Jobs that are looked at, the first ones that are given: a plan is the bits of a whole number in floating point."""
ON_TIME_SCRATCH: Final = (7, FRONT)
"""Shape of what :func:`worth_most` works in: the order of jobs; of plans when they are done, what they are worth, and
which jobs are in them, before and after a job."""


@cached()
def worth_most(deadline_us: Floats, machine_us: Floats, alone_us: Floats, value: Floats, scratch: Floats) -> int:
    """The jobs of the best plan; of plans worth the same, of the one that is done first.

    Args:
        deadline_us: shape ``(jobs,)``, from now on. Of equal ones the first goes first.
        machine_us: what each takes of the machine.
        alone_us: what each takes at least; one that would be late alone is in no plan.
        value: what each is worth in time; one of 0 or less is in no plan.
        scratch: of shape :data:`ON_TIME_SCRATCH`, written.

    Returns:
        bit ``k`` is set if job ``k`` is in the plan.
    """
    jobs = min(deadline_us.size, MOST_JOBS)
    order = scratch[0]
    for job in range(jobs):
        place = job
        while place > 0 and deadline_us[int(order[place - 1])] > deadline_us[job]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = job
    # Of the plans without any job.
    now, then = 1, 4
    scratch[1, 0], scratch[2, 0], scratch[3, 0] = 0.0, 0.0, 0.0
    size = 1
    for k in range(jobs):
        job = int(order[k])
        if value[job] <= 0.0 or alone_us[job] > deadline_us[job]:
            continue
        done, worth, plan = scratch[now], scratch[now + 1], scratch[now + 2]
        # Both lists go by when they are done: plans without the job, and plans with it that are in time.
        without, with_it, filled = 0, 0, 0
        best = -1.0
        while filled < FRONT:
            longer = with_it < size and done[with_it] + machine_us[job] <= deadline_us[job]
            if without == size and not longer:
                break
            if longer and without < size:
                later = done[with_it] + machine_us[job] - done[without]
                longer = later < 0.0 or (later == 0.0 and worth[with_it] + value[job] > worth[without])
            if longer:
                at, of, jobs_in = done[with_it] + machine_us[job], worth[with_it] + value[job], plan[with_it] + 2.0**job
                with_it += 1
            else:
                at, of, jobs_in = done[without], worth[without], plan[without]
                without += 1
            if of > best:
                scratch[then, filled], scratch[then + 1, filled], scratch[then + 2, filled] = at, of, jobs_in
                best = of
                filled += 1
        now, then = then, now
        size = filled
    return int(scratch[now + 2, size - 1])


NOBODY: Final = -1
"""What stands in place of a tenant's row."""
NOTHING: Final = -1.0
"""What stands in place of a job's number."""
KEPT_DEAR: Final = 0.0
KEPT: Final = 1.0
BEST_EFFORT: Final = 2.0
UNKEPT: Final = 3.0
"""Values of :attr:`PlanColumn.CLASS`; where nothing can be rejected, the last two the other way round."""
SCRATCH: Final = (ON_TIME_SCRATCH[0] + 5, ON_TIME_SCRATCH[1])
"""Shape of what :func:`plan_oldest` works in: behind that of a plan, figures of jobs."""


class PlanColumn(enum.IntEnum):
    """Columns of what is found: a row a tenant, about its oldest job unless it says otherwise."""

    EARNS = 0
    """Weight over time alone, over the mean of all tenants with an objective."""
    HAS_SLO = enum.auto()
    """1 if it has an objective, whether it has a job or not."""
    PRESENT = enum.auto()
    """1 if it has a job; otherwise the columns behind it are 0, but for the deadline."""
    DEADLINE_US = enum.auto()
    """``inf`` without an objective or a job. Where nothing can be rejected: of one that is late and stands before one
    that is kept that of the kept one."""
    LEFT_US = enum.auto()
    """Profiled device time left, launched kernels included."""
    AHEAD_US = enum.auto()
    """Profiled device time left of all kept jobs with earlier deadlines."""
    KEPT = enum.auto()
    """1 if it is among the jobs that can all be in time, one after the other, and are worth most; where nothing can be
    rejected, also if it stands before one that is."""
    KEPT_DEAR = enum.auto()
    """``KEPT`` where each microsecond costs what it is worth (:func:`~gpusched_env.planning.outlook.worth_a_us`)."""
    CLASS = enum.auto()
    """Class of a tenant that does not go first: 0 if its job is kept even where time is dear, 1 if it is kept
    otherwise, 2 without an objective (or a job, yet), 3 if it is not kept. Where nothing can be rejected these go
    before those without an objective, as they hold up all that will come: 2 then, and 3 without an objective."""
    GIVEN_UP = enum.auto()
    """Number of its first job that may be rejected and that would be late even alone, or that is not kept where time is
    dear and stands before one that is; :data:`NOTHING`: there is none."""
    LOST = enum.auto()
    """Weight of all its jobs with an objective that are not kept."""
    KEPT_US = enum.auto()
    """Profiled device time left of all its jobs that are kept."""
    AHEAD = enum.auto()
    """What is lost more in sampled futures if it goes first than if who is first in the plan does, in multiples of the
    mean weight; ``inf``: it cannot be in time. Of :func:`gpusched_env.planning.lookahead.look_ahead`, 0 without."""
    AHEAD_ALONE = enum.auto()
    """``AHEAD`` if no other job is served until it is done."""


def plan_view(view: View, outlook: Outlook) -> Floats:
    """The plan of a view, shape ``(tenants, len(Plan))``."""
    found = np.zeros((len(view.tenants), len(PlanColumn)))
    tables = view.jobs.array, view.tenants.array, oldest_of(view)
    plan_oldest(*tables, view.time_us, outlook, np.empty(SCRATCH), found)
    return found


def oldest_of(view: View) -> Floats:
    """The oldest pending launch of each tenant, as :func:`plan_oldest` takes them."""
    pending = view.pending.array
    oldest = np.full((len(view.tenants), len(PendingColumn)), -1.0)
    # Tenant after tenant, the oldest first.
    for row in range(len(pending) - 1, -1, -1):
        oldest[int(pending[row, PendingColumn.TENANT])] = pending[row]
    return oldest


@called
def mean_earned(tenants: Floats) -> float:
    """What a microsecond earns on average over the tenants with an objective: weight over time alone; or 1."""
    earned = 0.0
    with_slo = 0
    for tenant in range(tenants.shape[0]):
        if tenants[tenant, TenantColumn.SLO_US] < math.inf:
            earned += tenants[tenant, TenantColumn.WEIGHT] / tenants[tenant, TenantColumn.ALONE_US]
            with_slo += 1
    return earned / with_slo if earned > 0.0 else 1.0


@called
def job_left_us(jobs: Floats, row: int, tenants: Floats, oldest: Floats) -> float:
    """Profiled time left of a job alone (us), of a row of the table of jobs.

    As much of its turnaround alone as is left of the durations of its kernels: the gaps between them are in proportion.
    Where none of them is to be seen (its host has taken the job up and issued nothing yet, or is between two), as is
    left of their number.
    """
    job = jobs[row]
    tenant = int(job[JobColumn.TENANT])
    alone_us, device_us = tenants[tenant, TenantColumn.ALONE_US], tenants[tenant, TenantColumn.DEVICE_US]
    if job[JobColumn.STARTED_US] == math.inf or device_us <= 0.0:
        return stepped(alone_us)
    left_us = tenants[tenant, TenantColumn.LAUNCHED_LEFT_US]
    if oldest[tenant, PendingColumn.ID] >= 0.0 and oldest[tenant, PendingColumn.JOB] == job[JobColumn.JOB]:
        left_us += oldest[tenant, PendingColumn.JOB_LEFT_US]
    elif tenants[tenant, TenantColumn.KERNELS_LAUNCHED] == 0.0 or behind_another(jobs, row):
        # Of several jobs that a host has taken up, what is launched is of the first.
        return stepped(alone_us * job[JobColumn.UNFINISHED])
    return stepped(min(alone_us, left_us * alone_us / device_us))


@called
def behind_another(jobs: Floats, row: int) -> bool:
    """Whether a job has an older one of its tenant before it."""
    return bool(row > 0 and jobs[row - 1, JobColumn.TENANT] == jobs[row, JobColumn.TENANT])


@cached()
def plan_oldest(
    jobs: Floats, tenants: Floats, oldest: Floats, time_us: float, outlook: Outlook, scratch: Floats, out: Floats
) -> None:
    """Write the plan of all jobs.

    Args:
        jobs, tenants: a View's tables; of the jobs the first :data:`~gpusched_env.planning.plans.MOST_JOBS` count.
        oldest: by tenant its oldest pending launch, a row of a View's table; ``ID`` -1: none.
        time_us: the present.
        outlook: of the tenants; here it says what a microsecond is worth and whether jobs can be rejected.
        scratch: of shape :data:`SCRATCH`, written.
        out: written, shape ``(tenants or more, len(Plan))``.
    """
    out[:] = 0.0
    count = tenants.shape[0]
    mean = mean_earned(tenants)
    for tenant in range(count):
        out[tenant, PlanColumn.DEADLINE_US] = math.inf
        out[tenant, PlanColumn.GIVEN_UP] = NOTHING
        out[tenant, PlanColumn.HAS_SLO] = 1.0 if tenants[tenant, TenantColumn.SLO_US] < math.inf else 0.0
        out[tenant, PlanColumn.CLASS] = BEST_EFFORT if outlook.rejects else UNKEPT
        out[tenant, PlanColumn.EARNS] = (
            tenants[tenant, TenantColumn.WEIGHT] / tenants[tenant, TenantColumn.ALONE_US] / mean
        )
    rows = min(jobs.shape[0], MOST_JOBS)
    due_us, left_us, needs_us = scratch[-5, :rows], scratch[-4, :rows], scratch[-3, :rows]
    value, dear_value = scratch[-2, :rows], scratch[-1, :rows]
    for k in range(rows):
        due_us[k] = jobs[k, JobColumn.DEADLINE_US] - time_us
        left_us[k] = needs_us[k] = job_left_us(jobs, k, tenants, oldest)
        value[k] = tenants[int(jobs[k, JobColumn.TENANT]), TenantColumn.WEIGHT] if due_us[k] < math.inf else 0.0
        dear_value[k] = value[k] - outlook.price_a_us * left_us[k]
    if not outlook.rejects:
        add_late_before(jobs[:rows], due_us, needs_us)
    plan = worth_most(due_us, needs_us, needs_us, value, scratch)
    dear = worth_most(due_us, needs_us, needs_us, dear_value, scratch)
    # The last job of a tenant that is kept, its jobs being one after the other, comes first here.
    last_kept = NOBODY
    for k in range(rows - 1, -1, -1):
        tenant = int(jobs[k, JobColumn.TENANT])
        if plan >> k & 1:
            out[tenant, PlanColumn.KEPT_US] += left_us[k]
        else:
            out[tenant, PlanColumn.LOST] += value[k]
        if dear >> k & 1:
            last_kept = tenant
        elif jobs[k, JobColumn.REJECTABLE] > 0.0 and (last_kept == tenant or left_us[k] > due_us[k]):
            out[tenant, PlanColumn.GIVEN_UP] = jobs[k, JobColumn.JOB]
    for k in range(rows):
        tenant = int(jobs[k, JobColumn.TENANT])
        if out[tenant, PlanColumn.PRESENT] > 0.0:
            continue
        out[tenant, PlanColumn.PRESENT] = 1.0
        out[tenant, PlanColumn.DEADLINE_US] = jobs[k, JobColumn.DEADLINE_US]
        out[tenant, PlanColumn.LEFT_US] = left_us[k]
        out[tenant, PlanColumn.KEPT] = 1.0 if plan >> k & 1 else 0.0
        out[tenant, PlanColumn.KEPT_DEAR] = 1.0 if dear >> k & 1 else 0.0
        if not outlook.rejects:
            as_urgent_as_those_behind(jobs, rows, k, plan, dear, out)
        if out[tenant, PlanColumn.KEPT] > 0.0:
            out[tenant, PlanColumn.CLASS] = KEPT_DEAR if out[tenant, PlanColumn.KEPT_DEAR] > 0.0 else KEPT
        elif due_us[k] < math.inf:
            out[tenant, PlanColumn.CLASS] = UNKEPT if outlook.rejects else BEST_EFFORT
        for other in range(rows):
            if plan >> other & 1 and (due_us[other] < due_us[k] or (due_us[other] == due_us[k] and other < k)):
                out[tenant, PlanColumn.AHEAD_US] += left_us[other]


@called
def as_urgent_as_those_behind(jobs: Floats, rows: int, oldest: int, plan: int, dear: int, out: Floats) -> None:
    """Raise what a tenant's oldest job, a row of ``jobs``, is given by those behind it that are kept."""
    tenant = int(jobs[oldest, JobColumn.TENANT])
    for row in range(oldest + 1, rows):
        if int(jobs[row, JobColumn.TENANT]) != tenant:
            break
        if plan >> row & 1:
            if out[tenant, PlanColumn.KEPT] == 0.0:
                out[tenant, PlanColumn.DEADLINE_US] = jobs[row, JobColumn.DEADLINE_US]
            out[tenant, PlanColumn.KEPT] = 1.0
        if dear >> row & 1:
            out[tenant, PlanColumn.KEPT_DEAR] = 1.0

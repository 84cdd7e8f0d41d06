"""What is lost on average if one job goes first and chance then has it: sampled futures of :mod:`.fluid`.

Lost are the weights of jobs that are late or given up. Where the future ends those are counted too that could not all
be in time. Best-effort jobs earn their weight as they go on. Jobs of tenants with an objective come as independent
Poisson processes; each choice is tried in the same futures, so that chance favours none.
"""

from __future__ import annotations

import math
from typing import Final

from gpusched_env.compiling import cached, called
from gpusched_env.planning.fluid import (
    advance,
    arrive,
    drawn_tenant,
    give_up,
    is_late,
    is_oldest,
    keep,
    put,
    set_speeds,
)
from gpusched_env.planning.fluid_tables import NOBODY, Floats, FluidJob, FluidTenant, Model

MOST: Final = 64
"""Jobs in the model at a time: what comes while so many are there is not seen."""


@cached()
def mean_losses(
    jobs: Floats, tenants: Floats, model: Model, alone: bool, gaps: Floats, draws: Floats, work: Floats, out: Floats
) -> None:
    """Write what is lost on average if a job goes first until it is done.

    Args:
        jobs: shape ``(jobs, 3)`` or wider, columns :class:`FluidJob`, at most :data:`MOST`, in order of deadlines.
        tenants: shape ``(tenants, len(Tenant))``, at most :data:`MOST`.
        model: figures of the model.
        alone: whether no other job is served until it is done.
        gaps: shape ``(futures, arrivals)``, times between arrivals in multiples of their mean; the same futures for
            every job.
        draws: of the same shape, from 0 to below 1: whose job it is.
        work: shape ``(MOST, len(Job))``, written.
        out: shape ``(jobs,)``, written: mean loss; ``inf`` of jobs that are not the oldest of their tenant, or cannot
            be in time and could be rejected.
    """
    rate = 0.0
    for tenant in range(tenants.shape[0]):
        rate += tenants[tenant, FluidTenant.JOBS_A_US]
    mean_gap_us = 1.0 / rate if rate > 0.0 else math.inf
    for job in range(jobs.shape[0]):
        out[job] = math.inf
        in_time = jobs[job, FluidJob.LEFT_US] <= jobs[job, FluidJob.DUE_US]
        if (in_time or not model.rejects) and is_oldest(jobs, job):
            out[job] = 0.0
            for future in range(gaps.shape[0]):
                out[job] += loss(jobs, job, alone, tenants, model, mean_gap_us, gaps[future], draws[future], work)
            out[job] /= gaps.shape[0]


@cached()
def lost_by_nobody_first(
    jobs: Floats, tenants: Floats, model: Model, mean_gap_us: float, gaps: Floats, draws: Floats, work: Floats
) -> float:
    """What is lost in all futures together if no job is made to go first; arguments as for :func:`mean_losses`."""
    lost = 0.0
    for future in range(gaps.shape[0]):
        lost += loss(jobs, NOBODY, False, tenants, model, mean_gap_us, gaps[future], draws[future], work)
    return lost


@called
def loss(
    jobs: Floats,
    forced: int,
    alone: bool,
    tenants: Floats,
    model: Model,
    mean_gap_us: float,
    gaps: Floats,
    draws: Floats,
    work: Floats,
) -> float:
    """What is lost in one future if job ``forced`` goes first until it is done; the rest as :func:`mean_losses`."""
    there = jobs.shape[0]
    for job in range(there):
        put(
            work, job, int(jobs[job, FluidJob.TENANT]), jobs[job, FluidJob.DUE_US], jobs[job, FluidJob.LEFT_US], tenants
        )
        work[job, FluidJob.LATE] = 0.0
    now_us, lost, arrivals = 0.0, 0.0, 0
    next_us = gaps[0] * mean_gap_us
    while True:
        there, forced, given_up = give_up(work, there, forced, now_us, tenants, model)
        lost += given_up
        if now_us >= model.horizon_us:
            break
        set_speeds(work, there, forced, alone, tenants, model)
        step_us = min(next_us, model.horizon_us) - now_us
        for job in range(there):
            if work[job, FluidJob.SPEED] > 0.0:
                step_us = min(step_us, work[job, FluidJob.LEFT_US] / work[job, FluidJob.SPEED])
        now_us += step_us
        there, forced, missed = advance(work, there, forced, now_us, step_us, tenants)
        lost += missed
        if now_us >= next_us and now_us < model.horizon_us:
            if there < MOST:
                tenant = drawn_tenant(draws[arrivals], tenants, mean_gap_us)
                forced, there = arrive(work, there, forced, now_us, tenant, tenants), there + 1
            arrivals += 1
            next_us = next_us + gaps[arrivals] * mean_gap_us if arrivals < gaps.size else math.inf
    keep(work, there, NOBODY, now_us, 0.0, model)
    for job in range(there):
        if is_late(work, job):
            lost += tenants[int(work[job, FluidJob.TENANT]), FluidTenant.WEIGHT]
    return float(lost)

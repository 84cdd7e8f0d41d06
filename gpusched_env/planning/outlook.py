"""What plans reckon with: what is lost in sampled futures of the fluid model, who slows whom, and what a microsecond
of the GPU is worth.

Lost are the weights of jobs that are late or given up. Where the future ends those are counted too that could not all
be in time. Best-effort jobs earn their weight as they go on. Jobs of tenants with an objective come as independent
Poisson processes; each choice is tried in the same futures, so that chance favours none.

A job that earns less for its time than time is worth is better left to others, of those that will come, too. What time
is worth follows from how many jobs come, what they earn, and how much of them can be in time: no constant fits two
scenarios. So each of :data:`PRICES` is tried in sampled futures of the fluid model
(:mod:`gpusched_env.planning.fluid`), the same for all prices, from an idle GPU on; that with which least is lost is
taken.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from gpusched_env.compiling import cached, called
from gpusched_env.planning.fluid import (
    advance,
    arrive,
    begin,
    begin_anew,
    begin_tenants,
    drawn_tenant,
    give_up_in_the_way,
    give_up_late,
    in_time_until_us,
    is_late,
    is_oldest,
    may_be_late_us,
    serve,
)
from gpusched_env.planning.fluid_tables import LOG_ROWS, MOST, NOBODY, WORK, Floats, FluidJob, FluidTenant, Model, Work
from gpusched_env.planning.in_time import keep, keep_in_order
from gpusched_env.planning.interference import GRID, UNKNOWN, pair_speeds, shipped_model
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem

NOWHERE: Final = -1.0
"""What stands in place of a place in the log."""
END: Final = math.inf
"""What stands in the log behind what was lost until the end of a future."""


@cached()
def mean_losses(
    jobs: Floats, tenants: Floats, model: Model, gaps: Floats, draws: Floats, work: Floats, out: Floats
) -> None:
    """Write what is lost on average if a job goes first until it is done.

    Args:
        jobs: shape ``(jobs, len(FluidJob))``, in order of deadlines, at most
            :data:`~gpusched_env.planning.fluid.MOST`.
        tenants: shape ``(tenants, len(FluidTenant))``, at most as many.
        model: figures of the model.
        gaps: shape ``(futures, arrivals)``, times between arrivals in multiples of their mean; the same futures for
            every job.
        draws: of the same shape, from 0 to below 1: whose job it is.
        work: of shape :data:`~gpusched_env.planning.fluid.WORK`, written.
        out: shape ``(2, jobs)``, written: mean loss if others are served beside it, and if nobody is until it is done;
            ``inf`` of jobs that are not the oldest of their tenant, or cannot be in time and could be rejected.
    """
    mean_gap_us = mean_gap(tenants)
    begin_tenants(tenants, mean_gap_us, work)
    for job in range(jobs.shape[0]):
        in_time = jobs[job, FluidJob.LEFT_US] <= jobs[job, FluidJob.DUE_US]
        out[0, job] = out[1, job] = 0.0 if (in_time or not model.rejects) and is_oldest(jobs, job) else math.inf
    count, late = begin(jobs, tenants, model, work)
    for future in range(gaps.shape[0]):
        log_end = 0
        for arrival in range(MOST):
            work[Work.IDLE, arrival] = NOWHERE
        for way in range(2):
            for job in range(jobs.shape[0]):
                if out[way, job] < math.inf:
                    forced = int(work[Work.FROM, job])
                    lost, log_end = loss(
                        count, late, forced, way == 1, tenants, model, mean_gap_us, gaps[future], draws[future], work,
                        log_end,
                    )  # fmt: skip
                    out[way, job] += lost
    for way in range(2):
        for job in range(jobs.shape[0]):
            out[way, job] /= gaps.shape[0]


@called
def mean_gap(tenants: Floats) -> float:
    """Mean time between two arrivals, of whomever (us)."""
    rate = 0.0
    for tenant in range(tenants.shape[0]):
        rate += tenants[tenant, FluidTenant.JOBS_A_US]
    return 1.0 / rate if rate > 0.0 else math.inf


@cached()
def lost_by_nobody_first(
    jobs: Floats, tenants: Floats, model: Model, mean_gap_us: float, gaps: Floats, draws: Floats, work: Floats
) -> float:
    """What is lost in all futures together if no job is made to go first; arguments as for :func:`mean_losses`."""
    begin_tenants(tenants, mean_gap_us, work)
    count, late = begin(jobs, tenants, model, work)
    lost = 0.0
    for future in range(gaps.shape[0]):
        for arrival in range(MOST):
            work[Work.IDLE, arrival] = NOWHERE
        lost += loss(count, late, NOBODY, False, tenants, model, mean_gap_us, gaps[future], draws[future], work, 0)[0]
    return lost


@called
def loss(
    count: int,
    late: float,
    forced: int,
    alone: bool,
    tenants: Floats,
    model: Model,
    mean_gap_us: float,
    gaps: Floats,
    draws: Floats,
    work: Floats,
    log_end: int,
) -> tuple[float, int]:
    """What is lost in one future if job ``forced`` goes first until it is done, and where the log ends then.

    Once nobody is there any more, a future goes on as it did for the job that was tried before: what is lost from then
    on is added up from the log.

    Args:
        count, late: of :func:`~gpusched_env.planning.fluid.begin`.
        log_end: number of entries of the log.
    """
    log = work[Work.LOG : Work.LOG + LOG_ROWS].reshape(LOG_ROWS * MOST)
    logs = log_end + count + gaps.size + 3 < log.size
    begin_anew(work, count)
    now_us, lost, arrivals, given_up = 0.0, 0.0, 0, late
    next_us = gaps[0] * mean_gap_us
    late_us = may_be_late_us(work, count)
    while True:
        if now_us > late_us:
            count, forced, given_up = give_up_late(work, count, forced, now_us, tenants, model)
            late_us = may_be_late_us(work, count)
        if not model.rejects:
            keep_in_order(work, count, forced, now_us, model.price, tenants, model.scale)
        elif keep(work, count, forced, now_us, model.price, model.scale) > 0:
            count, forced, given_up = give_up_in_the_way(work, count, forced, tenants, given_up)
        lost += given_up
        if logs and given_up != 0.0:
            log[log_end] = given_up
            log_end += 1
        given_up = 0.0
        if now_us >= model.horizon_us:
            break
        served = serve(work, count, forced, alone, tenants, model)
        step_us = min(next_us, model.horizon_us) - now_us
        for place in range(served):
            step_us = min(step_us, work[Work.LEFT_US, int(work[Work.SERVED, place])] / work[Work.SPEED, place])
        now_us += step_us
        count, forced, missed = advance(work, count, served, forced, now_us, step_us, tenants)
        lost += missed
        if logs and missed != 0.0:
            # Best-effort jobs earn at each step, and are always there.
            logs = missed > 0.0
            log[log_end] = missed
            log_end += 1
        if now_us >= next_us and now_us < model.horizon_us:
            if count == 0 and now_us == next_us and arrivals < MOST:
                place = int(work[Work.IDLE, arrivals])
                if place != NOWHERE:
                    while log[place] != END:
                        lost += log[place]
                        if logs:
                            log[log_end] = log[place]
                            log_end += 1
                        place += 1
                    break
                if logs:
                    work[Work.IDLE, arrivals] = log_end
            if count < MOST:
                tenant = drawn_tenant(draws[arrivals], tenants.shape[0], work)
                forced, count = arrive(work, count, forced, now_us, tenant, tenants), count + 1
                late_us = min(
                    late_us,
                    in_time_until_us(
                        now_us + tenants[tenant, FluidTenant.SLO_US], tenants[tenant, FluidTenant.ALONE_US]
                    ),
                )
            arrivals += 1
            next_us = next_us + gaps[arrivals] * mean_gap_us if arrivals < gaps.size else math.inf
    if model.rejects:
        keep(work, count, NOBODY, now_us, 0.0, model.scale)
    else:
        keep_in_order(work, count, NOBODY, now_us, 0.0, tenants, model.scale)
    for job in range(count):
        if is_late(work, job):
            weight = tenants[int(work[Work.TENANT, job]), FluidTenant.WEIGHT]
            lost += weight
            if logs:
                log[log_end] = weight
                log_end += 1
    if logs:
        log[log_end] = END
        log_end += 1
    return lost, log_end


PRICES: Final = np.arange(11) * 0.15
"""Prices that are tried, in multiples of what a microsecond earns on average."""
FUTURES: Final = 32
ARRIVALS: Final = 128
"""Mean number of arrivals in a future, which is as long as that."""
ROUNDING: Final = 1e-9
SCALE: Final = 0.8
FIRST: Final = 0.65
BESIDE: Final = 0.8
"""Fields of :class:`~gpusched_env.planning.fluid_tables.Model`, as measured for ``plan``."""


def exponential_gaps(rng: np.random.Generator, shape: tuple[int, int]) -> Floats:
    """Times between arrivals of futures, in multiples of their mean, without digits that differ between processors."""
    return np.rint(rng.standard_exponential(shape) * GRID) / GRID


_RNG = np.random.default_rng(20242)
GAPS: Final = exponential_gaps(_RNG, (FUTURES, 2 * ARRIVALS))
DRAWS: Final = _RNG.random((FUTURES, 2 * ARRIVALS))


class Outlook(NamedTuple):
    """What plans assume of a scenario's tenants."""

    price_a_us: float
    """Price of a microsecond, of :func:`worth_a_us`."""
    pairs: Floats
    """Speeds of pairs, of :func:`~gpusched_env.planning.interference.pair_speeds`."""
    exponent: float = 1.0
    """Exponent of :func:`~gpusched_env.planning.interference.disturbance`."""
    graphs: Floats = np.zeros(MOST)
    """Whether a tenant's jobs are launched as graphs (1), shape ``(tenants or more,)``."""
    rejects: bool = True
    """Whether jobs can be rejected."""


NOTHING_AHEAD: Final = Outlook(0.0, UNKNOWN)
"""The outlook where no plans are made."""


def outlook(knowledge: Knowledge) -> Outlook:
    """The outlook on tenants whose jobs come at their known mean rates."""
    pairs, exponent, graphs = pair_speeds(knowledge), shipped_model().exponent, launched_as_graphs(knowledge)
    tenants = [[each.alone_us, each.slo_us, each.weight, each.jobs_a_us] for each in knowledge.tenants]
    table = np.column_stack([np.array(tenants).reshape(-1, len(FluidTenant) - 1), graphs])
    rejects = "reject" in knowledge.commands
    return Outlook(worth_a_us(table, pairs, exponent, rejects), pairs, exponent, graphs, rejects)


def launched_as_graphs(knowledge: Knowledge) -> Floats:
    """Whether all that a tenant launches is graphs (1), shape ``(tenants,)``."""
    kernels = knowledge.kernels
    return np.array([all(kernels[k].graph for k in tenant.kernels) for tenant in knowledge.tenants], np.float64)


def outlook_of(problem: Problem) -> Outlook:
    """The outlook on a problem's tenants, for :meth:`~gpusched_env.scenarios.problem.Problem.once`."""
    return outlook(problem.knowledge)


def worth_a_us(tenants: Floats, pairs: Floats, exponent: float, rejects: bool = True) -> float:
    """What a microsecond of the GPU is worth, in weight a microsecond (>= 0).

    Args:
        tenants: shape ``(tenants, len(FluidTenant))``. 0 for more than the model holds
            (:data:`~gpusched_env.planning.fluid.MOST`), and where nobody with an objective sends jobs by a rate.
        pairs, exponent, rejects: of :class:`~gpusched_env.planning.fluid_tables.Model`.
    """
    with_slo = tenants[:, FluidTenant.SLO_US] < math.inf
    senders = tenants.copy()
    senders[~with_slo, FluidTenant.JOBS_A_US] = 0.0
    rate = float(senders[:, FluidTenant.JOBS_A_US].sum())
    if rate <= 0.0 or len(tenants) > MOST:
        return 0.0
    earned = senders[with_slo, FluidTenant.WEIGHT] / senders[with_slo, FluidTenant.ALONE_US]
    prices = PRICES * earned.mean()
    models = [Model(ARRIVALS / rate, price, SCALE, FIRST, BESIDE, pairs, exponent, rejects) for price in prices]
    # Tenants without an objective always have a job; one without an end, as its length would only be steps to compute.
    best_effort = np.flatnonzero(~with_slo)
    present = np.full((len(best_effort), FluidJob.LEFT_US + 1), math.inf)
    present[:, FluidJob.TENANT] = best_effort
    work = np.zeros(WORK)
    lost = np.array([lost_by_nobody_first(present, senders, model, 1.0 / rate, GAPS, DRAWS, work) for model in models])
    # Of equal ones the lowest: what best-effort jobs earn is a sum of many rounded steps.
    return models[int(np.argmax(lost <= lost.min() + ROUNDING * np.abs(lost).max()))].price

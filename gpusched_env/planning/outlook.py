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
    NOBODY,
    Floats,
    FluidJob,
    FluidTenant,
    Model,
    advance,
    arrive,
    drawn_tenant,
    give_up,
    is_late,
    is_oldest,
    keep,
    set_speeds,
    write_job,
)
from gpusched_env.planning.interference import UNKNOWN, pair_speeds, shipped_model
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem

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
    count = jobs.shape[0]
    for job in range(count):
        write_job(
            work, job, int(jobs[job, FluidJob.TENANT]), jobs[job, FluidJob.DUE_US], jobs[job, FluidJob.LEFT_US], tenants
        )
        work[job, FluidJob.LATE] = 0.0
    now_us, lost, arrivals = 0.0, 0.0, 0
    next_us = gaps[0] * mean_gap_us
    while True:
        count, forced, given_up = give_up(work, count, forced, now_us, tenants, model)
        lost += given_up
        if now_us >= model.horizon_us:
            break
        set_speeds(work, count, forced, alone, tenants, model)
        step_us = min(next_us, model.horizon_us) - now_us
        for job in range(count):
            if work[job, FluidJob.SPEED] > 0.0:
                step_us = min(step_us, work[job, FluidJob.LEFT_US] / work[job, FluidJob.SPEED])
        now_us += step_us
        count, forced, missed = advance(work, count, forced, now_us, step_us, tenants)
        lost += missed
        if now_us >= next_us and now_us < model.horizon_us:
            if count < MOST:
                tenant = drawn_tenant(draws[arrivals], tenants, mean_gap_us)
                forced, count = arrive(work, count, forced, now_us, tenant, tenants), count + 1
            arrivals += 1
            next_us = next_us + gaps[arrivals] * mean_gap_us if arrivals < gaps.size else math.inf
    keep(work, count, NOBODY, now_us, 0.0, model)
    for job in range(count):
        if is_late(work, job):
            lost += tenants[int(work[job, FluidJob.TENANT]), FluidTenant.WEIGHT]
    return float(lost)


PRICES: Final = np.arange(11) * 0.15
"""Prices that are tried, in multiples of what a microsecond earns on average."""
FUTURES: Final = 32
ARRIVALS: Final = 128
"""Mean number of arrivals in a future, which is as long as that."""
ROUNDING: Final = 1e-9
SCALE: Final = 0.8
FIRST: Final = 0.65
BESIDE: Final = 0.8
"""Fields of :class:`~gpusched_env.planning.fluid.Model`, as measured for ``plan``."""

_RNG = np.random.default_rng(20242)
GAPS: Final = _RNG.standard_exponential((FUTURES, 2 * ARRIVALS))
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
            (:data:`~gpusched_env.planning.outlook.MOST`), and where nobody with an objective sends jobs by a rate.
        pairs, exponent, rejects: of :class:`~gpusched_env.planning.fluid.Model`.
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
    work = np.zeros((MOST, len(FluidJob)))
    lost = np.array([lost_by_nobody_first(present, senders, model, 1.0 / rate, GAPS, DRAWS, work) for model in models])
    # Of equal ones the lowest: what best-effort jobs earn is a sum of many rounded steps.
    return models[int(np.argmax(lost <= lost.min() + ROUNDING * np.abs(lost).max()))].price

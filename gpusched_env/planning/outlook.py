"""What plans reckon with from the first job on: who slows whom, and what a microsecond of the GPU is worth.

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

from gpusched_env.planning.fluid_tables import Floats, FluidJob, FluidTenant, Model
from gpusched_env.planning.futures import MOST, lost_by_nobody_first
from gpusched_env.planning.interference import UNKNOWN, pair_speeds, shipped_model
from gpusched_env.scenarios.knowledge import Knowledge
from gpusched_env.scenarios.problem import Problem

PRICES: Final = np.arange(11) * 0.15
"""In multiples of what a microsecond earns on average."""
FUTURES: Final = 32
ARRIVALS: Final = 128
"""Mean number in a future, which is as long as that."""
ROUNDING: Final = 1e-9
SCALE: Final = 0.8
FIRST: Final = 0.65
BESIDE: Final = 0.8
"""Of :class:`~gpusched_env.planning.fluid_tables.Model`, as measured for ``plan``."""

_RNG = np.random.default_rng(20242)
GAPS: Final = _RNG.standard_exponential((FUTURES, 2 * ARRIVALS))
DRAWS: Final = _RNG.random((FUTURES, 2 * ARRIVALS))


class Outlook(NamedTuple):
    """Of a scenario's tenants."""

    price_a_us: float
    """Of :func:`worth_a_us`."""
    pairs: Floats
    """Of :func:`~gpusched_env.planning.interference.pair_speeds`."""
    exponent: float = 1.0
    """Of :func:`~gpusched_env.planning.interference.disturbance`."""
    graphs: Floats = np.zeros(MOST)
    """Shape ``(tenants or more,)``, 1: its jobs are launched as graphs."""
    rejects: bool = True
    """Whether jobs can be rejected."""


NOTHING_AHEAD: Final = Outlook(0.0, UNKNOWN)
"""Where no plans are made."""


def outlook(knowledge: Knowledge) -> Outlook:
    """Of tenants whose jobs come at their known mean rates."""
    pairs, exponent, graphs = pair_speeds(knowledge), shipped_model().exponent, launched_as_graphs(knowledge)
    tenants = [[each.alone_us, each.slo_us, each.weight, each.jobs_a_us] for each in knowledge.tenants]
    table = np.column_stack([np.array(tenants).reshape(-1, len(FluidTenant) - 1), graphs])
    rejects = "reject" in knowledge.commands
    return Outlook(worth_a_us(table, pairs, exponent, rejects), pairs, exponent, graphs, rejects)


def launched_as_graphs(knowledge: Knowledge) -> Floats:
    """Shape ``(tenants,)``, 1 where all that a tenant launches is graphs."""
    kernels = knowledge.kernels
    return np.array([all(kernels[k].graph for k in tenant.kernels) for tenant in knowledge.tenants], np.float64)


def outlook_of(problem: Problem) -> Outlook:
    """The same of a problem's tenants, for :meth:`~gpusched_env.scenarios.problem.Problem.once`."""
    return outlook(problem.knowledge)


def worth_a_us(tenants: Floats, pairs: Floats, exponent: float, rejects: bool = True) -> float:
    """What a microsecond of the GPU is worth, in weight a microsecond (>= 0).

    Args:
        tenants: shape ``(tenants, len(FluidTenant))``. 0 for more than the model holds
            (:data:`~gpusched_env.planning.futures.MOST`), and where nobody with an objective sends jobs by a rate.
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
    work = np.zeros((MOST, len(FluidJob)))
    lost = np.array([lost_by_nobody_first(present, senders, model, 1.0 / rate, GAPS, DRAWS, work) for model in models])
    # Of equal ones the lowest: what best-effort jobs earn is a sum of many rounded steps.
    return models[int(np.argmax(lost <= lost.min() + ROUNDING * np.abs(lost).max()))].price

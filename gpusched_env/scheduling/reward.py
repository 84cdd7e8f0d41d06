"""The cost terms of a scenario: what rewards are differences of, and what an episode is charged.

They are made of time integrals, accumulated exactly between events.
"""

from __future__ import annotations

import enum
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached
from gpusched_env.hardware.power import board_power_w
from gpusched_env.scenarios.problem import Problem
from gpusched_env.workload.tenant import ClosedLoop


class Costs:
    """Integrals over simulated time since the reset, without the charge for what is left undone at the end.

    All rates are constant between events, so each integral is exact.
    """

    __slots__ = (
        "arrived",
        "busy_sm_us",
        "completed",
        "dram_bytes",
        "energy_j",
        "jobs_us",
        "makespan_us",
        "over",
        "rejected",
        "slo_misses",
        "throttled_us",
        "time_us",
    )

    def __init__(self, tenants: int) -> None:
        self.time_us = 0.0
        """Time up to which the integrals run."""
        self.over = False
        """Whether the episode has ended: the workload is done, or the horizon is reached."""
        self.arrived: NDArray[np.float64] = np.zeros(tenants)
        """Jobs of each tenant that have arrived."""
        self.jobs_us: NDArray[np.float64] = np.zeros(tenants)
        """Integral of the number of jobs of each tenant in the system, and what rejected ones were charged (us)."""
        self.slo_misses: NDArray[np.float64] = np.zeros(tenants)
        """Jobs of each tenant whose turnaround has exceeded the SLO, counted when it happens, and rejected ones."""
        self.completed: NDArray[np.float64] = np.zeros(tenants)
        """Completed jobs of each tenant."""
        self.rejected: NDArray[np.float64] = np.zeros(tenants)
        """Rejected jobs of each tenant."""
        self.makespan_us = 0.0
        """Time during which the workload was not done, and that of rejected jobs alone."""
        self.throttled_us = 0.0
        """Time for which CPU cores stood because their budgets were spent, summed."""
        self.energy_j = 0.0
        """Integral of board power, and what rejected jobs were charged."""
        self.busy_sm_us = 0.0
        """Integral of the number of SMs with a resident block."""
        self.dram_bytes = 0.0
        """DRAM traffic since the reset."""


COST_TERMS: Final = ("turnaround", "slowdown", "slo_miss", "energy", "makespan", "lost_progress", "throttled")
"""Names of the terms, which are the fields of :class:`~gpusched_env.scenarios.scenario.Reward`."""

Floats = NDArray[np.float64]


class Sum(enum.IntEnum):
    """Columns of what :func:`charge` is given of each tenant: of :class:`~gpusched_env.scheduling.reward.Costs`."""

    JOBS_US = 0
    SLO_MISSES = enum.auto()
    ARRIVED = enum.auto()
    COMPLETED = enum.auto()
    REJECTED = enum.auto()


class Rate(enum.IntEnum):
    """Columns of what does not change during an episode: one row a tenant."""

    WEIGHT = 0
    """Weight of the tenant's jobs."""
    ALONE_US = enum.auto()
    """Profiled turnaround of a job alone."""
    ALONE_J = enum.auto()
    """Energy of a job's time alone at the GPU's full power."""
    HAS_SLO = enum.auto()
    JOBS = enum.auto()
    """Jobs after which it stops; -1: never."""
    CLOSED_LOOP = enum.auto()
    START_US = enum.auto()
    THINK_US = enum.auto()
    """The tenant's arrivals: whether they are a closed loop, and times, which only matter there."""


def cost_terms(problem: Problem, costs: Costs) -> dict[str, float]:
    """Every cost term accumulated since the reset, before the scenario's reward weights.

    Jobs that have not completed count with the time they have spent in the system so far; once the episode is over
    (``costs.over``), also with the charge for what is left undone.

    Returns:
        by name of :data:`COST_TERMS`: ``turnaround`` in milliseconds times the tenant's weight;
        ``slowdown``, turnaround over the profiled turnaround alone, times the weight; ``slo_miss``,
        jobs past their SLO times the weight; ``energy`` in joules; ``makespan`` in milliseconds;
        ``lost_progress``, jobs that best-effort tenants are behind, times the weight; ``throttled``, milliseconds for
        which CPU cores stood, summed.
    """
    terms = np.empty(len(COST_TERMS))
    per_tenant = (costs.jobs_us, costs.slo_misses, costs.arrived, costs.completed, costs.rejected)
    charge(
        np.stack(per_tenant, axis=1),
        float(costs.energy_j),
        float(costs.makespan_us),
        float(costs.throttled_us),
        float(costs.time_us),
        bool(costs.over),
        problem.once(rates),
        problem.once(reward_weights),
        terms,
    )
    return dict(zip(COST_TERMS, terms.tolist(), strict=True))


def total_cost(problem: Problem, terms: dict[str, float]) -> float:
    """The weighted sum of ``terms`` (see :func:`cost_terms`) with the scenario's reward weights."""
    return float(weighted_sum(np.array([terms[name] for name in COST_TERMS]), problem.once(reward_weights)))


def reward_weights(problem: Problem) -> Floats:
    """The scenario's reward weights in the order of :data:`COST_TERMS`."""
    reward = problem.scenario.reward
    return np.array([getattr(reward, name) for name in COST_TERMS], np.float64)


def rates(problem: Problem) -> Floats:
    """Columns :class:`Rate` of a problem's tenants, shape ``(tenants, len(Rate))``."""
    peak_w = board_power_w(problem.gpu, problem.gpu.sms, problem.gpu.dram_bytes_per_us)
    table = np.zeros((len(problem.programs), len(Rate)))
    for row, program in zip(table, problem.programs, strict=True):
        tenant, alone_us = program.tenant, program.alone_us
        row[Rate.WEIGHT] = tenant.weight
        row[Rate.ALONE_US] = alone_us
        row[Rate.ALONE_J] = alone_us * peak_w * 1e-6
        row[Rate.HAS_SLO] = tenant.slo_us is not None and tenant.slo_us < math.inf
        row[Rate.JOBS] = -1 if tenant.jobs is None else tenant.jobs
        if isinstance(tenant.arrivals, ClosedLoop):
            row[Rate.CLOSED_LOOP] = 1.0
            row[Rate.START_US] = tenant.arrivals.start_us
            row[Rate.THINK_US] = tenant.arrivals.think_us
    return table


@cached()
def unsent_jobs(rate: Floats, arrived: float, end_us: float) -> float:
    """Jobs of a closed loop that were never sent, for want of an answer to the one before.

    As many as the tenant alone on the GPU would have sent by then; none of an open process.

    Args:
        rate: the tenant's row of :func:`rates`.
        arrived: jobs that have arrived.
        end_us: the end of the episode.
    """
    if rate[Rate.CLOSED_LOOP] == 0.0 or end_us < rate[Rate.START_US]:
        return 0.0
    sent = 1.0 + math.floor((end_us - rate[Rate.START_US]) / (rate[Rate.ALONE_US] + rate[Rate.THINK_US]))
    most = rate[Rate.JOBS]
    return max(0.0, float((min(sent, most) if most >= 0.0 else sent) - arrived))


@cached()
def lost_jobs(rate: Floats, completed: float, end_us: float) -> float:
    """Jobs by which a best-effort tenant, a closed loop without an objective, is behind itself alone on the GPU.

    A job counts when it completes: until then its time so far is lost. Slightly below 0 where jobs vary and those that
    came were shorter than the profiled one. 0 for all other tenants.

    Args:
        rate: the tenant's row of :func:`rates`.
        completed: jobs that have completed.
        end_us: the present time.
    """
    if rate[Rate.CLOSED_LOOP] == 0.0 or rate[Rate.HAS_SLO] > 0.0:
        return 0.0
    alone = max(0.0, float(end_us - rate[Rate.START_US])) / float(rate[Rate.ALONE_US] + rate[Rate.THINK_US])
    return (min(alone, float(rate[Rate.JOBS])) if rate[Rate.JOBS] >= 0.0 else alone) - completed


@cached()
def charge(
    sums: Floats,
    energy_j: float,
    makespan_us: float,
    throttled_us: float,
    end_us: float,
    over: bool,
    tenant_rates: Floats,
    weights: Floats,
    terms_out: Floats,
) -> float:
    """The one arithmetic of costs, for Python and for compiled batches; sums run in order of tenants and terms.

    Args:
        sums: columns :class:`Sum`, shape ``(tenants, len(Sum))``.
        energy_j, makespan_us, throttled_us: as in :class:`~gpusched_env.scheduling.reward.Costs`.
        end_us: the present time.
        over: whether the episode has ended, so that what is left undone is charged.
        tenant_rates: columns :class:`Rate`, of at least as many rows.
        weights: of the terms, shape ``(len(COST_TERMS),)``.
        terms_out: written, shape ``(len(COST_TERMS),)``: the terms of :func:`cost_terms`.

    Returns:
        the weighted sum of the terms.
    """
    turnaround_us = 0.0
    slowdown = 0.0
    misses = 0.0
    behind = 0.0
    for tenant in range(sums.shape[0]):
        rate = tenant_rates[tenant]
        jobs_us = sums[tenant, Sum.JOBS_US]
        missed = sums[tenant, Sum.SLO_MISSES]
        behind += lost_jobs(rate, sums[tenant, Sum.COMPLETED], end_us) * rate[Rate.WEIGHT]
        if over:
            arrived = sums[tenant, Sum.ARRIVED]
            unsent = unsent_jobs(rate, arrived, end_us)
            left = arrived - sums[tenant, Sum.COMPLETED] - sums[tenant, Sum.REJECTED] + unsent
            jobs_us += left * rate[Rate.ALONE_US]
            missed += unsent * rate[Rate.HAS_SLO]
            energy_j += left * rate[Rate.ALONE_J]
            makespan_us += left * rate[Rate.ALONE_US] if rate[Rate.JOBS] >= 0.0 else 0.0
        weighted_us = jobs_us * rate[Rate.WEIGHT]
        turnaround_us += weighted_us
        slowdown += weighted_us / rate[Rate.ALONE_US]
        misses += missed * rate[Rate.WEIGHT]
    terms_out[0] = turnaround_us / 1e3
    terms_out[1] = slowdown
    terms_out[2] = misses
    terms_out[3] = energy_j
    terms_out[4] = makespan_us / 1e3
    terms_out[5] = behind
    terms_out[6] = throttled_us / 1e3
    return weighted_sum(terms_out, weights)


@cached()
def weighted_sum(terms: Floats, weights: Floats) -> float:
    """The sum of ``terms`` times their weights, in order."""
    total = 0.0
    for term in range(terms.size):
        total += weights[term] * terms[term]
    return total

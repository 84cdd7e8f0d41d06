"""The cost terms of a scenario: what rewards are differences of, and what an episode is charged.

A reward over an interval is minus the growth of :func:`total_cost` over it, so that an episode's return
is exactly minus the total cost at its end. The Gymnasium environments and the episode metrics both read
their figures from here.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.costs import Costs

COST_TERMS: Final = ("turnaround", "slowdown", "slo_miss", "energy", "makespan")
"""Names of the terms, which are the fields of :class:`~gpusched_env.scenarios.scenario.Reward`."""

Floats = NDArray[np.float64]


def cost_terms(problem: Problem, costs: Costs) -> dict[str, float]:
    """Every cost term accumulated since the reset, before the scenario's reward weights.

    Jobs that have not completed count with the time they have spent in the system so far.

    Returns:
        by name of :data:`COST_TERMS`: ``turnaround`` in milliseconds times the tenant's weight;
        ``slowdown``, turnaround over the profiled turnaround alone, times the weight; ``slo_miss``,
        jobs past their SLO times the weight; ``energy`` in joules; ``makespan`` in milliseconds.
    """
    terms = np.empty(len(COST_TERMS))
    weigh(
        costs.jobs_us,
        costs.slo_misses,
        float(costs.energy_j),
        float(costs.makespan_us),
        np.array([program.tenant.weight for program in problem.programs], np.float64),
        np.array([program.alone_us for program in problem.programs], np.float64),
        reward_weights(problem),
        terms,
    )
    return dict(zip(COST_TERMS, terms.tolist(), strict=True))


def total_cost(problem: Problem, terms: dict[str, float]) -> float:
    """The weighted sum of ``terms`` (see :func:`cost_terms`) with the scenario's reward weights."""
    return float(weighted_sum(np.array([terms[name] for name in COST_TERMS]), reward_weights(problem)))


def reward_weights(problem: Problem) -> Floats:
    """The scenario's reward weights in the order of :data:`COST_TERMS`."""
    reward = problem.scenario.reward
    return np.array([getattr(reward, name) for name in COST_TERMS], np.float64)


@njit(cache=True)
def weigh(
    jobs_us: Floats,
    slo_misses: Floats,
    energy_j: float,
    makespan_us: float,
    weights: Floats,
    alone_us: Floats,
    reward_weights: Floats,
    terms_out: Floats,
) -> float:
    """The arithmetic of costs, for Python and for compiled batches; sums run in order of tenants and terms.

    Args:
        jobs_us, slo_misses, energy_j, makespan_us: as in :class:`~gpusched_env.scheduling.costs.Costs`;
            the first two of shape ``(tenants,)``.
        weights: of the tenants' jobs, shape ``(tenants,)``.
        alone_us: profiled turnaround of a job alone, shape ``(tenants,)``.
        reward_weights: shape ``(len(COST_TERMS),)``.
        terms_out: written, shape ``(len(COST_TERMS),)``: the terms of :func:`cost_terms`.

    Returns:
        the weighted sum of the terms.
    """
    turnaround_us = 0.0
    slowdown = 0.0
    misses = 0.0
    for tenant in range(weights.size):
        weighted_us = jobs_us[tenant] * weights[tenant]
        turnaround_us += weighted_us
        slowdown += weighted_us / alone_us[tenant]
        misses += slo_misses[tenant] * weights[tenant]
    terms_out[0] = turnaround_us / 1e3
    terms_out[1] = slowdown
    terms_out[2] = misses
    terms_out[3] = energy_j
    terms_out[4] = makespan_us / 1e3
    return weighted_sum(terms_out, reward_weights)


@njit(cache=True)
def weighted_sum(terms: Floats, reward_weights: Floats) -> float:
    """The sum of ``terms`` times their weights, in order."""
    total = 0.0
    for term in range(terms.size):
        total += reward_weights[term] * terms[term]
    return total

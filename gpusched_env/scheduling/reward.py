"""The cost terms of a scenario: what rewards are differences of, and what an episode is charged.

A reward over an interval is minus the growth of :func:`total_cost` over it, so that an episode's return
is exactly minus the total cost at its end. The Gymnasium environments and the episode metrics both read
their figures from here.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.costs import Costs

COST_TERMS: Final = ("turnaround", "slowdown", "slo_miss", "energy", "makespan")
"""Names of the terms, which are the fields of :class:`~gpusched_env.scenarios.scenario.Reward`."""


def cost_terms(problem: Problem, costs: Costs) -> dict[str, float]:
    """Every cost term accumulated since the reset, before the scenario's reward weights.

    Jobs that have not completed count with the time they have spent in the system so far.

    Returns:
        by name of :data:`COST_TERMS`: ``turnaround`` in milliseconds times the tenant's weight;
        ``slowdown``, turnaround over the profiled turnaround alone, times the weight; ``slo_miss``,
        jobs past their SLO times the weight; ``energy`` in joules; ``makespan`` in milliseconds.
    """
    weights = np.array([program.tenant.weight for program in problem.programs])
    alone_us = np.array([program.alone_us for program in problem.programs])
    weighted_us = costs.jobs_us * weights
    return {
        "turnaround": float(np.sum(weighted_us)) / 1e3,
        "slowdown": float(np.sum(weighted_us / alone_us)),
        "slo_miss": float(np.sum(costs.slo_misses * weights)),
        "energy": float(costs.energy_j),
        "makespan": costs.makespan_us / 1e3,
    }


def total_cost(problem: Problem, terms: dict[str, float]) -> float:
    """The weighted sum of ``terms`` (see :func:`cost_terms`) with the scenario's reward weights."""
    reward = problem.scenario.reward
    return sum(float(getattr(reward, name)) * terms[name] for name in COST_TERMS)

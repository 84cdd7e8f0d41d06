"""The cost terms of a scenario: what rewards are differences of, and what an episode is charged.

A reward over an interval is minus the growth of :func:`total_cost` over it, so that an episode's return
is exactly minus the total cost at its end. The Gymnasium environments and the episode metrics both read
their figures from here.

At the end of an episode, what is left undone is charged as if it were done afterwards, one job after the other, each
from its beginning and alone on the GPU:

* Each job in the system adds the time of a job alone to its turnaround. The same goes for jobs of closed loops that
  were never sent, for want of an answer (:func:`jobs_left`); these also miss their objective.
* The energy is that of this time at the GPU's full power: no schedule draws more.
* The makespan grows by that time, of tenants with a number of jobs.

Otherwise work that does not complete before the horizon would be worth nothing, a tenant that waits for an answer
before it asks again would cost least if it never got one, and the cheapest GPU would be an idle one.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import cached
from gpusched_env.hardware.power import board_power_w
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scheduling.costs import Costs
from gpusched_env.workload.arrivals import ClosedLoop

COST_TERMS: Final = ("turnaround", "slowdown", "slo_miss", "energy", "makespan")
"""Names of the terms, which are the fields of :class:`~gpusched_env.scenarios.scenario.Reward`."""

Floats = NDArray[np.float64]


def cost_terms(problem: Problem, costs: Costs) -> dict[str, float]:
    """Every cost term accumulated since the reset, before the scenario's reward weights.

    Jobs that have not completed count with the time they have spent in the system so far; once the episode is over
    (``costs.over``), also with the charge for what is left undone.

    Returns:
        by name of :data:`COST_TERMS`: ``turnaround`` in milliseconds times the tenant's weight;
        ``slowdown``, turnaround over the profiled turnaround alone, times the weight; ``slo_miss``,
        jobs past their SLO times the weight; ``energy`` in joules; ``makespan`` in milliseconds.
    """
    terms = np.empty(len(COST_TERMS))
    charged = _with_what_is_left(problem, costs) if costs.over else costs
    weigh(
        charged.jobs_us,
        charged.slo_misses,
        float(charged.energy_j),
        float(charged.makespan_us),
        np.array([program.tenant.weight for program in problem.programs], np.float64),
        np.array([program.alone_us for program in problem.programs], np.float64),
        reward_weights(problem),
        terms,
    )
    return dict(zip(COST_TERMS, terms.tolist(), strict=True))


def _with_what_is_left(problem: Problem, costs: Costs) -> Costs:
    """``costs`` with what the jobs left undone add to the terms."""
    charged = Costs(len(problem.programs))
    charged.jobs_us[:], charged.slo_misses[:] = costs.jobs_us, costs.slo_misses
    charged.energy_j, charged.makespan_us = costs.energy_j, costs.makespan_us
    peak_w = board_power_w(problem.gpu, problem.gpu.sms, problem.gpu.dram_bytes_per_us)
    for row, program in enumerate(problem.programs):
        tenant, alone_us = program.tenant, program.alone_us
        loop = tenant.arrivals if isinstance(tenant.arrivals, ClosedLoop) else None
        waiting, unsent = jobs_left(
            float(costs.arrived[row]),
            float(costs.completed[row]),
            -1 if tenant.jobs is None else tenant.jobs,
            loop is not None,
            loop.start_us if loop is not None else 0.0,
            loop.think_us if loop is not None else 0.0,
            alone_us,
            float(costs.time_us),
        )
        left_us = (waiting + unsent) * alone_us
        charged.jobs_us[row] += left_us
        charged.slo_misses[row] += unsent if tenant.slo_us is not None else 0.0
        charged.energy_j += left_us * peak_w * 1e-6
        charged.makespan_us += left_us if tenant.jobs is not None else 0.0
    return charged


def total_cost(problem: Problem, terms: dict[str, float]) -> float:
    """The weighted sum of ``terms`` (see :func:`cost_terms`) with the scenario's reward weights."""
    return float(weighted_sum(np.array([terms[name] for name in COST_TERMS]), reward_weights(problem)))


def reward_weights(problem: Problem) -> Floats:
    """The scenario's reward weights in the order of :data:`COST_TERMS`."""
    reward = problem.scenario.reward
    return np.array([getattr(reward, name) for name in COST_TERMS], np.float64)


@cached()
def jobs_left(
    arrived: float,
    completed: float,
    jobs: int,
    closed_loop: bool,
    start_us: float,
    think_us: float,
    alone_us: float,
    end_us: float,
) -> tuple[float, float]:
    """What a tenant has left undone at the end of an episode.

    Args:
        arrived, completed: the tenant's of :class:`~gpusched_env.scheduling.costs.Costs`.
        jobs: after how many it stops; -1: never.
        closed_loop, start_us, think_us: its arrivals; the times only matter in a closed loop.
        alone_us: profiled turnaround of a job alone.
        end_us: the end of the episode.

    Returns:
        jobs in the system, and jobs of a closed loop that were never sent, for want of an answer to the one before:
        as many as the tenant alone on the GPU would have sent by then.
    """
    unsent = 0.0
    if closed_loop and end_us >= start_us:
        sent = 1.0 + math.floor((end_us - start_us) / (alone_us + think_us))
        unsent = max(0.0, (min(sent, float(jobs)) if jobs >= 0 else sent) - arrived)
    return arrived - completed, unsent


@cached()
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


@cached()
def weighted_sum(terms: Floats, reward_weights: Floats) -> float:
    """The sum of ``terms`` times their weights, in order."""
    total = 0.0
    for term in range(terms.size):
        total += reward_weights[term] * terms[term]
    return total

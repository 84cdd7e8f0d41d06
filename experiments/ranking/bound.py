"""What a scenario would cost if every tenant had the GPU to itself: a bound for schedulers.

Nobody waits for anybody then, so that a scheduler can hardly cost less. It is no strict bound: arrivals of a closed
loop follow completions, and a tenant without a number of jobs gets more of them done if it is fast.
"""

from __future__ import annotations

import msgspec

from gpusched_env.baselines.pass_through import PassThrough
from gpusched_env.experiments.lib.play import play
from gpusched_env.scenarios.building import build_problem
from gpusched_env.scenarios.scenario import Scenario
from gpusched_env.scheduling.reward import Costs, cost_terms, total_cost
from gpusched_env.workload.tenant import Tenant

ALONE = "alone"
"""Stands for a scheduler's name in the episodes of a ranking."""


def has_bound(scenario: Scenario) -> bool:
    """Whether the cost is a sum over tenants, who share the GPU; energy and makespan belong to all of them together."""
    return len(scenario.tenants) > 1 and scenario.reward.energy == 0.0 and scenario.reward.makespan == 0.0


class AloneProblems:
    """A problem and, for each of its tenants, the same one in which only that tenant has jobs."""

    def __init__(self, scenario: Scenario) -> None:
        """``scenario``: one that :func:`has_bound`."""
        self._problem = build_problem(scenario)
        self._alone = [build_problem(only_tenant(scenario, row)) for row in range(len(scenario.tenants))]

    def cost(self, device: str, seed: int) -> float:
        """The scenario's cost with every tenant alone; arrivals and durations are drawn as in the full episode."""
        costs = Costs(len(self._alone))
        for row, problem in enumerate(self._alone):
            own = play(PassThrough(), problem, seed, device=device).costs
            costs.jobs_us[row] = own.jobs_us[row]
            costs.slo_misses[row] = own.slo_misses[row]
            costs.completed[row] = own.completed[row]
            costs.time_us = own.time_us
        return total_cost(self._problem, cost_terms(self._problem, costs))


def only_tenant(scenario: Scenario, row: int) -> Scenario:
    """``scenario`` with only the tenant at ``row`` at work.

    The others stay in their rows, since random numbers are drawn by row; their first jobs would arrive after the end.
    """

    def never(tenant: Tenant) -> Tenant:
        arrivals = msgspec.structs.replace(tenant.arrivals, start_us=2.0 * scenario.horizon_us)
        return msgspec.structs.replace(tenant, arrivals=arrivals)

    tenants = tuple(tenant if other == row else never(tenant) for other, tenant in enumerate(scenario.tenants))
    return msgspec.structs.replace(scenario, tenants=tenants)

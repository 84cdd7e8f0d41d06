"""The size of rewards that algorithms learn from."""

from __future__ import annotations

import math

from gpusched_env.scenarios.problem import Problem

ALONE = 10.0
"""What an episode without interference costs after scaling. Discounted over the thousand decisions that a factor of
0.999 looks ahead, values are then about 1."""
SHAPED = 4.0
"""A factor besides, on shaped rewards: only what is lost to interference is left of the cost."""


def reward_scale(problem: Problem) -> float:
    """A constant factor on the rewards of a scenario: :data:`ALONE` over the cost of its jobs alone on the GPU.

    A constant, where a running normalisation would be a state of its own: the same reward means the same
    throughout the training, and in every variant of the scenario. Where jobs alone cost nothing (objectives are
    met), every objective counts as missed.
    """
    weights = problem.scenario.reward
    horizon_us = problem.scenario.horizon_us
    cost = missed = total_us = 0.0
    for program in problem.programs:
        tenant, alone_us = program.tenant, program.alone_us
        jobs = tenant.jobs if tenant.jobs is not None else math.ceil(horizon_us / alone_us)
        cost += jobs * tenant.weight * (weights.turnaround * alone_us / 1e3 + weights.slowdown)
        missed += jobs * tenant.weight * weights.slo_miss
        total_us += jobs * alone_us
    total_us = min(total_us, horizon_us)
    cost += weights.makespan * total_us / 1e3 + weights.energy * problem.gpu.power.idle_w * total_us * 1e-6
    return ALONE / (cost or missed or 1.0)

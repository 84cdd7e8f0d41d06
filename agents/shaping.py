"""Rewards that show at once what a decision did: potential-based shaping by the work that is left.

A job's cost grows at the same rate however much of it is done, and stops only when the job ends, milliseconds and
hundreds of decisions after a kernel was held up. The potential is minus the cost that the jobs in the system still
have to come if nothing disturbs them; its growth is the progress made. Added to the reward, a job that runs
undisturbed earns 0 and one that is held up loses at that moment. Differences of a potential do not change which
policy is best (A. Ng, D. Harada, S. Russell, *Policy invariance under reward transformations*, ICML 1999). That holds
for sums without a discount, which these are; a learner that discounts sees a bias of a share ``1 - gamma`` of the
potential at every decision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.envs.encoding import COUNT_HALF, LOG_SCALE
from gpusched_env.envs.features import PendingFeature, TenantFeature
from gpusched_env.envs.observations import Observation
from gpusched_env.scenarios.scenario import Reward

Floats = NDArray[np.float64]
P, T = PendingFeature, TenantFeature


class ProgressShaping:
    """What to add to the rewards of a batch of environments, which it follows step by step.

    Of a job, what is left alone is taken in proportion to the profiled device time left: that of the kernels that
    were launched, and of those from the oldest pending one on. Where no kernel is pending (the host has not issued
    the next one), what follows is that behind the last one that was.
    """

    def __init__(self, reward: Reward) -> None:
        """``reward``: the scenario's, whose ``slowdown`` and ``turnaround`` grow while jobs are in the system."""
        self._slowdown, self._turnaround = reward.slowdown, reward.turnaround
        self._potential: Floats = np.zeros(0)
        self._behind_us: Floats = np.zeros((0, 0))
        self._total_us: Floats = np.zeros((0, 0))

    def begin(self, observations: Observation) -> None:
        """All episodes begin; ``observations`` are batched, first axis: environment."""
        count, slots = observations["tenants"].shape[:2]
        self._behind_us = np.zeros((count, slots))
        self._total_us = np.zeros((count, slots))
        self._potential = self._next(observations, np.ones(count, np.bool_))

    def step(self, observations: Observation, dones: NDArray[np.bool_]) -> Floats:
        """Growth of the potential over a step, shape ``(environments,)``.

        Where an episode is over its potential ends at 0, and ``observations`` has the beginning of the next.
        """
        before = self._potential
        self._potential = self._next(observations, dones)
        growth: Floats = np.where(dones, 0.0, self._potential) - before
        return growth

    def save_state(self) -> tuple[Floats, ...]:
        """What :meth:`restore_state` takes."""
        return self._potential.copy(), self._behind_us.copy(), self._total_us.copy()

    def restore_state(self, state: tuple[Floats, ...]) -> None:
        """Go back to a saved state."""
        self._potential, self._behind_us, self._total_us = (values.copy() for values in state)

    def _next(self, observations: Observation, new: NDArray[np.bool_]) -> Floats:
        """The potentials now; ``new``: which episodes have just begun."""
        tenants = observations["tenants"]
        # Of each tenant the oldest.
        pending = observations["pending"][:, :: observations["pending"].shape[1] // tenants.shape[1]]
        self._behind_us[new] = 0.0
        self._total_us[new] = 0.0
        waits = pending[..., P.PRESENT] > 0.5
        left_us = _us(pending[..., P.JOB_LEFT])
        unissued_us = np.where(waits, left_us, self._behind_us)
        self._behind_us = np.where(waits, np.maximum(left_us - _us(pending[..., P.PROFILED]), 0.0), self._behind_us)
        self._total_us = np.maximum(self._total_us, unissued_us)
        known = self._total_us > 0.0
        left = (unissued_us + _us(tenants[..., T.LAUNCHED_LEFT])) / np.where(known, self._total_us, 1.0)
        share = np.where(known, np.minimum(left, 1.0), 1.0)
        jobs = COUNT_HALF * _ratio(tenants[..., T.JOBS])
        alone_ms = _us(tenants[..., T.ALONE]) / 1e3
        cost_of_a_job = _ratio(tenants[..., T.WEIGHT]) * (self._slowdown + self._turnaround * alone_ms)
        # Every job behind the one in service waits for what is left of it, and for those between.
        to_come: Floats = (cost_of_a_job * (share * jobs + jobs * (jobs - 1.0) / 2.0)).sum(axis=1)
        return -to_come


class PlanShaping:
    """Shaping where decisions stand for an interval, and the cost is that of missed objectives.

    A job is lost long before it is late: when the GPU has done something else for so long that not all jobs can be in
    time any more. The potential is minus the weight of the jobs that the plan of all jobs does not keep
    (:mod:`gpusched_env.planning.plans`), and its growth is discounted as rewards are, so that the best policy is the
    same for a learner that discounts.
    """

    def __init__(self, reward: Reward, gamma: float) -> None:
        """``reward``: the scenario's, of which ``slo_miss`` counts; ``gamma``: discount of one decision."""
        self._slo_miss, self._gamma = reward.slo_miss, gamma
        self._potential: Floats = np.zeros(0)

    def begin(self, observations: Observation) -> None:
        """Begin episodes, as :meth:`ProgressShaping.begin`."""
        self._potential = self._of(observations)

    def step(self, observations: Observation, dones: NDArray[np.bool_]) -> Floats:
        """Growth of the potential over a step, as :meth:`ProgressShaping.step`."""
        before = self._potential
        self._potential = self._of(observations)
        growth: Floats = np.where(dones, 0.0, self._gamma * self._potential) - before
        return growth

    def save_state(self) -> tuple[Floats, ...]:
        """What :meth:`restore_state` takes, as :meth:`ProgressShaping.save_state`."""
        return (self._potential.copy(),)

    def restore_state(self, state: tuple[Floats, ...]) -> None:
        """Go back to a saved state, as :meth:`ProgressShaping.restore_state`."""
        self._potential = state[0].copy()

    def _of(self, observations: Observation) -> Floats:
        return -self._slo_miss * lost_in_plan(observations)


Shaping = ProgressShaping | PlanShaping


def lost_in_plan(observations: Observation) -> Floats:
    """Weight of the jobs that the plan does not keep, shape ``(n,)``, from observations for an interval."""
    lost: Floats = COUNT_HALF * _ratio(observations["tenants"][..., T.LOST]).sum(axis=1)
    return lost


def _us(encoded: NDArray[np.float32]) -> Floats:
    """Microseconds of a column in ``log us``."""
    times: Floats = np.expm1(encoded.astype(np.float64) * LOG_SCALE)
    return times


def _ratio(encoded: NDArray[np.float32]) -> Floats:
    """The number ``x``, from a column in ``x / (1 + x)``."""
    x = encoded.astype(np.float64)
    return x / np.maximum(1.0 - x, 1e-9)

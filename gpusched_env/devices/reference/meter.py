"""Accumulates the time integrals of an episode exactly, at the moments when their rates change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.hardware.power import board_power_w
from gpusched_env.scheduling.costs import Costs

if TYPE_CHECKING:
    from gpusched_env.scenarios.problem import Problem
    from gpusched_env.scheduling.timeline import Timeline


class Meter:
    """Integrates jobs in the system, busy SMs, traffic and power over simulated time."""

    def __init__(self, problem: Problem, timeline: Timeline) -> None:
        tenants = len(problem.programs)
        self._gpu = problem.gpu
        self._timeline = timeline
        self._steps = timeline.detail != "jobs"
        self._costs = Costs(tenants)
        self._in_system = [0] * tenants
        self._since = [0.0] * tenants
        self._gpu_since = 0.0
        self.busy_sms = 0
        self.traffic = 0.0
        """Bytes/us."""
        self._power_w = board_power_w(problem.gpu, 0, 0.0)

    def job_arrived(self, tenant: int, now: float) -> None:
        self._accrue_jobs(tenant, now)
        self._in_system[tenant] += 1
        self._costs.arrived[tenant] += 1

    def job_completed(self, tenant: int, now: float) -> None:
        self._accrue_jobs(tenant, now)
        self._in_system[tenant] -= 1
        self._costs.completed[tenant] += 1

    def slo_missed(self, tenant: int) -> None:
        self._costs.slo_misses[tenant] += 1

    def _accrue_jobs(self, tenant: int, now: float) -> None:
        self._costs.jobs_us[tenant] += self._in_system[tenant] * (now - self._since[tenant])
        self._since[tenant] = now

    def gpu_changed(self, now: float, busy_sms: int, traffic: float) -> None:
        """From ``now`` on, ``busy_sms`` SMs hold blocks and ``traffic`` bytes/us go to DRAM: a change."""
        costs, elapsed = self._costs, now - self._gpu_since
        costs.busy_sm_us += self.busy_sms * elapsed
        costs.dram_bytes += self.traffic * elapsed
        costs.energy_j += self._power_w * elapsed * 1e-6
        self._gpu_since = now
        self.busy_sms = busy_sms
        self.traffic = traffic
        self._power_w = board_power_w(self._gpu, busy_sms, traffic)
        if self._steps:
            self._timeline.sms.add(now, busy_sms, traffic, self._power_w)

    def read(self, now: float, done_us: float) -> Costs:
        """The integrals up to ``now``; the workload was done at ``done_us`` (``inf``: not yet).

        A copy: when and how often it is read leaves no trace, down to the last bit of later readings.
        """
        kept, costs = self._costs, Costs(len(self._in_system))
        elapsed = now - self._gpu_since
        costs.time_us = now
        costs.arrived[:] = kept.arrived
        costs.completed[:] = kept.completed
        costs.slo_misses[:] = kept.slo_misses
        for tenant, jobs in enumerate(self._in_system):
            costs.jobs_us[tenant] = kept.jobs_us[tenant] + jobs * (now - self._since[tenant])
        costs.busy_sm_us = kept.busy_sm_us + self.busy_sms * elapsed
        costs.dram_bytes = kept.dram_bytes + self.traffic * elapsed
        costs.energy_j = kept.energy_j + self._power_w * elapsed * 1e-6
        costs.makespan_us = min(now, done_us)
        return costs

"""Accumulates the time integrals of an episode exactly, at the moments when their rates change."""

from __future__ import annotations

from gpusched_env.devices.reference.setting import Setting
from gpusched_env.devices.reference.world import World
from gpusched_env.hardware.clock import PS_PER_US, to_us
from gpusched_env.hardware.power import board_power_w
from gpusched_env.scheduling.cores import all_throttled_us
from gpusched_env.scheduling.costs import Costs

TRAFFIC_CHANGE = 1e-9
"""Relative changes of traffic below this are rounding, not events."""


class Meter:
    """Integrates busy SMs, traffic and power over simulated time; hosts keep the books of jobs."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._busy_sm_us = self._dram_bytes = self._energy_j = 0.0
        self._since_ps = 0
        self.busy_sms = 0
        self.traffic = 0.0
        """Bytes/us."""
        self._power_w = board_power_w(setting.problem.gpu, 0, 0.0)

    def gpu_changed(self, now: int, busy_sms: int, traffic: float) -> None:
        """From ``now`` on, ``busy_sms`` SMs hold blocks and ``traffic`` bytes/us go to DRAM."""
        if busy_sms == self.busy_sms and abs(traffic - self.traffic) <= TRAFFIC_CHANGE * traffic:
            return
        elapsed_us = (now - self._since_ps) / PS_PER_US
        self._busy_sm_us += self.busy_sms * elapsed_us
        self._dram_bytes += self.traffic * elapsed_us
        self._energy_j += self._power_w * elapsed_us * 1e-6
        self._since_ps = now
        self.busy_sms = busy_sms
        self.traffic = traffic
        self._power_w = board_power_w(self._setting.problem.gpu, busy_sms, traffic)
        if self._setting.logs_kernels:
            self._setting.timeline.sms.add(now, busy_sms, traffic, self._power_w)

    def read(self, world: World, now: int) -> Costs:
        """The integrals up to ``now``; when and how often they are read leaves no trace."""
        costs = Costs(len(world.clients))
        elapsed_us = (now - self._since_ps) / PS_PER_US
        costs.time_us = to_us(now)
        for tenant, client in enumerate(world.clients):
            costs.arrived[tenant] = client.arrived
            costs.completed[tenant] = client.completed
            costs.rejected[tenant] = client.rejected
            costs.slo_misses[tenant] = client.slo_misses
            jobs = client.arrived - client.completed - client.rejected
            costs.jobs_us[tenant] = client.jobs_us + jobs * ((now - client.jobs_since_ps) / PS_PER_US)
        costs.busy_sm_us = self._busy_sm_us + self.busy_sms * elapsed_us
        costs.dram_bytes = self._dram_bytes + self.traffic * elapsed_us
        costs.energy_j = self._energy_j + self._power_w * elapsed_us * 1e-6 + world.charged_energy_j
        costs.makespan_us = to_us(min(now, world.done_ps)) + world.charged_makespan_us
        costs.throttled_us = all_throttled_us(world)
        return costs

"""The time integrals of an episode up to the present."""

from __future__ import annotations

from gpusched_env.devices.reference.world import World
from gpusched_env.hardware.clock import PS_PER_US, to_us
from gpusched_env.scheduling.cores import all_throttled_us
from gpusched_env.scheduling.costs import Costs


def costs_of(world: World) -> Costs:
    """What the hosts' books and the meter say; when and how often they are read leaves no trace."""
    costs, now = Costs(len(world.clients)), world.now_ps
    costs.time_us = to_us(now)
    for tenant, client in enumerate(world.clients):
        costs.arrived[tenant] = client.arrived
        costs.completed[tenant] = client.completed
        costs.rejected[tenant] = client.rejected
        costs.slo_misses[tenant] = client.slo_misses
        jobs = client.arrived - client.completed - client.rejected
        costs.jobs_us[tenant] = client.jobs_us + jobs * ((now - client.jobs_since_ps) / PS_PER_US)
    elapsed_us = (now - world.gpu_since_ps) / PS_PER_US
    costs.busy_sm_us = world.busy_sm_us + world.busy_sms * elapsed_us
    costs.dram_bytes = world.dram_bytes + world.traffic * elapsed_us
    costs.energy_j = world.energy_j + world.power_w * elapsed_us * 1e-6 + world.charged_energy_j
    costs.makespan_us = to_us(min(now, world.done_ps)) + world.charged_makespan_us
    costs.throttled_us = all_throttled_us(world)
    return costs

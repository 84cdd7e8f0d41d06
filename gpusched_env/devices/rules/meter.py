"""Time integrals of an episode, accumulated exactly at the moments when their rates change."""

from __future__ import annotations

from typing import Any, Final

from gpusched_env.compiling import procedure
from gpusched_env.devices.rules.world import log_sms
from gpusched_env.hardware.clock import PS_PER_US, to_us
from gpusched_env.hardware.power import power_w
from gpusched_env.scheduling.cores import all_throttled_us
from gpusched_env.scheduling.reward import Costs
from gpusched_env.workload.host.world import client, rules

TRAFFIC_CHANGE: Final = 1e-9
"""Relative changes of traffic below this are rounding, not events."""


@procedure
def gpu_changed(w, busy_sms, traffic):
    """Account for the time so far; from now on ``busy_sms`` SMs hold blocks and ``traffic`` bytes/us go to DRAM."""
    if busy_sms == w.busy_sms and abs(traffic - w.traffic) <= TRAFFIC_CHANGE * traffic:
        return
    elapsed_us = (w.now_ps - w.gpu_since_ps) / 1e6
    w.busy_sm_us += w.busy_sms * elapsed_us
    w.dram_bytes += w.traffic * elapsed_us
    w.energy_j += w.power_w * elapsed_us * 1e-6
    w.gpu_since_ps = w.now_ps
    w.busy_sms = busy_sms
    w.traffic = traffic
    gpu = rules(w)
    w.power_w = power_w(busy_sms, traffic, gpu.idle_w, gpu.sm_w, gpu.dram_w, gpu.nominal_bytes_per_us)
    log_sms(w)


@procedure
def jobs_us(w, tenant):
    """The integral of a tenant's jobs in the system."""
    c = client(w, tenant)
    in_system = c.arrived - c.completed - c.rejected
    return c.jobs_us + in_system * ((w.now_ps - c.jobs_since_ps) / PS_PER_US)


@procedure
def energy_j(w):
    """The integral of the power, and what rejected jobs were charged."""
    return w.energy_j + w.power_w * ((w.now_ps - w.gpu_since_ps) / PS_PER_US) * 1e-6 + w.charged_energy_j


@procedure
def makespan_us(w):
    """For how long the workload was not done, and what rejected jobs were charged."""
    return min(w.now_ps, w.done_ps) / PS_PER_US + w.charged_makespan_us


def costs_of(w: Any, *, over: bool) -> Costs:
    """All time integrals up to the present; ``over``: the episode has ended. Reading leaves no trace."""
    costs = Costs(len(w.clients))
    costs.time_us, costs.over = to_us(w.now_ps), over
    for tenant, c in enumerate(w.clients):
        for name in ("arrived", "completed", "rejected", "slo_misses"):
            getattr(costs, name)[tenant] = getattr(c, name)
        costs.jobs_us[tenant] = jobs_us(w, tenant)
    elapsed_us = (w.now_ps - w.gpu_since_ps) / PS_PER_US
    costs.busy_sm_us = w.busy_sm_us + w.busy_sms * elapsed_us
    costs.dram_bytes = w.dram_bytes + w.traffic * elapsed_us
    costs.energy_j, costs.makespan_us, costs.throttled_us = energy_j(w), makespan_us(w), all_throttled_us(w)
    return costs

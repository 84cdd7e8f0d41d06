"""Time integrals of an episode, accumulated exactly at the moments when their rates change."""

from __future__ import annotations

from typing import Final

from gpusched_env.compiling import procedure
from gpusched_env.devices.rules.world import log_sms
from gpusched_env.hardware.power import power_w
from gpusched_env.workload.host.world import rules

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

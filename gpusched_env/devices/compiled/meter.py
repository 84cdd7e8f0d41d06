"""Time integrals of an episode, accumulated exactly at the moments when their rates change."""

from __future__ import annotations

from gpusched_env.compiling import called, inlined
from gpusched_env.devices.compiled.access import problem
from gpusched_env.devices.compiled.record import log_sms
from gpusched_env.hardware.power import power_w

CHANGE = 1e-9
"""Relative changes of traffic below this are rounding (as in the reference device's contexts)."""


@inlined
def board_power_w(gpu, busy_sms, traffic):
    """Board power of the GPU of a problem."""
    return power_w(busy_sms, traffic, gpu.idle_w, gpu.sm_w, gpu.dram_w, gpu.nominal_bytes_per_us)


@called
def gpu_changed(w, busy_sms, traffic):
    """From now on, ``busy_sms`` SMs hold blocks and ``traffic`` bytes/us go to DRAM."""
    elapsed_us = (w.now_ps - w.gpu_since_ps) / 1e6
    w.busy_sm_us += w.busy_sms * elapsed_us
    w.dram_bytes += w.traffic * elapsed_us
    w.energy_j += w.power_w * elapsed_us * 1e-6
    w.gpu_since_ps = w.now_ps
    w.busy_sms = busy_sms
    w.traffic = traffic
    w.power_w = board_power_w(problem(w), busy_sms, traffic)
    log_sms(w)

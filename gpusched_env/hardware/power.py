"""Board power from what is busy: idle + per busy SM + DRAM traffic."""

from __future__ import annotations

from gpusched_env.hardware.specs import GpuSpec


def power_w(spec: GpuSpec, busy_sms: float, dram_bytes_per_us: float) -> float:
    """Power in watts with ``busy_sms`` SMs holding a block and the given DRAM traffic."""
    power = spec.power
    return power.idle_w + power.sm_w * busy_sms + power.dram_w * dram_bytes_per_us / spec.dram_bytes_per_us

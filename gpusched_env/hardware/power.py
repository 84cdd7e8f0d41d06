"""Board power from what is busy: idle + per busy SM + DRAM traffic."""

from __future__ import annotations

from gpusched_env.compiling import law
from gpusched_env.hardware.specs import GpuSpec


@law
def power_w(
    busy_sms: float, traffic: float, idle_w: float, sm_w: float, dram_w: float, dram_bytes_per_us: float
) -> float:
    """Power in watts.

    Args:
        busy_sms: SMs that hold a block.
        traffic: to and from DRAM (bytes/us).
        idle_w, sm_w, dram_w: of :class:`~gpusched_env.hardware.specs.Power`.
        dram_bytes_per_us: nominal DRAM bandwidth.
    """
    return idle_w + sm_w * busy_sms + dram_w * traffic / dram_bytes_per_us


def board_power_w(gpu: GpuSpec, busy_sms: float, traffic: float) -> float:
    """:func:`power_w` of a GPU."""
    power = gpu.power
    return power_w(busy_sms, traffic, power.idle_w, power.sm_w, power.dram_w, gpu.dram_bytes_per_us)

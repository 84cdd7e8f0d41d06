"""Board power from what is busy: idle + per busy SM + DRAM traffic."""

from __future__ import annotations

from typing import Final

from gpusched_env.compiling import law
from gpusched_env.hardware.specs import GpuSpec

J_A_KWH: Final = 3.6e6


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
    """Board power of a GPU in watts, by :func:`power_w`."""
    power = gpu.power
    return power_w(busy_sms, traffic, power.idle_w, power.sm_w, power.dram_w, gpu.dram_bytes_per_us)


def energy_of_load_j(gpu: GpuSpec, used_us: float, busy_us: float) -> float:
    """Energy in joules of a GPU that is on for ``used_us``, and all of whose SMs and DRAM work for ``busy_us`` of it.

    What a job takes of either is not known by its utilisation: so this is the most that its activity can take.
    """
    idle_w, full_w = board_power_w(gpu, 0.0, 0.0), board_power_w(gpu, gpu.sms, gpu.dram_bytes_per_us)
    return 1e-6 * (idle_w * used_us + (full_w - idle_w) * busy_us)

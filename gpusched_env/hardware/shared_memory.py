"""Memory that a GPU shares with the CPU cores of its chip.

Cores are served first, and a byte of theirs costs the memory more than one (``kappa``: conflicts of rows, turns between
reading and writing); the GPU's kernels share what is left. Fair shares cannot explain what was measured on a Jetson TX2
(Ali and Yun, ECRTS 2018): two cores slow a kernel 2.36 times without saturating the memory.
"""

from __future__ import annotations

from typing import Final

from gpusched_env.compiling import law
from gpusched_env.hardware.contention import served_traffic

LEAST_LEFT: Final = 0.01
"""Share of the bandwidth that kernels always keep: so that none stands still for ever (an assumption)."""


@law
def left_for_gpu(bandwidth: float, cpu_traffic: float, kappa: float, norm: float) -> float:
    """Bandwidth (bytes/us) that the GPU's kernels share.

    Args:
        bandwidth: reachable (bytes/us).
        cpu_traffic: of all cores (bytes/us, >= 0).
        kappa: bytes of bandwidth that one of them costs (>= 1).
        norm: exponent of the soft saturation of that cost; 1: the memory serves both in proportion to what they ask.
    """
    if cpu_traffic <= 0.0:
        return bandwidth
    return max(LEAST_LEFT * bandwidth, bandwidth - served_traffic(kappa * cpu_traffic, bandwidth, norm))

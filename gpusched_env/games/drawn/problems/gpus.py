"""GPUs that are drawn: those that ship, and others around them."""

from __future__ import annotations

from typing import Final

import msgspec
import numpy as np

from gpusched_env.games.drawn.problems.arrivals import rounded
from gpusched_env.hardware.specs import GpuSpec, load_gpu

SEEN: Final = ("h100-sxm", "h200-sxm", "a100-sxm", "a100-pcie-40gb", "v100-sxm", "rtx-3090")
"""Hopper, Ampere and Volta."""
UNSEEN: Final = ("l4", "t4")
"""Two generations that no training sees: Ada and Turing."""
VARIED: Final = "-varied"
"""What is behind the name of a GPU that is another one than ships."""
LEAST, MOST = 0.6, 1.2
"""How many times a varied GPU has the SMs (at most as many), the clock, the bandwidth and the L2 of the one that ships.
"""


def draw_gpu(rng: np.random.Generator, names: tuple[str, ...], varied: bool) -> GpuSpec:
    """A shipped GPU, or in half of the draws another one around it.

    A varied one is called as no recording is, so that all workloads are carried over to it.

    Args:
        rng: draws.
        names: of shipped ones.
        varied: whether others may come.
    """
    gpu = load_gpu(names[rng.integers(len(names))])
    if not varied or rng.random() < 0.5:
        return gpu
    sms, clock, bandwidth, l2 = rng.uniform(LEAST, MOST, 4)
    return msgspec.structs.replace(
        gpu,
        name=f"{gpu.name}{VARIED}",
        sms=min(gpu.sms, 2 * round(gpu.sms * sms / 2)),
        sm_order="linear",
        clock_mhz=rounded(gpu.clock_mhz * clock),
        dram_bytes_per_us=rounded(gpu.dram_bytes_per_us * bandwidth),
        l2_bytes=round(gpu.l2_bytes * l2),
    )

"""How long a kernel takes alone on some of the SMs, by its profile on all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hardware.records import gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.scenarios.knowledge import KernelKnowledge
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import SHORTEST_BLOCK_US, profile_kernel


def masked_times_us(known: KernelKnowledge, gpu: GpuSpec, sizes: Sequence[int]) -> NDArray[np.float64]:
    """Durations alone on so many SMs, in microseconds, shape ``(len(sizes),)``.

    The knee of the curve is where a wave of blocks less is needed, or where the SMs that are left saturate the
    bandwidth of the DRAM (:mod:`gpusched_env.hardware.solo`).

    Args:
        known: the kernel's profile on all SMs; of a graph, or of a kernel that was never measured (0 us there),
            nothing is known of fewer: ``inf``.
        gpu: where it was profiled.
        sizes: numbers of SMs, 1 to all of them.
    """
    if known.graph or math.isnan(known.duration_us):
        alone_us = 0.0 if math.isnan(known.duration_us) else known.duration_us
        return np.where([size == gpu.sms for size in sizes], alone_us, np.inf)
    # A wrong profile may be shorter than blocks can be.
    least_us = SHORTEST_BLOCK_US * math.ceil(known.blocks / (gpu.sms * known.blocks_per_sm))
    duration_us = max(known.duration_us, least_us)
    kernel = Kernel(
        name=known.name,
        grid=known.grid,
        block=known.block,
        registers=known.registers,
        shared_bytes=known.shared_bytes,
        duration_us=duration_us,
        issue_fraction=known.issue,
        dram_bytes=known.dram * gpu.dram_bytes_per_us * duration_us,
    )
    block, record = profile_kernel(kernel, gpu, gpu).block[0], gpu_record(gpu).copy()
    times = []
    for size in sizes:
        record["sms"] = size
        times.append(float(solo_duration_us(record[0], block, known.blocks, known.blocks_per_sm)))
    return np.array(times)

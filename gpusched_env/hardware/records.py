"""Plain records of numbers that the physics functions take, readable from Python and from Numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hardware.specs import GpuSpec

GPU_DTYPE = np.dtype(
    [
        ("sms", np.int64),
        ("threads", np.int64),
        ("warps", np.int64),
        ("blocks", np.int64),
        ("registers", np.int64),
        ("shared_bytes", np.int64),
        ("dram_bytes_per_us", np.float64),
        ("sm_dram_bytes_per_us", np.float64),
        ("issue_norm", np.float64),
        ("dram_norm", np.float64),
    ],
    align=True,
)
"""What the block-level physics needs of a GPU; ``dram_bytes_per_us`` is the reachable bandwidth."""

BLOCK_DTYPE = np.dtype(
    [
        ("threads", np.int64),
        ("warps", np.int64),
        ("registers", np.int64),
        ("shared_bytes", np.int64),
        ("carveout_bytes", np.int64),
        ("latency_us", np.float64),
        ("issue_us", np.float64),
        ("dram_bytes", np.float64),
    ],
    align=True,
)
"""What one thread block needs.

``threads``, ``warps``, ``registers``, ``shared_bytes`` are allocated amounts (rounded up to the
hardware's units, reserve included); ``carveout_bytes`` is the driver's choice for its kernel;
``latency_us`` is its duration alone on an SM with unlimited bandwidth and free issue slots,
``issue_us`` the SM time that its instructions take at full throughput, ``dram_bytes`` its traffic.
"""


def gpu_record(spec: GpuSpec) -> NDArray[np.void]:
    """One :data:`GPU_DTYPE` record (0-d array element) of ``spec``."""
    record = np.zeros(1, GPU_DTYPE)
    reachable = spec.dram_bytes_per_us * spec.contention.dram_efficiency
    record[0] = (
        spec.sms,
        spec.limits.threads,
        spec.limits.warps,
        spec.limits.blocks,
        spec.limits.registers,
        spec.limits.shared_bytes,
        reachable,
        reachable / spec.sms * spec.contention.sm_dram_share,
        spec.contention.issue_norm,
        spec.contention.dram_norm,
    )
    return record

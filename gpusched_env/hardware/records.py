"""Plain records of numbers that the physics functions take, readable from Python and from Numba."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hardware.occupancy import BlockFootprint
from gpusched_env.hardware.specs import GpuSpec

GPU_DTYPE = np.dtype(
    [
        ("sms", np.int64),
        ("threads", np.int64),
        ("warps", np.int64),
        ("blocks", np.int64),
        ("registers", np.int64),
        ("shared_bytes", np.int64),
        ("sub_partitions", np.float64),
        ("dram_bytes_per_us", np.float64),
        ("dram_norm", np.float64),
        ("issue", np.float64),
        ("oldest_first", np.float64),
        ("light_wait", np.float64),
    ],
    align=True,
)
"""What the block-level physics needs of a GPU; ``dram_bytes_per_us`` is the reachable bandwidth, the last
three are 1 where a mechanism is on."""

BLOCK_DTYPE = np.dtype(
    [
        ("threads", np.int64),
        ("warps", np.int64),
        ("registers", np.int64),
        ("shared_bytes", np.int64),
        ("carveout_bytes", np.int64),
        ("residents", np.int64),
        ("latency_us", np.float64),
        ("rho", np.float64),
        ("wait", np.float64),
        ("dram_bytes", np.float64),
        ("spread", np.float64),
    ],
    align=True,
)
"""What one thread block needs.

``threads``, ``warps``, ``registers``, ``shared_bytes`` are allocated amounts (rounded up to the
hardware's units, reserve included); ``carveout_bytes`` is the driver's choice for its kernel; ``residents``
bounds the blocks of a grid on an SM at a time, besides what fits;
``latency_us`` is its duration alone with unlimited bandwidth, ``rho`` the share of that time for which one
of its warps needs the issue slot of its sub-partition (0 to :data:`MOST_RHO`), ``wait`` the share that
heavier co-residents can stretch, ``dram_bytes`` its traffic, ``spread`` the relative standard deviation of
work between blocks of the kernel.
"""


class BlockNeeds(NamedTuple):
    """The fields of :data:`BLOCK_DTYPE`."""

    threads: int
    warps: int
    registers: int
    shared_bytes: int
    carveout_bytes: int
    residents: int
    latency_us: float
    rho: float
    wait: float
    dram_bytes: float
    spread: float

    @classmethod
    def read(cls, block: NDArray[np.void]) -> BlockNeeds:
        """The needs in a record of shape ``(1,)``."""
        return cls(*block.item())


ANY_RESIDENTS = 2**31
"""Blocks of a grid on an SM: as many as fit."""
MOST_RHO = 0.98
"""Bound on ``rho``: a warp always waits for something now and then."""
UNLIMITED = 1e18
"""Bandwidth (bytes/us) that stands for no limit."""


def gpu_record(spec: GpuSpec) -> NDArray[np.void]:
    """One :data:`GPU_DTYPE` record of ``spec``, shape ``(1,)``."""
    limits, contention = spec.limits, spec.contention
    record = np.zeros(1, GPU_DTYPE)
    record[0] = (
        spec.sms,
        limits.threads,
        limits.warps,
        limits.blocks,
        limits.registers,
        limits.shared_bytes,
        limits.sub_partitions,
        spec.dram_bytes_per_us * contention.dram_efficiency if contention.dram else UNLIMITED,
        contention.dram_norm,
        contention.issue,
        contention.oldest_first,
        contention.light_wait,
    )
    return record


def block_record(
    footprint: BlockFootprint,
    latency_us: float,
    rho: float,
    wait: float,
    dram_bytes: float,
    spread: float = 0.0,
    residents: int = ANY_RESIDENTS,
) -> NDArray[np.void]:
    """One :data:`BLOCK_DTYPE` record, shape ``(1,)``."""
    record = np.zeros(1, BLOCK_DTYPE)
    record[0] = (
        footprint.threads,
        footprint.warps,
        footprint.registers,
        footprint.shared_bytes,
        footprint.carveout_bytes,
        residents,
        latency_us,
        min(rho, MOST_RHO),
        wait,
        dram_bytes,
        spread,
    )
    return record

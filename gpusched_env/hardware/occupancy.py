"""What a block needs of an SM and how many fit (CUDA occupancy rules), and the records of numbers that the physics
functions take.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.hardware.specs import GpuSpec

WARP_THREADS = 32


@dataclass(frozen=True, slots=True)
class BlockFootprint:
    """What one block occupies on an SM, in allocated units, and the carve-out that its kernel asks for."""

    threads: int
    warps: int
    registers: int
    shared_bytes: int
    carveout_bytes: int
    blocks_per_sm: int
    """Blocks of this kernel that an otherwise empty SM holds."""


def round_up(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit


def footprint(
    spec: GpuSpec, threads: int, registers_per_thread: int, shared_bytes: int, what: str = "kernel"
) -> BlockFootprint:
    """Allocated resources of a block of ``threads`` threads.

    Registers are allocated per warp in units, shared memory in units plus the system's reserve. The
    driver's carve-out is the smallest configuration that holds as many blocks as the other limits
    allow (checked against the H100 recordings, ``docs/validation.md``).

    Raises:
        InputError: one block does not fit on an empty SM; the message names ``what`` and the limit.
    """
    limits = spec.limits

    def check(value: int, bound: int, name: str) -> None:
        if value > bound:
            raise InputError(f"{what} cannot fit on {spec.name}: {name} is {value}, at most {bound} possible")

    for name, value in (("threads per block", threads), ("registers per thread", registers_per_thread)):
        if value < 1:
            raise InputError(f"{what}: {name} is {value}, must be at least 1")
    if shared_bytes < 0:
        raise InputError(f"{what}: shared memory per block is {shared_bytes} bytes, must not be negative")
    check(threads, limits.threads_per_block, "threads per block")
    check(registers_per_thread, limits.registers_per_thread, "registers per thread")
    check(shared_bytes, limits.shared_bytes_per_block, "shared memory per block (bytes)")
    warps = -(-threads // WARP_THREADS)
    registers = round_up(registers_per_thread * WARP_THREADS, limits.register_unit) * warps
    check(registers, limits.registers, "registers per block")
    # Blocks without shared memory were recorded entering SMs of any carve-out: no reserve is counted for them.
    shared = round_up(shared_bytes, limits.shared_unit) + limits.shared_reserve if shared_bytes > 0 else 0
    others = min(limits.threads // threads, limits.warps // warps, limits.blocks, limits.registers // registers)
    fitting = min(others, limits.shared_bytes // shared) if shared else others
    if fitting < 1:
        raise InputError(
            f"{what} cannot fit on {spec.name}: an SM has {limits.threads} threads, {limits.warps} warps and "
            f"{limits.shared_bytes} bytes of shared memory, a block takes {threads}, {warps} and {shared}"
        )
    carveout = next((c for c in limits.carveouts if c >= fitting * shared), limits.shared_bytes)
    return BlockFootprint(threads, warps, registers, shared, carveout, fitting)


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

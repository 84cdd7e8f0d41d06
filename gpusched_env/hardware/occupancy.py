"""How many blocks of a kernel an SM can hold (CUDA occupancy rules)."""

from __future__ import annotations

from dataclasses import dataclass

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

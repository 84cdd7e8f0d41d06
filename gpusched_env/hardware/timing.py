"""Costs of moving data: a kernel's resident state, copies."""

from __future__ import annotations

from gpusched_env.compiling import law

REGISTER_BYTES = 4


@law
def state_bytes(registers: int, shared_bytes: int, blocks: int) -> int:
    """Bytes that ``blocks`` resident blocks leave to be saved: their registers and shared memory."""
    return blocks * (registers * REGISTER_BYTES + shared_bytes)


@law
def save_us(bytes_: float, dram_bytes_per_us: float) -> float:
    """Time to write (or read back) ``bytes_`` of block state at the nominal DRAM bandwidth, microseconds.

    Gilman & Walls (2021), section on fine-grained preemption: resident bytes over the bandwidth share
    of the SMs that hold them; 448 KB at 936/82 GB/s on an RTX 3090 is 39 us.
    """
    return bytes_ / dram_bytes_per_us


@law
def host_copy_us(bytes_: float, latency_us: float, bytes_per_us: float) -> float:
    """Time that a copy between host and device occupies its engine, microseconds.

    Args:
        bytes_: to copy.
        latency_us, bytes_per_us: of :class:`~gpusched_env.hardware.specs.Copies`.
    """
    return latency_us + bytes_ / bytes_per_us

"""Persistent threads: one kernel stays on the GPU, and its blocks take the blocks of all other kernels as tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpusched_env.hardware.occupancy import BlockFootprint
from gpusched_env.hardware.records import block_record, gpu_record
from gpusched_env.hardware.solo import solo_duration_us
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.profile import KernelProfile


def as_tasks(kernels: Sequence[KernelProfile], gpu: GpuSpec, task_us: float) -> tuple[KernelProfile, ...]:
    """Kernels whose blocks run in those of one kernel that stays.

    That one reserves what the greediest of them needs, for each of its blocks (Durvasula et al., arXiv 2401.12377, of
    heterogeneous kernels), so that fewer fit on an SM; and each block is taken from a queue first.

    Args:
        kernels: of the problem.
        gpu: that they run on.
        task_us: time to take a block from the queue.
    """
    prints = [kernel.footprint for kernel in kernels]
    threads, warps, registers, shared, carveout = (
        max(getattr(print_, name) for print_ in prints)
        for name in ("threads", "warps", "registers", "shared_bytes", "carveout_bytes")
    )
    limits = gpu.limits
    fitting = min(limits.threads // threads, limits.warps // warps, limits.blocks, limits.registers // registers)
    if shared:
        fitting = min(fitting, limits.shared_bytes // shared)
    # Each fits alone, but what is greediest in everything may be too much: one block an SM then.
    registers, shared = min(registers, limits.registers), min(shared, limits.shared_bytes)
    print_ = BlockFootprint(threads, warps, registers, shared, carveout, max(1, fitting))
    found = []
    for kernel in kernels:
        own = kernel.block[0]
        # Warps that a task has no use for issue nothing.
        rho = own["rho"] * own["warps"] / warps
        block = block_record(print_, own["latency_us"] + task_us, rho, own["wait"], own["dram_bytes"], own["spread"])
        duration_us = float(solo_duration_us(gpu_record(gpu)[0], block[0], kernel.kernel.blocks, print_.blocks_per_sm))
        found.append(replace(kernel, footprint=print_, block=block, duration_us=duration_us))
    return tuple(found)

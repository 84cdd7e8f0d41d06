"""What a kernel's solo profile implies for its blocks: the one place where durations become physics.

A profile says how long a kernel ran alone. The simulated devices need, for one block, its latency, its
issue demand and its DRAM traffic, such that the kernel alone takes exactly its profiled duration.
Kernels without hardware counters get the last two from their class (:data:`CLASS_DEMAND`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpusched_env.hardware.contention import solo_duration_us
from gpusched_env.hardware.occupancy import BlockFootprint, footprint
from gpusched_env.hardware.records import BLOCK_DTYPE, gpu_record
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.kernel import Kernel, KernelClass

CLASS_DEMAND: dict[KernelClass, tuple[float, float]] = {
    "compute": (0.80, 0.30),
    "memory": (0.40, 0.70),
    "mixed": (0.50, 0.50),
    "latency": (0.30, 0.30),
}
"""Per class: share of issue slots of an SM in use, and of the DRAM bandwidth of the SMs that the kernel
covers, when the kernel runs alone. A first calibration: effective demands with which ResNet-50 inference
beside training slows as recorded (``data/measurements/h100/model_pairs.jsonl``). They are above the
counters' figures (compute 50 and 15 %, memory 45 and 30 %, mixed 15 and 15 %, latency 4 and 5 % of the
SM and DRAM peaks, five networks under Nsight Compute) because they also stand for what the sharing laws
leave out: loaded memory latency, caches, and issue order."""


@dataclass(frozen=True, slots=True)
class KernelProfile:
    """A kernel on one GPU: footprint, per-block demands, and what a profiler would report there."""

    kernel: Kernel
    footprint: BlockFootprint
    block: NDArray[np.void]
    """One :data:`~gpusched_env.hardware.records.BLOCK_DTYPE` record, shape ``(1,)``."""
    duration_us: float
    """Duration alone on this GPU."""
    issue: float
    """Share of issue slots of the SMs it uses, alone, 0 to 1."""
    dram: float
    """Share of the GPU's DRAM bandwidth, alone, 0 to 1."""
    sms: int
    """SMs that it uses on an empty GPU."""


def profile_kernel(kernel: Kernel, recorded_on: GpuSpec, gpu: GpuSpec) -> KernelProfile:
    """The block demands of ``kernel`` from its solo duration on ``recorded_on``, carried over to ``gpu``.

    Latency and issue demand scale with the SM clock, traffic stays.

    Raises:
        InputError: the kernel does not fit on one of the GPUs.
    """
    source = _solve(kernel, recorded_on)
    if gpu is recorded_on or gpu == recorded_on:
        print_, block, duration = source
    else:
        clock = recorded_on.clock_mhz / gpu.clock_mhz
        print_ = footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes, kernel.name)
        block = _block_record(
            print_, *(source[1][0][f] * c for f, c in (("latency_us", clock), ("issue_us", clock), ("dram_bytes", 1.0)))
        )
        duration = solo_duration_us(gpu_record(gpu)[0], block[0], kernel.blocks, print_.blocks_per_sm)
    record = block[0]
    return KernelProfile(
        kernel=kernel,
        footprint=print_,
        block=block,
        duration_us=duration,
        issue=min(1.0, float(kernel.blocks * record["issue_us"] / (duration * min(gpu.sms, kernel.blocks)))),
        dram=min(1.0, float(kernel.blocks * record["dram_bytes"] / (duration * gpu.dram_bytes_per_us))),
        sms=min(gpu.sms, kernel.blocks),
    )


def _block_record(print_: BlockFootprint, latency_us: float, issue_us: float, dram_bytes: float) -> NDArray[np.void]:
    record = np.zeros(1, BLOCK_DTYPE)
    record[0] = (
        print_.threads,
        print_.warps,
        print_.registers,
        print_.shared_bytes,
        print_.carveout_bytes,
        latency_us,
        issue_us,
        dram_bytes,
    )
    return record


def _solve(kernel: Kernel, gpu: GpuSpec) -> tuple[BlockFootprint, NDArray[np.void], float]:
    """Footprint and demands on the GPU of the recording such that the solo duration comes out exactly.

    With issue and DRAM demands given as shares of the time alone, the duration grows monotonically with
    the block's latency: bisection.
    """
    print_ = footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes, kernel.name)
    record = gpu_record(gpu)[0]
    issue_share, dram_share = CLASS_DEMAND[kernel.kind]
    if kernel.issue_fraction is not None:
        issue_share = kernel.issue_fraction
    used = min(gpu.sms, kernel.blocks)
    # Sustained shares cannot pass what the hardware gives one SM; 0.98 leaves latency a part in it.
    issue_us = min(issue_share, 0.98) * kernel.duration_us * used / kernel.blocks
    if kernel.dram_bytes is not None:
        dram_bytes = kernel.dram_bytes / kernel.blocks
    else:
        dram_bytes = dram_share * kernel.duration_us * gpu.dram_bytes_per_us * (used / gpu.sms) / kernel.blocks
    low, high = 1e-6 * kernel.duration_us, kernel.duration_us
    for _ in range(40):
        block = _block_record(print_, low, issue_us, dram_bytes)
        if solo_duration_us(record, block[0], kernel.blocks, print_.blocks_per_sm) <= kernel.duration_us:
            break
        # The class's demands alone exceed the duration (a partial last wave, say): the kernel asks for less.
        issue_us *= 0.9
        dram_bytes *= 0.9
    for _ in range(60):
        middle = 0.5 * (low + high)
        block = _block_record(print_, middle, issue_us, dram_bytes)
        if solo_duration_us(record, block[0], kernel.blocks, print_.blocks_per_sm) < kernel.duration_us:
            low = middle
        else:
            high = middle
    return print_, _block_record(print_, high, issue_us, dram_bytes), kernel.duration_us

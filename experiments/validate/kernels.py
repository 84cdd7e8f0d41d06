"""Block demands of the synthetic measurement kernels: from known work and the solo profile.

A thread of such a kernel runs ``fma`` fused multiply-adds and ``loads`` 16-byte streaming loads, so that
work per block is known; the GPU's :class:`~gpusched_env.hardware.specs.Instructions` say what they cost.
One number a kernel, a scale on latency and traffic, makes the simulator reproduce the solo duration.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.experiments.validate.recordings import SyntheticKernel
from gpusched_env.experiments.validate.streams import KernelStream, run_streams
from gpusched_env.hardware.occupancy import BlockFootprint, footprint
from gpusched_env.hardware.records import block_record
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.profile import KernelProfile

FLOP_PER_FMA = 2
BYTES_PER_LOAD = 16
PLAIN_SPREAD = 0.003
"""Relative deviation of block durations of kernels without loads (placement recordings: 0.27 to 0.37 %)."""
P95_SPREAD = 0.45
"""Deviation of kernels with loads over their solo ``block_us_p95 / block_us - 1`` (0.61 if it were normal)."""
MOST_SPREAD = 0.08
SOLVED = 2e-4
"""Relative error of the solo duration at which the scale is good enough."""


def profile(kernel: SyntheticKernel, gpu: GpuSpec, *, spread: bool = True, calibrate: bool = True) -> KernelProfile:
    """The kernel on ``gpu``, whose solo profile ``kernel.solo`` was taken there.

    Args:
        kernel: a row of the library.
        gpu: the GPU of the recording; needs ``instructions``.
        spread: give blocks their recorded spread of durations.
        calibrate: scale latency and traffic so that the solo duration comes out (else 1).

    Raises:
        InputError: the specification has no instruction costs, or the kernel does not fit.
    """
    scale = 1.0
    for _ in range(8 if calibrate else 0):
        duration = solo_us(profile_of(kernel, gpu, scale=scale, spread=spread), gpu)
        if abs(duration / kernel.solo.duration_us - 1.0) < SOLVED:
            break
        scale *= kernel.solo.duration_us / duration
    return profile_of(kernel, gpu, scale=scale, spread=spread)


def profile_of(kernel: SyntheticKernel, gpu: GpuSpec, *, scale: float = 1.0, spread: bool = True) -> KernelProfile:
    """The kernel with latency and traffic of its blocks ``scale`` times what its work says.

    Raises:
        InputError: as :func:`profile`.
    """
    shape = footprint(gpu, kernel.block, kernel.regs, kernel.smem, kernel.id)
    block = block_of(kernel, gpu, shape, scale=scale, spread=spread)
    return KernelProfile(
        kernel=Kernel(
            name=kernel.id,
            grid=(kernel.grid, 1, 1),
            block=(kernel.block, 1, 1),
            registers=kernel.regs,
            shared_bytes=kernel.smem,
            duration_us=kernel.solo.duration_us,
        ),
        footprint=shape,
        block=block,
        duration_us=kernel.solo.duration_us,
        issue=float(block[0]["rho"]),
        dram=0.0,
        sms=min(gpu.sms, kernel.grid),
    )


def block_of(
    kernel: SyntheticKernel, gpu: GpuSpec, shape: BlockFootprint, *, scale: float = 1.0, spread: bool = True
) -> NDArray[np.void]:
    """One record of a block of ``kernel``, which occupies ``shape``, as :func:`profile_of` has it.

    Raises:
        InputError: as :func:`profile`.
    """
    if gpu.instructions is None:
        raise InputError(f"{gpu.name}: has no instruction costs; measure them with `gpusched calibrate`")
    costs = gpu.instructions
    fma = kernel.flop_per_block / kernel.block / FLOP_PER_FMA
    loads = kernel.dram_bytes_per_block / kernel.block / BYTES_PER_LOAD
    # Of a warp: its time alone; of that, in the issue slot of its sub-partition; what heavier co-residents can stretch.
    latency_us = costs.block_us + fma * costs.fma_latency_us + loads * costs.load_latency_us
    issue_us = fma * costs.fma_issue_us + loads * costs.load_issue_us
    wait_us = fma * costs.fma_issue_us + loads * costs.load_wait_us
    deviation = PLAIN_SPREAD
    if kernel.dram_bytes_per_block > 0:
        deviation = P95_SPREAD * (kernel.solo.block_us_p95 / kernel.solo.block_us - 1.0)
        deviation = min(max(deviation, PLAIN_SPREAD), MOST_SPREAD)
    return block_record(
        shape,
        latency_us * scale,
        issue_us / latency_us,
        wait_us / latency_us,
        kernel.dram_bytes_per_block * scale,
        deviation if spread else 0.0,
    )


def solo_us(kernel: KernelProfile, gpu: GpuSpec) -> float:
    """Duration of the kernel alone on the simulated GPU."""
    ((start_us, end_us),) = run_streams("alone", [KernelStream(kernel.kernel.name, [kernel])], gpu)[0].tolist()
    return float(end_us - start_us)


def timer_kernel(duration_us: float, gpu: GpuSpec) -> KernelProfile:
    """The one-thread kernel of the recordings that raises the flags: it holds one SM until the last of them.

    It has no shared memory, so it pins that SM's carve-out at the smallest size.
    """
    shape = footprint(gpu, 1, 16, 0, "timer")
    kernel = Kernel(name="timer", grid=(1, 1, 1), block=(1, 1, 1), registers=16, duration_us=duration_us)
    return KernelProfile(kernel, shape, block_record(shape, duration_us, 0.0, 0.0, 0.0), duration_us, 0.0, 0.0, 1)

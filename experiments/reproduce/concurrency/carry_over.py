"""Recorded workloads carried over to where the paper ran them: a full training batch, a GPU with smaller SMs.

Both are extrapolations and say so in the workload's ``source``; host times stay as recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from gpusched_env.hardware.specs import GpuSpec, load_gpu
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import GraphNode, Op, OpKind, Variant, Workload

BLOCKS_WORK_LONGER = re.compile(
    r"batch_norm_(backward|collect)|wgrad|reduce|gammabeta|embedding_backward", re.IGNORECASE
)
"""Kernels that reduce over the batch: their grid follows the channels or weights, each block loops over the samples."""
BATCH_LEAVES_ALONE = re.compile(r"multi_tensor_apply|fillfunctor", re.IGNORECASE)
"""Kernels over the parameters (optimiser, zeroed gradients): the batch size is nothing to them."""
TENSOR_FLOP = {"h100-sxm": 4096.0, "rtx-3090": 512.0}
"""Dense bfloat16 operations of the tensor cores of one SM in a clock, with 32-bit accumulation (NVIDIA's white papers
of Hopper and GA102; TF32 is half of it on both)."""
_Timed = TypeVar("_Timed", Op, GraphNode)

FEWEST_BLOCKS = 8
"""Smaller grids work on scalars and small vectors, not on the batch."""


def at_batch(workload: Workload, factor: int) -> Workload:
    """A training step of ``workload`` with ``factor`` times the batch.

    Kernels over samples get ``factor`` times the blocks, kernels that reduce over the batch blocks that take
    ``factor`` times as long, kernels over parameters stay; either way the duration grows by ``factor``.
    """
    kernels = tuple(_grown(kernel, factor) for kernel in workload.kernels)
    grows = [new is not old for new, old in zip(kernels, workload.kernels, strict=True)]

    def factor_of(kernel: int) -> float:
        return factor if grows[kernel] else 1.0

    return msgspec.structs.replace(
        workload,
        name=f"{workload.name}_x{factor}",
        source=f"{workload.source}; extrapolated to {factor} times the batch",
        kernels=kernels,
        **_times(workload, factor_of),
    )


def _grown(kernel: Kernel, factor: int) -> Kernel:
    if BATCH_LEAVES_ALONE.search(kernel.name) or kernel.blocks < FEWEST_BLOCKS:
        return kernel
    x, y, z = kernel.grid
    return msgspec.structs.replace(
        kernel,
        grid=kernel.grid if BLOCKS_WORK_LONGER.search(kernel.name) else (x * factor, y, z),
        duration_us=kernel.duration_us * factor,
        dram_bytes=None if kernel.dram_bytes is None else kernel.dram_bytes * factor,
    )


def for_gpu(workload: Workload, gpu: GpuSpec) -> Workload:
    """``workload`` as the libraries of ``gpu`` would run it.

    A block with more shared memory than ``gpu`` allows becomes two with half of it, and so on. Kernels bound by
    matrix arithmetic take longer by the ratio of :data:`TENSOR_FLOP`; clocks, SMs and bandwidth are the
    simulator's business.
    """
    recorded_on = load_gpu(workload.gpu)
    slower = TENSOR_FLOP[workload.gpu] / TENSOR_FLOP[gpu.name]
    most = gpu.limits.shared_bytes_per_block

    def carried(kernel: Kernel) -> Kernel:
        parts = 1
        while -(-kernel.shared_bytes // parts) > most:
            parts *= 2
        x, y, z = kernel.grid
        return msgspec.structs.replace(
            kernel,
            grid=(x * parts, y, z),
            shared_bytes=-(-kernel.shared_bytes // parts),
            duration_us=kernel.duration_us * (slower if _throughput_bound(kernel, recorded_on) else 1.0),
        )

    def factor_of(kernel: int) -> float:
        return slower if _throughput_bound(workload.kernels[kernel], recorded_on) else 1.0

    return msgspec.structs.replace(
        workload,
        source=f"{workload.source}; carried over to {gpu.name}",
        kernels=tuple(carried(kernel) for kernel in workload.kernels),
        **_times(workload, factor_of),
    )


def _times(workload: Workload, factor_of: Callable[[int], float]) -> dict[str, Any]:
    """Its variants and graphs, the kernel in each row taking ``factor_of`` it as long."""

    def longer(op: _Timed) -> _Timed:
        if op.kind is OpKind.KERNEL:
            return msgspec.structs.replace(op, duration_us=op.duration_us * factor_of(op.index))
        return op

    variants = tuple(
        Variant(ops=tuple(map(longer, v.ops)), threads=tuple(tuple(map(longer, ops)) for ops in v.threads))
        for v in workload.variants
    )
    return {"variants": variants, "graphs": tuple(tuple(map(longer, nodes)) for nodes in workload.graphs)}


def _throughput_bound(kernel: Kernel, gpu: GpuSpec) -> bool:
    """Whether matrix arithmetic sets its duration: smaller grids leave SMs idle and are bound by latency."""
    return kernel.kind == "compute" and kernel.blocks >= gpu.sms

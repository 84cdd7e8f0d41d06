"""A recorded training step with a larger batch: an extrapolation, and said so in the workload's ``source``.

Papers train at batches that fill a GPU's memory, recordings do not. Host times stay as recorded.
"""

from __future__ import annotations

import re

import msgspec

from gpusched_env.workload.carry_over import stretched
from gpusched_env.workload.kernel import Kernel
from gpusched_env.workload.workload import Workload

BLOCKS_WORK_LONGER = re.compile(
    r"batch_norm_(backward|collect)|wgrad|reduce|gammabeta|embedding_backward", re.IGNORECASE
)
"""Kernels that reduce over the batch: their grid follows the channels or weights, each block loops over the samples."""
BATCH_LEAVES_ALONE = re.compile(r"multi_tensor_apply|fillfunctor", re.IGNORECASE)
"""Kernels over the parameters (optimiser, zeroed gradients): the batch size is nothing to them."""
FEWEST_BLOCKS = 8
"""Smaller grids work on scalars and small vectors, not on the batch."""


def at_batch(workload: Workload, factor: int) -> Workload:
    """A training step of ``workload`` with ``factor`` times the batch.

    Kernels over samples get ``factor`` times the blocks, kernels that reduce over the batch blocks that take
    ``factor`` times as long, kernels over parameters stay; either way the duration grows by ``factor``.
    """
    kernels = tuple(_grown(kernel, factor) for kernel in workload.kernels)
    grows = (new is not old for new, old in zip(kernels, workload.kernels, strict=True))
    return msgspec.structs.replace(
        workload,
        name=f"{workload.name}_x{factor}",
        source=f"{workload.source}; extrapolated to {factor} times the batch",
        kernels=kernels,
        **stretched(workload, [factor if grown else 1.0 for grown in grows]),
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

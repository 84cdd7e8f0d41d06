"""What bounds a kernel alone, guessed from its name and shape where no hardware counters are known.

Checked against Nsight Compute's SM and DRAM throughput of 780 kernels of five networks on an H100
(AlexNet, VGG-16, ResNet-50, BERT with batch 1 and 8); the thresholds are where those change.
"""

from __future__ import annotations

import re

from gpusched_env.workload.kernel import KernelClass

LATENCY_US = 4.0
"""Kernels shorter than this are bound by latency, whatever they compute (median SM throughput 3 %)."""
LATENCY_BLOCKS = 4
"""Kernels of so few blocks are bound by one block's chain of dependent instructions."""
MATRIX_US = 10.0
"""Matrix kernels shorter than this spend their time filling the pipeline: neither bound dominates."""
SKINNY_TILE = 16
"""A matrix kernel whose output tile is at most this narrow streams one operand from memory."""

_MOVES_DATA = re.compile(
    r"gemv|gemm[ks]n_|nchwtonhwc|nhwctonchw|splitk_?reduce|reducesplitk|reduce_wgrad|addpadding", re.IGNORECASE
)
"""Kernels of matrix libraries that only stream, though their names say gemm or conv."""
_MATRIX = re.compile(
    r"gemm|conv|nvjet|cutlass|xmma|winograd|wgrad|dgrad|fprop|wmma|flash|fmha|sdpa|attention", re.IGNORECASE
)
_TILE = re.compile(r"(?:nvjet_[a-z0-9]+_[a-z]+_|tilesize|gemm_(?:[a-z]+\d+_)?)(\d+)x(\d+)")
_MEMORY = re.compile(
    r"elementwise|norm|bn_fw|bn_bw|pool|copy|concat|catarray|softmax|reduce|reduction|fill|im2col|col2im|transform"
    r"|nchw|nhwc|transpose|padding|gather|scatter|index|embedding|upsample|dropout|multi_tensor|adam|sgd|scan"
    r"|moments|gammabeta|loss|convert_|compute_dot|scal_kernel|radix|sort",
    re.IGNORECASE,
)


def classify(name: str, blocks: int, duration_us: float) -> KernelClass:
    """The class of a kernel called ``name`` with ``blocks`` thread blocks that took ``duration_us`` alone."""
    if duration_us < LATENCY_US or blocks <= LATENCY_BLOCKS:
        return "latency"
    if _MOVES_DATA.search(name):
        return "memory"
    if _MATRIX.search(name):
        tile = _TILE.search(name)
        if tile and min(int(tile[1]), int(tile[2])) <= SKINNY_TILE:
            return "memory"
        return "compute" if duration_us >= MATRIX_US else "mixed"
    return "memory" if _MEMORY.search(name) else "mixed"

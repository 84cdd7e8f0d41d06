"""Packing: GPUs in use first, then free GPUs of nodes in use, then empty nodes (``gpu_packing_score.go``; after MLaaS,
Weng et al., NSDI 2022).

For a pod without GPUs all nodes are equal. A pod that shares a GPU gets the tightest one.
"""

from __future__ import annotations

from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.cluster.gpus import first_free_gpus, shares_gpu, tightest_gpu
from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU


@procedure
def packing_score(state: Any, pods: Any, node: int, kind: int) -> int:
    """0 to 100: above 50 on a GPU in use, 33 to 50 on free ones of a node in use, below on an empty node."""
    if pods.gpus[kind] == 0:
        return 0
    free = 0
    for gpu in range(state.gpus[node]):
        if state.gpu_left[node, gpu] == WHOLE_GPU:
            free += 1
    if free == state.gpus[node]:
        return int(max(33 - free, free))
    mask = tightest_gpu(state, pods, node, kind) if shares_gpu(pods, kind) else first_free_gpus(state, pods, node, kind)
    to_open, percent_left = 0, 0
    for gpu in range(state.gpus[node]):
        if (mask >> gpu) & 1:
            percent_left += state.gpu_left[node, gpu] * 100 // WHOLE_GPU
            if state.gpu_left[node, gpu] == WHOLE_GPU:
                to_open += 1
    if to_open > 0:
        return int(max(50 - to_open, 33))
    return int(max(100 - percent_left // 10, 50))

"""Fragmentation gradient descent (FGD): where fragmentation grows least, or shrinks most (Weng et al., USENIX ATC 2023;
``fgd_score.go``).

The difference, in GPUs, goes through a sigmoid and is cut to a whole number of hundredths: nodes whose differences are
close are equal. For a pod that shares a GPU each GPU with room is tried, and it gets the best one.
"""

from __future__ import annotations

import math
from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.cluster.fragmentation import node_fragmentation
from gpusched_env.games.fleet.cluster.gpus import first_free_gpus, give_back, shares_gpu, take
from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU


@procedure
def growth_with(state: Any, pods: Any, typical: Any, node: int, kind: int, mask: int) -> float:
    """GPUs by which a node's fragmentation grows if a pod gets these of its GPUs."""
    before: float = state.fragmentation[node]
    take(state, pods, node, kind, mask)
    after = node_fragmentation(state, typical, node)
    give_back(state, pods, node, kind, mask)
    return (after - before) / WHOLE_GPU


@procedure
def published_score(growth: float) -> int:
    """0 to 100, the larger the less the fragmentation grows; 50: it stays."""
    return int(1.0 / (1.0 + math.exp(growth)) * 100.0)


@procedure
def fgd_score(state: Any, pods: Any, typical: Any, node: int, kind: int) -> tuple[int, int]:
    """The score of a node that a pod fits on, and the mask of the GPUs that it gets there."""
    if not shares_gpu(pods, kind):
        mask = first_free_gpus(state, pods, node, kind)
        return published_score(growth_with(state, pods, typical, node, kind, mask)), mask
    best, found = -1, 0
    for gpu in range(state.gpus[node]):
        left = state.gpu_left[node, gpu]
        if left < pods.gpu_milli[kind]:
            continue
        tried = False
        for other in range(gpu):
            if state.gpu_left[node, other] == left:
                tried = True
        if tried:
            continue
        score = published_score(growth_with(state, pods, typical, node, kind, 1 << gpu))
        if score > best:
            best, found = score, 1 << gpu
    return best, found

"""Clustering: pods that ask for as many GPUs go together (``gpu_clustering_score.go``; after Gandiva, Xiao et al., OSDI
2018).

Classes are *shares a GPU*, and each number of whole GPUs. Nodes with pods of the same class only come first, then those
that also have others, empty ones, and those that have others only; within each, the less of the GPUs is free the
sooner. For a pod without GPUs all nodes are equal. A pod that shares a GPU gets the tightest one.
"""

from __future__ import annotations

from typing import Any, Final

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.cluster.gpus import shares_gpu
from gpusched_env.games.fleet.cluster.policies.best_fit import free_milli
from gpusched_env.games.fleet.cluster.state import GPU, SHARED

QUARTER: Final = 25


@procedure
def clustering_score(state: Any, pods: Any, node: int, kind: int) -> int:
    """0 to 100, a quarter of it for each group of nodes."""
    if pods.gpus[kind] == 0:
        return 0
    own = SHARED if shares_gpu(pods, kind) else pods.gpus[kind]
    found = 0
    for each in range(state.classes.shape[1]):
        if state.classes[node, each] > 0:
            found += 1
    same = state.classes[node, own] > 0
    group = 3 if same and found == 1 else 2 if same else 1 if found == 0 else 0
    used = QUARTER * (state.largest[GPU] - free_milli(state, node)) // state.largest[GPU]
    return int(used + QUARTER * group)

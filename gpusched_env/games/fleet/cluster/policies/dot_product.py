"""DotProd: where what is free is least aligned with what is asked for: the smallest dot product of CPU and GPU, each
over what the largest node has (``dot_product_score.go``; after Tetris, Grandl et al., SIGCOMM 2014, which takes the
largest). A pod that shares a GPU gets the tightest one.
"""

from __future__ import annotations

from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.cluster.policies.best_fit import free_milli
from gpusched_env.games.fleet.cluster.state import CPU, GPU


@procedure
def dot_product_score(state: Any, pods: Any, node: int, kind: int) -> int:
    """0 to 100, the larger the smaller the dot product is."""
    cpus, gpus = float(state.largest[CPU]), float(state.largest[GPU])
    cpu = (state.cpu_left[node] / cpus) * (pods.cpu_milli[kind] / cpus)
    gpu = (free_milli(state, node) / gpus) * (pods.gpus[kind] * pods.gpu_milli[kind] / gpus)
    return int(100.0 * (1.0 - (cpu + gpu) / 2.0))

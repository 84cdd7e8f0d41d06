"""BestFit: where least is left of CPU and GPU together, each over what the largest node has (``best_fit_score.go``).

The simulator then stretches scores to 0 to 100, which leaves their order as it is. A pod that shares a GPU gets the
tightest one.
"""

from __future__ import annotations

from typing import Any

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.cluster.state import CPU, GPU


@procedure
def free_milli(state: Any, node: int) -> int:
    """Thousandths of GPUs that are free on a node."""
    total = 0
    for gpu in range(state.gpus[node]):
        total += state.gpu_left[node, gpu]
    return total


@procedure
def best_fit_score(state: Any, pods: Any, node: int, kind: int) -> int:
    """0 to 100, the larger the less is left."""
    cpu = (state.cpu_left[node] - pods.cpu_milli[kind]) / state.largest[CPU] * 0.5
    gpu = (free_milli(state, node) - pods.gpus[kind] * pods.gpu_milli[kind]) / state.largest[GPU] * 0.5
    return int((1.0 - (cpu + gpu)) * 100.0)

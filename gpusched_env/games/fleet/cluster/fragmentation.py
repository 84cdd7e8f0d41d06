"""How much of what is free on a node is of no use: fragmentation, by typical pods.

Weng et al., *Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent*, USENIX ATC
2023, as its public simulator has it (``frag.go``). For a pod that a node can take, GPUs with too little left
for it are fragmented; for any other pod all that is free on the node's GPUs is. That includes pods that need no GPU: to
them, GPUs are of no use. The expectation over typical pods counts.

*Typical* are the most frequent requests of a workload (CPU, GPUs, part and models, without memory) until they are 95 %
of its pods, each with its share of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from gpusched_env.compiling import native, procedure
from gpusched_env.games.fleet.cluster.problem import PodKind, Workload
from gpusched_env.games.fleet.cluster.state import FRAGMENTED_MILLI, pod_table

POPULARITY: Final = 0.95
"""Share of the pods that typical ones are (``generate_config_and_run.py``)."""


class TypicalPods(NamedTuple):
    """What typical pods ask for, the most frequent first."""

    cpu_milli: Any
    gpus: Any
    gpu_milli: Any
    """(typical,) integers."""
    allowed: Any
    """(typical, models + 1) as of :class:`~gpusched_env.games.fleet.cluster.state.PodTable`."""
    share: Any
    """(typical,) of the typical pods; their sum is 1."""


def typical_pods(workload: Workload, models: Sequence[str]) -> TypicalPods:
    """The typical pods of a workload; of equally frequent requests the larger one comes first."""
    counts: Counter[tuple[int, int, int, str]] = Counter()
    for place, count in Counter(workload.submitted).items():
        kind = workload.kinds[place]
        counts[kind.cpu_milli, kind.gpu_milli, kind.gpus, kind.models] += count
    pods, reached, found = sum(counts.values()), 0, []
    for request, count in sorted(counts.items(), key=lambda one: (one[1], one[0]), reverse=True):
        if reached >= POPULARITY * pods:
            break
        reached += count
        found.append((request, count))
    kinds = [PodKind(cpu, 0, gpus, milli, names) for (cpu, milli, gpus, names), _ in found]
    table = pod_table(kinds, models)
    shares = np.array([count for _, count in found]) / pods / (reached / pods)
    return TypicalPods(table.cpu_milli, table.gpus, table.gpu_milli, table.allowed, shares)


@procedure
def node_fragmentation(state: Any, typical: Any, node: int) -> float:
    """Thousandths of GPUs that are fragmented on a node.

    Sums are kept by reason, and added in the simulator's order: equal amounts are then equal to the last bit.
    """
    total = 0
    for gpu in range(state.gpus[node]):
        total += state.gpu_left[node, gpu]
    if total == 0:
        return 0.0
    lacks_both = lacks_gpu = lacks_cpu = needs_none = needs_none_lacks_cpu = other_model = 0.0
    for pod in range(len(typical.share)):
        share, milli = typical.share[pod], typical.gpu_milli[pod]
        has_cpu = state.cpu_left[node] >= typical.cpu_milli[pod]
        if milli == 0:
            if has_cpu:
                needs_none += share * total
            else:
                needs_none_lacks_cpu += share * total
            continue
        if not typical.allowed[pod, state.model[node]]:
            other_model += share * total
            continue
        room, small = 0, 0
        for gpu in range(state.gpus[node]):
            left = state.gpu_left[node, gpu]
            if left >= milli:
                room += 1
            else:
                small += left
        if room >= typical.gpus[pod]:
            if has_cpu:
                lacks_gpu += share * small
            else:
                lacks_cpu += share * total
        elif has_cpu:
            lacks_gpu += share * total
        else:
            lacks_both += share * total
    return float(lacks_both + lacks_gpu + lacks_cpu + needs_none + needs_none_lacks_cpu + other_model)


@native()
def measure_nodes(state: Any, typical: Any) -> None:
    """Fill in the fragmentation of all nodes, and their total."""
    state.totals[FRAGMENTED_MILLI] = 0.0
    for node in range(len(state.gpus)):
        state.fragmentation[node] = node_fragmentation(state, typical, node)
        state.totals[FRAGMENTED_MILLI] += state.fragmentation[node]

"""What is free on each node of a cluster, as arrays: what policies look at, and what placing a pod changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU, ClusterProblem, PodKind

USED_MILLI, FRAGMENTED_MILLI = 0, 1
"""Places in the totals of a cluster."""
CPU, GPU = 0, 1
"""Places in the sizes of the largest node."""
SHARED: Final = 0
"""The class of pods that share a GPU; that of pods with whole GPUs is their number."""


class PodTable(NamedTuple):
    """What each kind of pod asks for."""

    cpu_milli: Any
    memory_mib: Any
    gpus: Any
    gpu_milli: Any
    """(kinds,) integers."""
    allowed: Any
    """(kinds, models + 1) whether it can run on a GPU model; the last column is for nodes without GPUs."""


class ClusterState(NamedTuple):
    """What is free on each node. Rows are in the order in which the first of equally good nodes is taken."""

    cpu_left: Any
    """(nodes,) thousandths of a core."""
    memory_left: Any
    """(nodes,) MiB."""
    gpu_left: Any
    """(nodes, most GPUs of a node) thousandths; 0 where there is no such GPU."""
    gpus: Any
    """(nodes,) GPUs."""
    model: Any
    """(nodes,) the GPU model's column in :class:`PodTable`."""
    classes: Any
    """(nodes, most GPUs of a node + 1) pods there by class: :data:`SHARED`, or their number of whole GPUs."""
    fragmentation: Any
    """(nodes,) thousandths of GPUs that are fragmented, as
    :func:`~gpusched_env.games.fleet.cluster.fragmentation.node_fragmentation` has it."""
    totals: Any
    """Thousandths of GPUs of the whole cluster: :data:`USED_MILLI`, :data:`FRAGMENTED_MILLI`."""
    largest: Any
    """Thousandths of the :data:`CPU` and of the :data:`GPU` of the largest node, by which policies divide."""


def pod_table(kinds: Sequence[PodKind], models: Sequence[str]) -> PodTable:
    """The kinds as arrays; ``models`` are those of the cluster."""
    allowed = [
        [(not kind.allowed or model in kind.allowed) for model in models] + [not kind.allowed or kind.gpus == 0]
        for kind in kinds
    ]
    columns = np.array([kind[:4] for kind in kinds], np.int64).T.copy()
    return PodTable(columns[0], columns[1], columns[2], columns[3], np.array(allowed, np.bool_))


def empty_cluster(problem: ClusterProblem, order: NDArray[np.int64]) -> ClusterState:
    """Nodes without pods, not measured yet.

    Args:
        problem: its nodes.
        order: (nodes,) the node of each row.
    """
    nodes, models = [problem.nodes[row] for row in order], problem.models
    most = max(node.gpus for node in nodes)
    gpus = np.array([node.gpus for node in nodes], np.int64)
    return ClusterState(
        cpu_left=np.array([node.cpu_milli for node in nodes], np.int64),
        memory_left=np.array([node.memory_mib for node in nodes], np.int64),
        gpu_left=np.where(np.arange(most) < gpus[:, None], WHOLE_GPU, 0),
        gpus=gpus,
        model=np.array([models.index(node.model) if node.gpus else len(models) for node in nodes], np.int64),
        classes=np.zeros((len(nodes), most + 1), np.int64),
        fragmentation=np.zeros(len(nodes)),
        totals=np.zeros(2),
        largest=np.array([max(node.cpu_milli for node in nodes), most * WHOLE_GPU], np.int64),
    )

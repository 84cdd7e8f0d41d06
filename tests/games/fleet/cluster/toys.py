"""A cluster of two nodes, small enough to be solved by hand."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpusched_env.games.fleet.cluster.fragmentation import TypicalPods, typical_pods
from gpusched_env.games.fleet.cluster.placing import KeptScores, no_scores
from gpusched_env.games.fleet.cluster.problem import ClusterProblem, Node, PodKind, Workload
from gpusched_env.games.fleet.cluster.state import ClusterState, PodTable, empty_cluster, pod_table

NODES = (Node(8000, 1000, 2, "T4"), Node(16000, 1000, 4, "P100"))
"""The first has two GPUs, the largest four."""
HALF = PodKind(1000, 10, 1, 500, "")
ONE = PodKind(4000, 10, 1, 1000, "")
TWO = PodKind(6000, 10, 2, 1000, "")
NO_GPU = PodKind(1000, 10, 0, 0, "")
ON_P100 = PodKind(1000, 10, 1, 300, "V100|P100")
LARGE = PodKind(1000, 2000, 0, 0, "")


class Toy(NamedTuple):
    """A cluster with the kinds of pods by their places."""

    problem: ClusterProblem
    state: ClusterState
    pods: PodTable
    typical: TypicalPods
    kept: KeptScores
    kinds: dict[PodKind, int]


def toy(pods: list[PodKind], nodes: tuple[Node, ...] = NODES, allowed: tuple[str, ...] = ()) -> Toy:
    """Empty nodes, in their order; ``pods`` are the workload. GPU models ``allowed`` are there besides."""
    besides = tuple(Node(1, 1, 1, model) for model in allowed)
    problem = ClusterProblem((*nodes, *besides), Workload.of_pods("toy", pods))
    state = empty_cluster(problem, np.arange(len(problem.nodes)))
    kinds = problem.workload.kinds
    return Toy(
        problem,
        state,
        pod_table(kinds, problem.models),
        typical_pods(problem.workload, problem.models),
        no_scores(len(kinds), len(problem.nodes)),
        {kind: place for place, kind in enumerate(kinds)},
    )

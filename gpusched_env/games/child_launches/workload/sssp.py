"""Single-source shortest paths by rounds of Bellman and Ford: a kernel a round, a thread a vertex."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpusched_env.games.child_launches.workload.launches import BlockShape, Counts, Kernels, ParentKernel, looping
from gpusched_env.workload.graphs import Graph

PARENT: Final = BlockShape(256, 32)
CHILD: Final = BlockShape(32, 32)
UNREACHED: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Paths:
    """What was found, and its kernels."""

    distance: Counts
    """(vertices,) :data:`UNREACHED` where there is no path."""
    kernels: Kernels


def random_weights(graph: Graph, largest: int, *, seed: int) -> Counts:
    """(2 × edges,) whole weights from 1 to ``largest``, equal in both directions of an edge."""
    drawn = np.random.default_rng(seed).integers(1, largest + 1, len(graph.neighbour) // 2)
    rises = graph.origin < graph.neighbour
    falling = np.flatnonzero(~rises)
    weight = np.zeros(len(graph.neighbour), np.int64)
    weight[rises] = drawn
    # By their other end and, within it, by their own: the order of the same edges seen from below.
    weight[falling[np.argsort(graph.neighbour[falling], kind="stable")]] = drawn
    return weight


def shortest_paths(graph: Graph, weight: Counts, source: int) -> Paths:
    """From ``source``: each round relaxes all edges of the vertices that the round before brought nearer.

    ``weight``: (2 × edges,) of each edge, at least 1. A round has a thread for every vertex, which takes an iteration
    to look whether its vertex is active (a mask, as of Harish and Narayanan 2007). A work list would leave too little
    to the parents: in the paper they run most of the time on the citation network even with the application's own
    threshold (occupancy 65 % in Figure 16, where the search has 7 %), and one queue a parent block instead of one a
    child costs 3 to 5 % (Figure 8).
    """
    distance = np.full(len(graph.degree), UNREACHED)
    distance[source] = 0
    active = np.array([source])
    kernels: list[ParentKernel] = []
    while len(active):
        degree = np.zeros_like(graph.degree)
        degree[active] = graph.degree[active]
        kernels.append(ParentKernel(f"sssp_{len(kernels)}", PARENT, CHILD, looping(degree, base=1)))
        edges = graph.edges_of(active)
        relaxed = distance.copy()
        np.minimum.at(
            relaxed, graph.neighbour[edges], np.repeat(distance[active], graph.degree[active]) + weight[edges]
        )
        active = np.flatnonzero(relaxed < distance)
        distance = relaxed
    return Paths(distance, tuple(kernels))

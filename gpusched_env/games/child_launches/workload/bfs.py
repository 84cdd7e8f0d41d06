"""Breadth-first search level by level: a kernel a level, a thread a vertex of the frontier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpusched_env.games.child_launches.workload.launches import BlockShape, Counts, Kernels, ParentKernel, looping
from gpusched_env.workload.graphs import Graph

PARENT: Final = BlockShape(256, 40)
"""Fits the paper's time line of BFS-graph500: 6 blocks an SM fill 93.6 % of 65,536 registers."""
CHILD: Final = BlockShape(32, 40)


@dataclass(frozen=True, eq=False)
class Search:
    """What a search found, and its kernels."""

    level: Counts
    """(vertices,) distance from the source in edges, -1 where it is not reached."""
    kernels: Kernels


def breadth_first_search(graph: Graph, source: int, *, work_list: bool = False) -> Search:
    """From ``source``: each thread looks at all neighbours of its vertex.

    The frontier is in order of vertices, or, as a ``work_list``, in that of discovery by threads that go in step with
    one another: vertices of many edges come first. A vertex enters once.
    """
    level = np.full(len(graph.degree), -1)
    level[source] = 0
    frontier = np.array([source])
    kernels: list[ParentKernel] = []
    while len(frontier):
        kernels.append(ParentKernel(f"bfs_{len(kernels)}", PARENT, CHILD, looping(graph.degree[frontier])))
        degree = graph.degree[frontier]
        turn = np.arange(degree.sum()) - np.repeat(np.cumsum(degree) - degree, degree)
        reached = graph.neighbour[graph.edges_of(frontier)][np.argsort(turn, kind="stable")]
        new, found = np.unique(reached[level[reached] < 0], return_index=True)
        level[new] = len(kernels)
        frontier = new[np.argsort(found)] if work_list else new
    return Search(level, tuple(kernels))

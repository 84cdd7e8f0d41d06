"""Applications on graphs, a kernel a level or round: breadth-first search, single-source shortest paths (Bellman and
Ford), and greedy colouring by independent sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpusched_env.games.child_launches.workload.launches import (
    BlockShape,
    Counts,
    Kernels,
    ParentKernel,
    threads_with_loops,
)
from gpusched_env.workload.graphs import Graph

BFS_PARENT: Final = BlockShape(256, 40)
"""Fits the paper's time line of BFS-graph500: 6 blocks an SM fill 93.6 % of 65,536 registers."""
BFS_CHILD: Final = BlockShape(32, 40)


@dataclass(frozen=True, eq=False)
class Search:
    """What a search found, and its kernels."""

    level: Counts
    """(vertices,) distance from the source in edges, -1 where it is not reached."""
    kernels: Kernels


def breadth_first_search(graph: Graph, source: int, *, work_list: bool = False) -> Search:
    """A search from ``source``: each thread looks at all neighbours of its vertex.

    The frontier is in order of vertices, or, as a ``work_list``, in that of discovery by threads that go in step with
    one another: vertices of many edges come first. A vertex enters once.
    """
    level = np.full(len(graph.degree), -1)
    level[source] = 0
    frontier = np.array([source])
    kernels: list[ParentKernel] = []
    while len(frontier):
        kernels.append(
            ParentKernel(f"bfs_{len(kernels)}", BFS_PARENT, BFS_CHILD, threads_with_loops(graph.degree[frontier]))
        )
        degree = graph.degree[frontier]
        turn = np.arange(degree.sum()) - np.repeat(np.cumsum(degree) - degree, degree)
        reached = graph.neighbour[graph.edges_of(frontier)][np.argsort(turn, kind="stable")]
        new, found = np.unique(reached[level[reached] < 0], return_index=True)
        level[new] = len(kernels)
        frontier = new[np.argsort(found)] if work_list else new
    return Search(level, tuple(kernels))


SSSP_PARENT: Final = BlockShape(256, 32)
SSSP_CHILD: Final = BlockShape(32, 32)
UNREACHED: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Paths:
    """Paths that were found, and the kernels of the search."""

    distance: Counts
    """(vertices,) length of the shortest path; :data:`UNREACHED` where there is none."""
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
    """Paths from ``source``: each round relaxes all edges of the vertices that the round before brought nearer.

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
        kernels.append(
            ParentKernel(f"sssp_{len(kernels)}", SSSP_PARENT, SSSP_CHILD, threads_with_loops(degree, base=1))
        )
        edges = graph.edges_of(active)
        relaxed = distance.copy()
        np.minimum.at(
            relaxed, graph.neighbour[edges], np.repeat(distance[active], graph.degree[active]) + weight[edges]
        )
        active = np.flatnonzero(relaxed < distance)
        distance = relaxed
    return Paths(distance, tuple(kernels))


COLOURING_PARENT: Final = BlockShape(256, 32)
COLOURING_CHILD: Final = BlockShape(32, 32)


@dataclass(frozen=True, eq=False)
class Colouring:
    """A colouring that was found, and its kernels."""

    colour: Counts
    """(vertices,) the colour of each vertex."""
    kernels: Kernels


def colour_graph(graph: Graph, hashes: int, fraction: float, own_work: int = 0, *, seed: int) -> Colouring:
    """Maxima and minima of ``hashes`` random orders become independent sets, two for each order and round.

    A thread loops over all neighbours of its vertex and compares all orders in one pass; those that have a
    colour already are skipped, but read. With one order it is Jones and Plassmann's method as in Pannotia's
    color_maxmin; with several, and an end as soon as ``fraction`` (0 to 1) of the vertices have a colour, it
    is that of cuSPARSE's csrcolor (Cohen and Castonguay 2012). Vertices left over get a colour each.

    ``own_work`` iterations are what a thread does for its vertex besides, whatever its degree: a pass over its
    table of forbidden colours, say.
    """
    rng = np.random.default_rng(seed)
    vertices = len(graph.degree)
    colour = np.full(vertices, -1)
    ends, others = graph.origin[graph.origin < graph.neighbour], graph.neighbour[graph.origin < graph.neighbour]
    next_colour = 0
    kernels: list[ParentKernel] = []
    while (left := np.flatnonzero(colour < 0)).size > (1 - fraction) * vertices:
        threads = threads_with_loops(graph.degree[left], own_work)
        kernels.append(ParentKernel(f"colour_{len(kernels)}", COLOURING_PARENT, COLOURING_CHILD, threads))
        found = np.full(vertices, -1)
        for _ in range(hashes):
            order = rng.permutation(vertices).astype(np.int32)
            rises = order[ends] < order[others]
            lower, upper = np.where(rises, ends, others), np.where(rises, others, ends)
            for beaten in (lower, upper):
                extreme = (colour < 0) & (found < 0)
                extreme[beaten] = False
                found[extreme] = next_colour
                next_colour += 1
        colour = np.maximum(colour, found)
        open_edges = (colour[ends] < 0) & (colour[others] < 0)
        ends, others = ends[open_edges], others[open_edges]
    colour[left] = next_colour + np.arange(left.size)
    return Colouring(colour, tuple(kernels))

"""Greedy graph colouring by independent sets: a kernel a round, a thread a vertex without a colour."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpusched_env.games.child_launches.workload.launches import BlockShape, Counts, Kernels, ParentKernel, looping
from gpusched_env.workload.graphs import Graph

PARENT: Final = BlockShape(256, 32)
CHILD: Final = BlockShape(32, 32)


@dataclass(frozen=True, eq=False)
class Colouring:
    """What was found, and its kernels."""

    colour: Counts
    """(vertices,)."""
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
        threads = looping(graph.degree[left], own_work)
        kernels.append(ParentKernel(f"colour_{len(kernels)}", PARENT, CHILD, threads))
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

"""Undirected graphs as inputs: Kronecker graphs of the Graph500 and graphs like those of citation networks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

_QUADRANTS: Final = np.array([0.57, 0.19, 0.19, 0.05])
"""Initiator probabilities of the Graph500: both ends in the lower half, and so on."""
_BITS: Final = 4
"""Levels of the Kronecker recursion that are drawn together."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph without loops or multiple edges, as compressed rows. Undirected: each edge is in both directions."""

    first: Counts
    """Where the neighbours of each vertex start, (vertices + 1,)."""
    neighbour: Counts
    """Neighbours, (2 × edges,), ascending within a vertex."""

    @cached_property
    def degree(self) -> Counts:
        """Number of neighbours of each vertex, (vertices,)."""
        return np.diff(self.first)

    @cached_property
    def origin(self) -> Counts:
        """The vertex whose neighbour each of :attr:`neighbour` is, (2 × edges,)."""
        return np.repeat(np.arange(len(self.degree)), self.degree)

    def random_vertex(self, rng: np.random.Generator) -> int:
        """A vertex of at least the mean degree, so that it lies in the largest component all but surely."""
        return int(rng.choice(np.flatnonzero(self.degree >= self.degree.mean())))

    def edges_of(self, vertices: Counts) -> Counts:
        """Indices into :attr:`neighbour` of all edges that leave ``vertices``, in their order."""
        degree = self.degree[vertices]
        return np.arange(degree.sum()) + np.repeat(self.first[vertices] - np.cumsum(degree) + degree, degree)


def levels(graph: Graph, source: int) -> Counts:
    """Distances of vertices from ``source`` in edges, (vertices,), -1 where one is not reached."""
    level = np.full(len(graph.degree), -1)
    frontier, distance = np.array([source]), 0
    while len(frontier):
        level[frontier] = distance
        reached = graph.neighbour[graph.edges_of(frontier)]
        frontier, distance = np.unique(reached[level[reached] < 0]), distance + 1
    return level


def simple_graph(vertices: int, ends: Counts, others: Counts) -> Graph:
    """The graph of the edges ``ends[i]``-``others[i]``, without loops and duplicates."""
    keep = ends != others
    ends, others = ends[keep], others[keep]
    codes = np.sort(np.minimum(ends, others) * vertices + np.maximum(ends, others))
    low, high = np.divmod(codes[np.diff(codes, prepend=-1) != 0], vertices)
    origin, neighbour = np.divmod(np.sort(np.concatenate([low * vertices + high, high * vertices + low])), vertices)
    return Graph(np.concatenate([[0], np.cumsum(np.bincount(origin, minlength=vertices))]), neighbour)


def directed_graph(vertices: int, ends: Counts, others: Counts) -> Graph:
    """The graph of links from ``ends[i]`` to ``others[i]``, without loops and duplicates; rows: the links of each."""
    keep = ends != others
    codes = np.sort(ends[keep] * vertices + others[keep])
    origin, neighbour = np.divmod(codes[np.diff(codes, prepend=-1) != 0], vertices)
    return Graph(np.concatenate([[0], np.cumsum(np.bincount(origin, minlength=vertices))]), neighbour)


def kronecker(scale: int = 16, edge_factor: int = 48, *, seed: int) -> Graph:
    """The generator of the Graph500 benchmark: 2**scale vertices, edge_factor × 2**scale drawn edges, relabelled.

    With the default sizes it is the distribution of the graph kron_g500-simple-logn16 of the 10th DIMACS
    challenge: made undirected, loops and duplicates removed (2.43 M edges are left, 55 k vertices have one).
    """
    rng = np.random.default_rng(seed)
    drawn = edge_factor << scale
    ends, others = np.zeros(drawn, np.int64), np.zeros(drawn, np.int64)
    for shift in range(0, scale, _BITS):
        bits = min(_BITS, scale - shift)
        codes = np.arange(4**bits)
        chance, row, column = np.ones(len(codes)), np.zeros_like(codes), np.zeros_like(codes)
        for bit in range(bits):
            quadrant = codes >> 2 * bit & 3
            chance *= _QUADRANTS[quadrant]
            row |= (quadrant >> 1) << bit
            column |= (quadrant & 1) << bit
        # Counts of the codes in random order: as independent draws, but several times faster.
        code = np.repeat(codes.astype(np.uint8), rng.multinomial(drawn, chance))
        rng.shuffle(code)
        ends |= row[code] << shift
        others |= column[code] << shift
    label = rng.permutation(1 << scale)
    return simple_graph(1 << scale, label[ends], label[others])


def citation(vertices: int = 268_495, mean_degree: float = 8.6, sigma: float = 1.25, *, seed: int) -> Graph:
    """A graph like citationCiteseer of the 10th DIMACS challenge: an erased configuration model, log-normal degrees.

    Numbers of citations are log-normal to a good approximation (Radicchi, Fortunato, Castellano, PNAS 2008).
    citationCiteseer has 268,495 vertices, 1,156,647 edges (mean degree 8.6) and a largest degree of 1318. For
    its source, the CiteSeer network, KONECT lists a Gini coefficient of degrees of 0.58 and a mean of squared
    degrees of 48 times the mean; ``sigma`` lies between what the two ask for (1.13 and 1.31), and the largest
    degree comes out near 1000. Ages and communities of papers are not modelled: only degrees matter here.
    """
    rng = np.random.default_rng(seed)
    degrees = np.rint(rng.lognormal(np.log(mean_degree) - sigma**2 / 2, sigma, vertices)).astype(np.int64)
    stubs = np.repeat(np.arange(vertices), np.maximum(degrees, 1))
    rng.shuffle(stubs)
    pairs = stubs[: len(stubs) // 2 * 2].reshape(-1, 2)
    return simple_graph(vertices, pairs[:, 0], pairs[:, 1])

"""Graphs of the classes that the Atos papers run on, drawn from a seed.

Kronecker graphs (like social networks) and citation networks are those of
:mod:`gpusched_env.workload.graphs`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from gpusched_env.workload.graphs import Graph, simple_graph

RANK_POWER: Final = 1.0 - 1.0 / 1.1
"""Links to the page of rank k are as many as k to the power of this less 1, if degrees have an exponent of 2.1."""


def road(vertices: int = 23_947_347, kept: float = 0.6, *, seed: int) -> Graph:
    """A graph like a road network: the largest part of a square lattice of which a share of the edges is kept.

    road_usa has 23,947,347 vertices and 57,708,624 edges in both directions: 2.41 a vertex. Kept edges of a lattice are
    below that of its four, above the half at which it falls apart; detours make its diameter longer, as hills and
    rivers do.

    Args:
        vertices: of the lattice; some per cent are not in the largest part.
        kept: share of the lattice's edges, more than the half at which large parts vanish.
        seed: of the edges.
    """
    side = max(2, round(vertices**0.5))
    rng = np.random.default_rng(seed)
    number = np.arange(side * side, dtype=np.int64).reshape(side, side)
    ends = np.concatenate([number[:, :-1].ravel(), number[:-1].ravel()])
    others = np.concatenate([number[:, 1:].ravel(), number[1:].ravel()])
    held = rng.random(len(ends)) < kept
    return largest_part(side * side, ends[held], others[held])


def mesh(side: int = 108) -> Graph:
    """The 7-point mesh of a cube with ``side`` vertices an edge, in order of rows.

    atmosmodd is one: 1,270,432 vertices; 108 a side gives 1,259,712.
    """
    number = np.arange(side**3, dtype=np.int64).reshape(side, side, side)
    pairs = [(number[:-1], number[1:]), (number[:, :-1], number[:, 1:]), (number[:, :, :-1], number[:, :, 1:])]
    ends, others = (np.concatenate([pair[at].ravel() for pair in pairs]) for at in (0, 1))
    return simple_graph(side**3, ends, others)


def web(vertices: int = 7_414_866, mean_degree: float = 26.0, span: int = 32, *, seed: int) -> Graph:
    """A graph like a crawl of the web: sites of neighbouring numbers that link within, and hubs that all link to.

    indochina-2004 has 7,414,866 vertices and 191,606,827 edges, 26 a vertex; crawls are numbered by address, and three
    quarters of links stay within a site (Boldi and Vigna, *The WebGraph framework*, WWW 2004). So three of four
    edges go to a vertex a geometric distance of mean ``span`` away. The fourth goes to a page by its popularity: pages
    with d links in are as many as d to the power of -2.1 (Broder et al., *Graph structure in the web*, 2000).
    """
    rng = np.random.default_rng(seed)
    drawn = round(vertices * mean_degree / 2.0)
    ends = rng.integers(0, vertices, drawn)
    near = (ends + rng.geometric(1.0 / span, drawn)) % vertices
    rank = (1.0 + rng.random(drawn) * (vertices**RANK_POWER - 1.0)) ** (1.0 / RANK_POWER)
    hubs = np.minimum(vertices - 1, rank.astype(np.int64) - 1)
    return simple_graph(vertices, ends, np.where(rng.random(drawn) < 0.75, near, rng.permutation(vertices)[hubs]))


def hubs(vertices: int = 168_114, mean_degree: float = 101.0, sigma: float = 1.5, *, seed: int) -> Graph:
    """A graph like large_twitch: an erased configuration model of log-normal degrees.

    The Twitch gamers network (Rozemberczki and Sarkar 2021) has 168,114 vertices, 6,797,557 edges that are listed
    once, and a largest degree of 35,279; the file of the authors' test has 16,980,679 entries, 101 a vertex.
    """
    from gpusched_env.workload.graphs import citation

    return citation(vertices, mean_degree, sigma, seed=seed)


def largest_part(vertices: int, ends: np.ndarray, others: np.ndarray) -> Graph:
    """The largest connected part of a graph, its vertices numbered anew in their order."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    adjacency = coo_array((np.ones(len(ends), np.int8), (ends, others)), shape=(vertices, vertices))
    _, label = connected_components(adjacency, directed=False)
    inside = label == np.bincount(label).argmax()
    number = np.cumsum(inside) - 1
    held = inside[ends]
    return simple_graph(int(inside.sum()), number[ends[held]], number[others[held]])

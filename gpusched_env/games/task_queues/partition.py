"""Which GPU owns which vertex.

The released program of Atos on several GPUs has four schemes, by number: 0, ranges of as many vertices; 1, ranges with
as many edges; 2, random; 3, METIS, which cuts few edges, and whose parts are then numbered one after another. The
papers use the last one for all graphs but twitter, which gets random parts. METIS is not part of this project. Lattices
here are numbered by rows, so that ranges are strips with short borders, as METIS would make them. Kronecker graphs are
numbered at random, and have no parts that could be cut off cheaply.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.workload.graphs import Graph

Partition = Literal["vertices", "edges", "random"]
PARTITIONS: Final = ("vertices", "edges", "random")
SEED: Final = 12321
"""That of the released program for random parts."""


def owners(graph: Graph, gpus: int, scheme: Partition) -> NDArray[np.int64]:
    """(vertices,) the GPU of each vertex; every GPU has one at least, if there are enough."""
    vertices = len(graph.degree)
    even = np.arange(vertices) * gpus // vertices
    if scheme == "random":
        return np.random.default_rng(SEED).permutation(even)
    if scheme == "vertices":
        return even
    wanted = np.searchsorted(graph.first[:-1], np.arange(1, gpus) * len(graph.neighbour) / gpus)
    place = np.arange(1, gpus)
    # Distances of one vertex at least, forwards and then backwards.
    starts = np.maximum.accumulate(wanted - place) + place
    starts = np.minimum(np.maximum(starts, place), vertices - gpus + place)
    return np.searchsorted(starts, np.arange(vertices), side="right").astype(np.int64)


def cut_share(graph: Graph, home: NDArray[np.int64]) -> float:
    """Share (0 to 1) of edges between two GPUs."""
    return float((home[graph.origin] != home[graph.neighbour]).mean()) if len(graph.neighbour) else 0.0


def touched(graph: Graph, home: NDArray[np.int64], gpu: int) -> int:
    """Vertices of which a GPU keeps a value: its own, and their neighbours."""
    known = home == gpu
    known[graph.neighbour[known[graph.origin]]] = True
    return int(known.sum())

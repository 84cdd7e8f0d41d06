"""Problems of task queues by name, on graphs of a sixty-fourth of the papers' sizes, and random ones to train on;
and the graphs, of the classes that the Atos papers run on.

Kronecker graphs (like social networks) and citation networks are those of :mod:`gpusched_env.workload.graphs`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.task_queues.problem import Application, TaskProblem
from gpusched_env.workload.graphs import Graph, citation, directed_graph, kronecker, simple_graph

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


def web(
    vertices: int = 7_414_866, mean_degree: float = 26.0, span: int = 32, *, seed: int, directed: bool = False
) -> Graph:
    """A graph like a crawl of the web: sites of neighbouring numbers that link within, and hubs that all link to.

    indochina-2004 has 7,414,866 vertices and 191,606,827 edges, 26 a vertex; crawls are numbered by address, and three
    quarters of links stay within a site (Boldi and Vigna, *The WebGraph framework*, WWW 2004). So three of four
    edges go to a vertex a geometric distance of mean ``span`` away. The fourth goes to a page by its popularity: pages
    with d links in are as many as d to the power of -2.1 (Broder et al., *Graph structure in the web*, 2000). Nothing
    says that pages with many links in have many links out: ``directed``, links lead one way, as in the authors' file.
    """
    rng = np.random.default_rng(seed)
    drawn = round(vertices * mean_degree / (1.0 if directed else 2.0))
    ends = rng.integers(0, vertices, drawn)
    near = (ends + rng.geometric(1.0 / span, drawn)) % vertices
    rank = (1.0 + rng.random(drawn) * (vertices**RANK_POWER - 1.0)) ** (1.0 / RANK_POWER)
    hubs = np.minimum(vertices - 1, rank.astype(np.int64) - 1)
    others = np.where(rng.random(drawn) < 0.75, near, rng.permutation(vertices)[hubs])
    return (directed_graph if directed else simple_graph)(vertices, ends, others)


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


POLLS: Final = 50
"""Polls before a vote: what the papers use for most searches. Where that is too early, the host launches again."""
SUITE: Final[dict[str, tuple[Application, Callable[[int], Graph]]]] = {
    "bfs-road": ("bfs", lambda seed: road(374_178, seed=seed)),
    "bfs-social": ("bfs", lambda seed: kronecker(16, 16, seed=seed)),
    "bfs-citation": ("bfs", lambda seed: citation(seed=seed)),
    "bfs-web": ("bfs", lambda seed: web(115_857, seed=seed)),
    "pagerank-road": ("pagerank", lambda seed: road(93_544, seed=seed)),
    "pagerank-social": ("pagerank", lambda seed: kronecker(14, 16, seed=seed)),
    "colouring-mesh": ("colouring", lambda seed: mesh(32 + seed % 3)),
    "colouring-hubs": ("colouring", lambda seed: hubs(10_507, seed=seed)),
}
"""The application of each problem, and its graph of a seed, by name."""


def task_problem(name: str, seed: int = 0, gpus: int = 1) -> TaskProblem:
    """A problem of :data:`SUITE` on the graph of a seed, and on so many GPUs with NVLink.

    Raises:
        InputError: there is none of that name, or it does not run on several GPUs.
    """
    if name not in SUITE:
        raise InputError(f"task queue problem {name!r}; {did_you_mean(name, SUITE)}")
    application, make = SUITE[name]
    return _problem(name, application, make(seed), np.random.default_rng([seed, 1]), gpus)


def random_task_problem(seed: int, gpus: int = 1) -> TaskProblem:
    """A random class, size and application; a search or a ranking if there are several GPUs."""
    rng = np.random.default_rng([seed, 2])
    chances = (0.5, 0.2, 0.3) if gpus == 1 else (0.7, 0.3, 0.0)
    application: Application = ("bfs", "pagerank", "colouring")[int(rng.choice(3, p=chances))]
    most = {"bfs": 60_000, "pagerank": 8_000, "colouring": 12_000}[application]
    vertices = round(float(np.exp(rng.uniform(np.log(500), np.log(most)))))
    kind = ("road", "social", "citation", "web", "mesh", "hubs")[int(rng.integers(6))]
    degree = float(rng.uniform(4.0, 30.0))
    made: dict[str, Callable[[], Graph]] = {
        "road": lambda: road(vertices, float(rng.uniform(0.55, 0.9)), seed=seed),
        "social": lambda: kronecker(max(6, round(np.log2(vertices))), round(degree / 2), seed=seed),
        "citation": lambda: citation(vertices, degree, float(rng.uniform(0.8, 1.4)), seed=seed),
        "web": lambda: web(vertices, degree, seed=seed),
        "mesh": lambda: mesh(max(4, round(vertices ** (1 / 3)))),
        "hubs": lambda: hubs(vertices, 2.0 * degree, seed=seed),
    }
    return _problem(f"{application}-{kind}-{seed}", application, made[kind](), rng, gpus)


def _problem(name: str, application: Application, graph: Graph, rng: np.random.Generator, gpus: int) -> TaskProblem:
    source = graph.random_vertex(rng) if application == "bfs" else 0
    places = {"bfs": 8, "pagerank": 64, "colouring": 256}[application] * len(graph.degree) + 20_000
    return TaskProblem(
        graph=graph,
        application=application,
        gpus=gpus,
        source=source,
        capacity=places,
        polls=POLLS,
        relaunch=True,
        name=name,
    )


@functools.lru_cache(4)
def kept_problem(name: str, seed: int, gpus: int = 1) -> TaskProblem:
    """A problem of :func:`task_problem`, or a random one if it is named ``random``; a few are kept."""
    return random_task_problem(seed, gpus) if name == "random" else task_problem(name, seed, gpus)

"""Problems of task queues by name, on graphs of a sixty-fourth of the papers' sizes, and random ones to train on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.task_queues.problem import Application, TaskProblem
from gpusched_env.games.task_queues.workload.graphs import hubs, mesh, road, web
from gpusched_env.workload.graphs import Graph, citation, kronecker

POLLS: Final = 50
"""Before a vote: what the papers use for most searches. Where that is too early, the host launches again."""
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
"""By name, of a seed."""


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
    """As :func:`task_problem`, or a random one if it is named ``random``; a few are kept."""
    return random_task_problem(seed, gpus) if name == "random" else task_problem(name, seed, gpus)

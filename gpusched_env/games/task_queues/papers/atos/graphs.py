"""Graphs of the reproduction of Atos, by class, and a problem on one of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from gpusched_env.games.task_queues.applications import UNREACHED, Data
from gpusched_env.games.task_queues.problem import Application, TaskProblem
from gpusched_env.games.task_queues.workload.graphs import hubs, mesh, road, web
from gpusched_env.workload.graphs import Graph, citation, kronecker

ROAD, HOLLYWOOD, SOCIAL, WEB, MESH, HUBS = "road", "hollywood", "social", "web", "mesh", "hubs"
RANKED: Final = "social, an eighth"
WHOLE: Final = {name: f"{name}, whole" for name in (ROAD, HOLLYWOOD, SOCIAL, WEB)}
"""At the sizes of the papers' graphs."""
SMALL_ROAD, SMALL_SOCIAL, SMALL_MESH = "small road", "small social", "small mesh"
GRAPHS: Final[dict[str, Callable[[], Graph]]] = {
    ROAD: lambda: road(1_496_709, seed=0),
    HOLLYWOOD: lambda: citation(284_976, 60.0, 1.1, seed=0),
    SOCIAL: lambda: kronecker(20, 16, seed=0),
    RANKED: lambda: kronecker(17, 16, seed=0),
    WEB: lambda: web(231_714, seed=0),
    MESH: lambda: mesh(108),
    HUBS: lambda: hubs(42_028, 60.0, seed=0),
    WHOLE[ROAD]: lambda: road(25_000_000, seed=0),
    WHOLE[HOLLYWOOD]: lambda: citation(1_139_905, 100.0, 1.1, seed=0),
    WHOLE[SOCIAL]: lambda: kronecker(22, 8, seed=0),
    WHOLE[WEB]: lambda: web(7_414_866, seed=0),
    SMALL_ROAD: lambda: road(93_544, seed=0),
    SMALL_SOCIAL: lambda: kronecker(14, 16, seed=0),
    SMALL_MESH: lambda: mesh(40),
}
PLACES: Final[dict[Application, int]] = {"bfs": 16, "pagerank": 64, "colouring": 128}
"""Of the queue a vertex: more than the papers', so that overwork shows and is no error."""


@functools.lru_cache(1)
def graph(name: str) -> Graph:
    """That of a name; the last one is kept."""
    return GRAPHS[name]()


def problem_on(name: str, application: Application, **options: Any) -> TaskProblem:
    """An application on a graph, from its first vertex with a neighbour."""
    made = graph(name)
    return TaskProblem(
        graph=made,
        application=application,
        capacity=PLACES[application] * len(made.degree) + 1000,
        source=int((made.degree > 0).argmax()),
        name=name,
        **options,
    )


def overwork_of(problem: TaskProblem, data: Data, tasks: int) -> float:
    """Tasks over the vertices that have a result; a colouring takes two: the colour, and its check."""
    results = {"colouring": 2 * len(data.level), "pagerank": len(data.level)}
    return tasks / (results.get(problem.application) or int((data.level < UNREACHED).sum()))

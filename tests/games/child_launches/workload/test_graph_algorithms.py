"""Search, shortest paths and colouring find what networkx finds, and their threads do the work that this takes."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gpusched_env.games.child_launches.workload.graph_applications import (
    UNREACHED,
    breadth_first_search,
    colour_graph,
    random_weights,
    shortest_paths,
)
from gpusched_env.workload.graphs import Graph, citation, kronecker, simple_graph

if TYPE_CHECKING:
    import networkx as nx

GRAPHS = [kronecker(9, 6, seed=4), citation(700, 4.0, seed=4)]
each_graph = pytest.mark.parametrize("graph", GRAPHS, ids=["kronecker", "citation"])


def networkx_graph(graph: Graph) -> nx.Graph:
    import networkx as nx

    made = nx.Graph()
    made.add_nodes_from(range(graph.degree.size))
    made.add_edges_from(zip(graph.origin.tolist(), graph.neighbour.tolist(), strict=True))
    return made


@each_graph
def test_search_finds_the_levels_and_visits_each_vertex_once(graph: Graph) -> None:
    import networkx as nx

    source = int(graph.degree.argmax())
    search = breadth_first_search(graph, source)
    levels = nx.single_source_shortest_path_length(networkx_graph(graph), source)
    assert search.level.tolist() == [levels.get(vertex, -1) for vertex in range(graph.degree.size)]
    for level, kernel in enumerate(search.kernels):
        assert kernel.threads.work.tolist() == graph.degree[search.level == level].tolist()


def test_a_work_list_has_the_order_in_which_all_threads_of_a_level_find_its_vertices() -> None:
    """From 0 to 1 and 2; then 1 finds 4 while 2 finds 3, and 2 finds 5 after that: of 2, 3 and 1 neighbours."""
    graph = simple_graph(7, np.array([0, 0, 1, 2, 2, 3, 3]), np.array([1, 2, 4, 3, 5, 4, 6]))
    search = breadth_first_search(graph, 0, work_list=True)
    assert search.level.tolist() == breadth_first_search(graph, 0).level.tolist() == [0, 1, 1, 2, 2, 2, 3]
    assert [kernel.threads.work.tolist() for kernel in search.kernels] == [[2], [2, 3], [2, 3, 1], [1]]


@each_graph
@pytest.mark.parametrize("largest", [1, 2, 20])
def test_paths_are_dijkstras(graph: Graph, largest: int) -> None:
    import networkx as nx

    source = int(graph.degree.argmax())
    weight = random_weights(graph, largest, seed=1)
    assert set(weight.tolist()) == set(range(1, largest + 1))
    reference = networkx_graph(graph)
    for a, b, w in zip(graph.origin.tolist(), graph.neighbour.tolist(), weight.tolist(), strict=True):
        assert reference[a][b].setdefault("weight", w) == w
    paths = shortest_paths(graph, weight, source)
    distances = nx.single_source_dijkstra_path_length(reference, source)
    assert paths.distance.tolist() == [distances.get(vertex, UNREACHED) for vertex in range(graph.degree.size)]
    for kernel in paths.kernels:
        assert (kernel.threads.base == 1).all()
        assert kernel.threads.base.size == graph.degree.size
    total = sum(int((kernel.threads.work - 1).sum()) for kernel in paths.kernels)
    reached = int(graph.degree[paths.distance < UNREACHED].sum())
    if largest == 1:
        assert total == reached
    else:
        assert total >= reached


def test_rounds_of_paths_solved_by_hand() -> None:
    """0-1 costs 9, 0-2 and 2-1 cost 1, 1-3 costs 1: vertex 1 is relaxed twice, and so is 3 after it."""
    graph = simple_graph(4, np.array([0, 0, 1, 1]), np.array([1, 2, 2, 3]))
    costs = {(0, 1): 9, (0, 2): 1, (1, 2): 1, (1, 3): 1}
    pairs = zip(graph.origin.tolist(), graph.neighbour.tolist(), strict=True)
    weight = np.array([costs[min(pair), max(pair)] for pair in pairs])
    paths = shortest_paths(graph, weight, 0)
    assert paths.distance.tolist() == [0, 2, 1, 3]
    relaxed = [(kernel.threads.work - 1).tolist() for kernel in paths.kernels]
    assert relaxed == [[2, 0, 0, 0], [0, 3, 2, 0], [0, 3, 0, 1], [0, 0, 0, 1]]


@each_graph
@pytest.mark.parametrize(("hashes", "fraction"), [(1, 1.0), (4, 0.8), (8, 0.5)])
def test_neighbours_never_share_a_colour(graph: Graph, hashes: int, fraction: float) -> None:
    result = colour_graph(graph, hashes, fraction, seed=2)
    assert (result.colour >= 0).all()
    assert (result.colour[graph.origin] != result.colour[graph.neighbour]).all()
    threads = [kernel.threads.base.size for kernel in result.kernels]
    assert threads[0] == graph.degree.size
    assert all(later < earlier for earlier, later in itertools.pairwise(threads))
    assert threads[-1] > (1 - fraction) * graph.degree.size
    assert result.kernels[0].threads.work.tolist() == graph.degree.tolist()
    scanned = colour_graph(graph, hashes, fraction, own_work=20, seed=2)
    assert scanned.colour.tolist() == result.colour.tolist()
    assert scanned.kernels[0].threads.work.tolist() == (graph.degree + 20).tolist()
    assert scanned.kernels[0].threads.base.tolist() == [20] * graph.degree.size


def test_one_order_colours_a_path_by_its_extremes() -> None:
    """Whatever the order, a round colours at least the largest and the smallest vertex, and rounds end."""
    graph = simple_graph(6, np.arange(5), np.arange(1, 6))
    result = colour_graph(graph, 1, 1.0, seed=0)
    assert sum(kernel.threads.base.size for kernel in result.kernels) <= 6 + 4 + 2
    assert set(result.colour.tolist()) <= set(range(2 * len(result.kernels)))

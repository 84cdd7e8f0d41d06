"""The generated graphs have the statistics of those that they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.workload.graphs import Graph, citation, kronecker, simple_graph


@pytest.fixture(scope="module")
def graph500() -> Graph:
    return kronecker(seed=0)


def test_edges_lose_direction_loops_and_duplicates() -> None:
    graph = simple_graph(5, np.array([3, 0, 2, 2, 0]), np.array([1, 3, 2, 0, 2]))
    assert graph.first.tolist() == [0, 2, 3, 4, 6, 6]
    assert graph.neighbour.tolist() == [2, 3, 3, 0, 0, 1]
    assert graph.neighbour[graph.edges_of(np.array([3, 4, 0]))].tolist() == [0, 1, 2, 3]


def test_graph500_has_the_size_of_the_challenge(graph500: Graph) -> None:
    assert graph500.neighbour.size / 2 == pytest.approx(2.43e6, rel=0.01)
    assert (graph500.degree > 0).sum() == pytest.approx(55_000, rel=0.01)


@pytest.mark.parametrize(
    ("degree", "vertices", "share"),
    [(32, 15_400, 0.92), (128, 6_900, 0.79), (512, 2_500, 0.59), (1024, 700, 0.34), (2048, 137, 0.14)],
)
def test_graph500_has_the_degrees_of_the_challenge(graph500: Graph, degree: int, vertices: int, share: float) -> None:
    above = graph500.degree > degree
    assert above.sum() == pytest.approx(vertices, rel=0.05)
    assert graph500.degree[above].sum() / graph500.neighbour.size == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("graph", [kronecker(7, 8, seed=3), citation(300, seed=3)], ids=["kronecker", "citation"])
def test_graphs_are_simple_and_undirected(graph: Graph) -> None:
    edges = set(zip(graph.origin.tolist(), graph.neighbour.tolist(), strict=True))
    assert len(edges) == graph.neighbour.size
    assert all(a != b and (b, a) in edges for a, b in edges)


def test_kronecker_labels_say_nothing_about_degrees(graph500: Graph) -> None:
    assert abs(np.corrcoef(np.arange(graph500.degree.size), graph500.degree)[0, 1]) < 0.02


def test_citation_graph_is_like_citeseer() -> None:
    import networkx as nx

    graph = citation(seed=0)
    degree = np.sort(graph.degree)
    assert degree.size == 268_495
    assert graph.neighbour.size / 2 == pytest.approx(1_156_647, rel=0.015)
    assert 700 < degree[-1] < 2500
    rank = np.arange(1, degree.size + 1)
    gini = 2 * (rank * degree).sum() / (degree.size * degree.sum()) - 1
    assert gini == pytest.approx(0.58, abs=0.05)
    assert (degree**2).mean() / degree.mean() == pytest.approx(48, rel=0.25)
    connected = nx.Graph(zip(graph.origin.tolist()[::7], graph.neighbour.tolist()[::7], strict=True))
    assert max(map(len, nx.connected_components(connected))) > 0.5 * len(connected)


def test_seeds_make_graphs() -> None:
    assert np.array_equal(kronecker(6, seed=1).neighbour, kronecker(6, seed=1).neighbour)
    assert not np.array_equal(kronecker(6, seed=1).degree, kronecker(6, seed=2).degree)
    assert not np.array_equal(citation(99, seed=1).degree, citation(99, seed=2).degree)


def test_random_vertices_lie_in_the_largest_component() -> None:
    import networkx as nx

    graph, rng = citation(3000, 4.0, seed=5), np.random.default_rng(0)
    edges = zip(graph.origin.tolist(), graph.neighbour.tolist(), strict=True)
    giant = max(nx.connected_components(nx.Graph(edges)), key=len)
    assert len(giant) < (graph.degree > 0).sum()
    assert {graph.random_vertex(rng) for _ in range(500)} <= giant

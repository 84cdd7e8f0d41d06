"""Graphs by class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpusched_env.games.task_queues.suite import hubs, mesh, road, web
from gpusched_env.workload.graphs import Graph

if TYPE_CHECKING:
    import networkx as nx


def of_networkx(graph: Graph) -> nx.Graph:
    import networkx as nx

    made = nx.Graph()
    made.add_nodes_from(range(len(graph.degree)))
    made.add_edges_from(zip(graph.origin.tolist(), graph.neighbour.tolist(), strict=True))
    return made


def test_a_mesh_is_a_grid_of_three_dimensions() -> None:
    import networkx as nx

    assert nx.is_isomorphic(of_networkx(mesh(3)), nx.grid_graph([3, 3, 3]))
    whole = mesh(5)
    assert whole.degree.max() == 6
    assert whole.neighbour[whole.first[0] : whole.first[1]].tolist() == [1, 5, 25]


def test_a_road_like_graph_is_one_part_of_a_long_way() -> None:
    import networkx as nx

    graph = road(4096, seed=1)
    made = of_networkx(graph)
    assert nx.is_connected(made)
    assert 3500 < len(graph.degree) <= 4096
    # road_usa has 2.41 neighbours a vertex; a whole lattice of this size is 126 edges across.
    assert 2.3 < graph.degree.mean() < 2.7
    assert max(nx.single_source_shortest_path_length(made, 0).values()) > 126
    assert np.array_equal(road(4096, seed=1).neighbour, graph.neighbour)
    assert not np.array_equal(road(4096, seed=2).neighbour[:50], graph.neighbour[:50])


def test_web_like_graphs_have_sites_and_hubs() -> None:
    graph = web(4096, seed=0)
    near = np.abs(graph.origin - graph.neighbour)
    assert (np.minimum(near, 4096 - near) < 128).mean() > 0.6
    assert graph.degree.max() > 20 * graph.degree.mean()


def test_hubs_have_many_times_the_mean_degree() -> None:
    graph = hubs(10_000, 40.0, seed=0)
    assert graph.degree.max() > 30 * graph.degree.mean()

"""Graphs by class, and from files."""

from __future__ import annotations

import gzip
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.task_queues.workload.graph_files import read_graph
from gpusched_env.games.task_queues.workload.graphs import hubs, mesh, road, web
from gpusched_env.workload.graphs import Graph


def of_networkx(graph: Graph) -> nx.Graph:
    made = nx.Graph()
    made.add_nodes_from(range(len(graph.degree)))
    made.add_edges_from(zip(graph.origin.tolist(), graph.neighbour.tolist(), strict=True))
    return made


def test_a_mesh_is_a_grid_of_three_dimensions() -> None:
    assert nx.is_isomorphic(of_networkx(mesh(3)), nx.grid_graph([3, 3, 3]))
    whole = mesh(5)
    assert whole.degree.max() == 6
    assert whole.neighbour[whole.first[0] : whole.first[1]].tolist() == [1, 5, 25]


def test_a_road_like_graph_is_one_part_of_a_long_way() -> None:
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


MATRIX = "%%MatrixMarket matrix coordinate pattern symmetric\n% said by hand\n4 4 4\n2 1\n3 2\n3 3\n4 3\n"
ROADS = "c said by hand\np sp 4 6\na 1 2 10\na 2 1 10\na 2 3 5\na 3 2 5\na 3 4 7\na 4 3 7\n"


@pytest.mark.parametrize(("name", "text"), [("path.mtx", MATRIX), ("path.gr", ROADS)])
def test_files(name: str, text: str, tmp_path: Path) -> None:
    """Both are a path of four; the matrix has an entry on its diagonal, too."""
    (tmp_path / name).write_text(text)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        graph = read_graph(path)
        assert graph.first.tolist() == [0, 1, 3, 5, 6]
        assert graph.neighbour.tolist() == [1, 0, 2, 1, 3, 2]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.txt", "", "is no .mtx"),
        ("a.mtx", "1 2 3", "line 1: must begin with"),
        ("a.mtx", MATRIX.replace("4 4 4", "4 5 4"), "line 3: 4 rows and 5 columns"),
        ("a.mtx", MATRIX.replace("4 4 4", "4 4 5"), "has 4 entries, its head says 5"),
        ("a.mtx", MATRIX.replace("3 2\n", "9 2\n"), "entry 2 names vertex 9, they are 1 to 4"),
        ("a.mtx", MATRIX.replace("3 2\n", "3 x\n"), "every entry must name two vertices"),
        ("a.gr", "a 1 2 3", "must be 'p sp VERTICES ARCS'"),
        ("missing.gr", None, "No such file"),
    ],
)
def test_bad_files(name: str, text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        read_graph(tmp_path / name)

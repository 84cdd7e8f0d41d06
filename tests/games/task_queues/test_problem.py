"""Problems and forms: what is refused, with one clear error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.task_queues.hardware.links import NVLINK
from gpusched_env.games.task_queues.hardware.machine import V100
from gpusched_env.games.task_queues.problem import PARTITIONS, Form, TaskProblem, cut_share, owners, vertices_kept
from gpusched_env.games.task_queues.suite import SUITE, mesh, random_task_problem, task_problem
from gpusched_env.workload.graphs import citation, simple_graph
from tests.refusals import refused

GRAPH = mesh(3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"source": 27}, "source is 27, but the graph has vertices 0 to 26"),
        ({"capacity": 26}, "capacity is 26, must be at least the 27 vertices"),
        ({"application": "sssp"}, "application is 'sssp'"),
        ({"damping": 1.0}, "damping is 1.0"),
        ({"epsilon": 0.0}, "epsilon is 0.0"),
        ({"polls": 0}, "polls is 0"),
        ({"gpus": 0}, "gpus is 0, must be 1 to 27: each owns a vertex at least"),
        ({"gpus": 28}, "gpus is 28, must be 1 to 27"),
        ({"gpus": 2, "application": "colouring"}, "gpus is 2, but a colouring runs on 1"),
        ({"partition": "vertex"}, "partition is 'vertex'; did you mean 'vertices'"),
    ],
)
def test_bad_problems(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        TaskProblem(**{"graph": GRAPH, "application": "bfs", **given})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"strategy": "discreet"}, "strategy is 'discreet'; did you mean 'discrete'"),
        ({"worker": "thread"}, "worker is 'thread'"),
        ({"fetch": 0}, "fetch is 0, must be 1 to 256"),
        ({"polls": 0}, "polls is 0, must be at least 1"),
        ({"threshold": 4}, "threshold is 4, but only discrete forms"),
    ],
)
def test_bad_forms(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Form(**given)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"latency_ps": -1}, "link nvlink: latency_ps is -1, must be a whole number of at least 0"),
        ({"batch": 0}, "batch is 0, must be 1 to 131072, or none: a push"),
        ({"wait": 0}, "wait is 0, must be a whole number of at least 1"),
        ({"look_ps": 0}, "look_ps is 0"),
        ({"bytes_per_us": 0.0}, "bytes_per_us is 0.0, must be more than 0"),
        ({"operation_bytes": 1.5}, "operation_bytes is 1.5, must be a whole number"),
    ],
)
def test_bad_links(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(NVLINK, **given)


def test_every_gpu_owns_a_part() -> None:
    """Ranges of as many vertices, ranges with as many edges, or at random."""
    hub = citation(1000, 8.0, seed=1)
    for scheme in PARTITIONS:
        home = owners(hub, 3, scheme)  # type: ignore[arg-type]
        assert set(home.tolist()) == {0, 1, 2}
        if scheme != "random":
            assert (np.diff(home) >= 0).all()
    edges = np.bincount(owners(hub, 3, "edges"), hub.degree)
    assert edges.max() / edges.min() == pytest.approx(1.0, abs=0.1)
    assert np.bincount(owners(hub, 3, "vertices")).tolist() == [334, 333, 333]
    few = simple_graph(3, np.array([2]), np.array([2]))
    assert owners(few, 3, "edges").tolist() == [0, 1, 2]
    strips = owners(mesh(4), 2, "vertices")
    assert cut_share(mesh(4), strips) == 16 / 144
    assert vertices_kept(mesh(4), strips, 0) == 48


def test_workers_of_the_papers_gpu() -> None:
    """Grids of the authors' logs: 160 blocks of 640 threads, 80 times 24 warps; 4 blocks of 512 threads fill an SM."""
    problem = TaskProblem(graph=GRAPH, application="bfs")
    assert problem.shape(Form()) == (160, 160, 20)
    assert problem.shape(Form(worker="warp")) == (1920, 1920, 1)
    assert problem.shape(Form("discrete")) == (320, 320, 16)
    assert TaskProblem(graph=GRAPH, application="bfs", gpus=2).shape(Form()) == (160, 160, 16)


def test_an_edge_costs_what_misses_the_cache() -> None:
    """A million vertices of 4 bytes fit into 6 MB; of 3,145,728 half miss, and move 32 bytes each."""
    assert V100.ps_per_edge(1_000_000) == pytest.approx(4 / 0.9)
    assert V100.ps_per_edge(3_145_728) == pytest.approx((4 + 16) / 0.9)


def test_the_suite_is_there() -> None:
    small = task_problem("colouring-mesh", 1)
    assert (small.application, len(small.graph.degree)) == ("colouring", 33**3)
    with refused(InputError, "did you mean 'bfs-road'"):
        task_problem("bfs-rood")
    assert {random_task_problem(seed).application for seed in range(12)} <= {"bfs", "pagerank", "colouring"}
    assert len(SUITE) == 8

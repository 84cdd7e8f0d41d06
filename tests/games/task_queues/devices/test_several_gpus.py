"""Several GPUs: by hand to the nanosecond, right results whatever the form and the link, and what has no room."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpusched_env.errors import DeadlockError
from gpusched_env.games.task_queues.device import TaskDevice
from gpusched_env.games.task_queues.hardware.links import TaskLink
from gpusched_env.games.task_queues.problem import Form, TaskProblem
from gpusched_env.games.task_queues.session import fault_of
from gpusched_env.workload.graphs import kronecker
from tests.games.task_queues.devices.toys import BATCHES, PS, PUSH, TOY, events, graph, networkx_graph, run, toy
from tests.refusals import refused

PATH = graph(3, (0, 1), (1, 2))
"""GPU 0 owns vertices 0 and 1, GPU 1 owns vertex 2."""
GRAPH = kronecker(7, 6, seed=3)
SOURCE = int(GRAPH.degree.argmax())


def test_a_push_over_nvlink(device: TaskDevice) -> None:
    """Two GPUs with two workers each, three vertices in a row: one push that improves, and one back that does not."""
    run(device, toy(PATH, gpus=2, link=PUSH), Form(fetch=1))
    assert events(device) == [
        (200, "GRAB", 0, 0, 0),
        (200, "GRAB", 1, 1, 0),
        (200, "GRAB", 2, 0, 0),
        (200, "GRAB", 3, 1, 0),
        (210, "STEP", 0, 0, 1),
        (210, "IDLE", 2, 0, 0),
        (211, "IDLE", 1, 1, 0),
        (211, "IDLE", 3, 1, 0),
        # 20 for loading, 10 for the slot, 4 to sort what was found by owner; vertex 1 is of this GPU.
        (244, "RESERVE", 0, 1, 1),
        (395, "PUBLISH", 0, 2, 1),
        (395, "GRAB", 0, 2, 0),
        (408, "IDLE", 0, 2, 0),
        (421, "STEP", 1, 1, 1),
        # Vertex 2 is not. Its depth sinks 1 + 200 later; the answer is there after 1 + 400.
        (455, "SEND", 1, 1, 1),
        (656, "LAND", -2, 0, 1),
        (780, "VOTE", 2, 1, 0),
        (781, "VOTE", 3, 2, 0),
        (856, "GRAB", 1, 3, 0),
        (978, "VOTE", 0, 3, 0),
        # The fence took 400, the reservation 10.
        (1266, "IDLE", 1, 3, 0),
        # Five trips after the departure at 456.
        (1456, "ANNOUNCE", -2, 0, 1),
        (1470, "STEP", 2, 0, 1),
        # GPU 1 does not know that vertex 1 has been reached.
        (1504, "SEND", 2, 0, 1),
        # The last vote: but something is on the way.
        (1626, "VOTE", 1, 4, 0),
        (1705, "LAND", -1, 1, 0),
        # No fence: nothing was put.
        (1905, "GRAB", 2, 2, 0),
        (1915, "IDLE", 2, 2, 0),
        (2505, "ANNOUNCE", -1, 1, 2),
        (2508, "LEAVE", 0, 0, 0),
        (2515, "LEAVE", 2, 0, 0),
        (2521, "LEAVE", 3, 0, 0),
        (2526, "LEAVE", 1, 0, 0),
        (2526, "OVER", -1, 0, 0),
    ]
    assert device.time_ps == 2576 * PS
    assert device.data.level.tolist() == [0, 1, 2]


def test_aggregation_over_infiniband(device: TaskDevice) -> None:
    """One task waits for the third look, two go at the next one."""
    star = graph(6, (0, 1), (1, 3), (0, 4), (0, 5))
    run(device, toy(star, gpus=2, link=BATCHES, polls=60), Form(fetch=1))
    rows = [row for row in events(device) if row[1] in ("SEND", "BATCH", "LAND", "ANNOUNCE")]
    assert rows == [
        # Two tasks at 244: the look at 300 finds a batch. Over the link in 2, there after 200 more.
        (244, "SEND", 0, 1, 2),
        (300, "BATCH", -1, 1, 2),
        # Of vertex 1, one task: looks at 500, 600 and 700.
        (455, "SEND", 1, 1, 1),
        (502, "LAND", -2, 0, 2),
        (502, "ANNOUNCE", -2, 0, 2),
        (700, "BATCH", -1, 1, 1),
        (901, "LAND", -2, 0, 1),
        (901, "ANNOUNCE", -2, 0, 3),
        # And back from vertex 3, for nothing: looks at 1000, 1100 and 1200.
        (948, "SEND", 2, 0, 1),
        (1200, "BATCH", -2, 0, 1),
        (1401, "LAND", -1, 1, 0),
        (1401, "ANNOUNCE", -1, 1, 2),
    ]
    assert device.data.level.tolist() == [0, 1, 1 << 40, 2, 1, 1]


@pytest.mark.parametrize("link", [PUSH, BATCHES], ids=lambda link: link.name)
@pytest.mark.parametrize("strategy", ["persistent", "discrete", "bulk-synchronous"])
@pytest.mark.parametrize("gpus", [2, 3])
def test_results_are_right(device: TaskDevice, link: TaskLink, strategy: str, gpus: int) -> None:
    """Depths as networkx has them; ranks close to its."""
    import networkx as nx

    form = Form(strategy, fetch=8, threshold=2 if strategy == "discrete" else 0)  # type: ignore[arg-type]
    common = {"graph": GRAPH, "gpus": gpus, "link": link, "machine": TOY, "partition": "random", "polls": 3000}
    run(device, TaskProblem(application="bfs", source=SOURCE, **common), form)  # type: ignore[arg-type]
    depths = nx.single_source_shortest_path_length(networkx_graph(GRAPH), SOURCE)
    assert {vertex: device.data.level[vertex] for vertex in depths} == depths
    assert device.totals["sent"] > 0
    assert device.totals["flying"] == 0
    problem = TaskProblem(application="pagerank", epsilon=1e-4, capacity=200_000, **common)  # type: ignore[arg-type]
    run(device, problem, replace(form, threshold=0))
    exact = nx.pagerank(networkx_graph(GRAPH), alpha=0.85, tol=1e-12)
    ranks = device.data.rank[list(exact)] / device.data.rank[list(exact)].sum()
    assert ranks == pytest.approx(list(exact.values()), rel=5e-3)
    assert fault_of(problem, device.data) == ""


def test_forms_change_while_tasks_are_on_the_way(device: TaskDevice) -> None:
    """None is lost: a form ends when all have arrived."""
    slow = replace(PUSH, latency_ps=5_000 * PS)
    problem = TaskProblem(
        graph=GRAPH, application="bfs", source=SOURCE, gpus=2, link=slow, machine=TOY, polls=100, relaunch=True
    )
    device.begin(problem, Form())
    forms = [Form("discrete"), Form("bulk-synchronous"), Form("persistent", "warp", 4)]
    over, flew, changes = False, 0, 0
    while not over:
        over = device.advance(device.time_ps + 3_000_000)
        if not over and changes < len(forms):
            flew += device.totals["flying"] > 0
            device.change(forms[changes])
            changes += 1
    assert flew
    assert fault_of(problem, device.data) == ""


def test_one_gpu_is_as_before(device: TaskDevice) -> None:
    """A link that nothing goes over changes nothing."""
    runs = []
    for link in (PUSH, BATCHES):
        problem = TaskProblem(graph=GRAPH, application="bfs", source=SOURCE, link=link, machine=TOY, polls=500)
        run(device, problem, Form())
        runs.append((device.time_ps, device.totals.tolist()))
    assert runs[0] == runs[1]
    assert not device.totals["sent"]


def test_a_link_that_overflows(device: TaskDevice) -> None:
    """An aggregation queue that is never sent from."""
    never = replace(BATCHES, batch=2000, wait=1_000_000)
    options = {"application": "pagerank", "epsilon": 1e-4, "partition": "random", "capacity": 200_000}
    device.begin(toy(GRAPH, gpus=2, link=never, log=0, **options), Form(polls=1_000_000))
    with refused(DeadlockError, "GPU", "640 places"):
        device.advance()


def test_a_vote_on_two_gpus_that_cannot_complete(device: TaskDevice) -> None:
    device.begin(toy(graph(3, (0, 1), (1, 2)), gpus=2, link=PUSH, polls=30), Form(fetch=1, grid=5))
    with refused(DeadlockError, "4 of 10 workers", "6 wait", "2 GPUs"):
        device.advance()


def test_what_lands_late_is_done_twice(device: TaskDevice) -> None:
    """Vertex 4 is two steps away over GPU 1, and four on GPU 0: if the link is slow, it is taken at depth 4 first."""
    ring = graph(10, (0, 1), (1, 2), (2, 3), (3, 4), (0, 5), (5, 4))
    tasks = []
    for latency in (1, 3000):
        link = replace(PUSH, latency_ps=latency * PS)
        run(device, toy(ring, gpus=2, link=link, polls=2000), Form(fetch=1))
        tasks.append(int(device.totals["tasks"]))
        assert device.data.level[:6].tolist() == [0, 1, 2, 3, 2, 1]
    assert tasks == [6, 7]

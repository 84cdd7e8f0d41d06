"""Results are right whatever the form, judged by networkx; forms change on the way; errors name what is wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as altered

from gpusched_env.errors import DeadlockError, IllegalCommand, InputError
from gpusched_env.games.task_queues.baselines.registry import TASK_SCHEDULERS
from gpusched_env.games.task_queues.device import TaskDevice
from gpusched_env.games.task_queues.devices import make_task_device
from gpusched_env.games.task_queues.problem import Form, TaskProblem
from gpusched_env.games.task_queues.session import run_tasks_of, run_tuned
from gpusched_env.workload.graphs import kronecker
from tests.games.task_queues.devices.toys import TOY, graph, networkx_graph, run, toy
from tests.refusals import refused

GRAPH = kronecker(7, 6, seed=3)
SOURCE = int(GRAPH.degree.argmax())
MACHINE = replace(TOY, gpu=altered(TOY.gpu, sms=4))
"""Eight persistent workers."""
FORMS = [
    Form("persistent", "block", 32),
    Form("persistent", "warp", 4),
    Form("discrete", "block", 32),
    Form("discrete", "warp", 8),
    Form("bulk-synchronous", "block", 256),
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_depths(device: TaskDevice, form: Form) -> None:
    import networkx as nx

    run(device, TaskProblem(graph=GRAPH, application="bfs", source=SOURCE, polls=2000, machine=MACHINE), form)
    depths = nx.single_source_shortest_path_length(networkx_graph(GRAPH), SOURCE)
    assert {vertex: device.data.level[vertex] for vertex in depths} == depths
    assert (device.data.level < 1 << 40).sum() == len(depths)


def test_depths_with_two_queues(device: TaskDevice) -> None:
    import networkx as nx

    form = Form("discrete", threshold=2, delta=1)
    run(device, TaskProblem(graph=GRAPH, application="bfs", source=SOURCE, machine=MACHINE), form)
    depths = nx.single_source_shortest_path_length(networkx_graph(GRAPH), SOURCE)
    assert {vertex: device.data.level[vertex] for vertex in depths} == depths
    assert (device.queues["end"] > 0).all()


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_ranks(device: TaskDevice, form: Form) -> None:
    """Without teleports to vertices of its own, a rank is networkx's times the number of vertices."""
    import networkx as nx

    run(
        device,
        TaskProblem(graph=GRAPH, application="pagerank", epsilon=1e-4, polls=5000, capacity=200_000, machine=MACHINE),
        form,
    )
    exact = nx.pagerank(networkx_graph(GRAPH), alpha=0.85, tol=1e-12)
    ranks = device.data.rank[list(exact)] / device.data.rank[list(exact)].sum()
    assert ranks == pytest.approx(list(exact.values()), rel=2e-3)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_colours(device: TaskDevice, form: Form) -> None:
    run(device, TaskProblem(graph=GRAPH, application="colouring", polls=2000, machine=MACHINE), form)
    colour = device.data.level
    assert all(colour[one] != colour[other] for one, other in networkx_graph(GRAPH).edges)
    assert colour.min() == 0
    assert colour.max() <= GRAPH.degree.max()


@pytest.mark.parametrize("application", ["bfs", "colouring", "pagerank"])
def test_forms_change_on_the_way(device: TaskDevice, application: str) -> None:
    """Tasks that were taken and not begun are put back, and none is lost."""
    import networkx as nx

    options: dict[str, Any] = {"application": application, "source": SOURCE, "machine": MACHINE}
    problem = TaskProblem(graph=GRAPH, polls=100, relaunch=True, **options)
    device.begin(problem, FORMS[0])
    over, changes = False, 0
    while not over:
        over = device.advance(device.time_ps + 400_000)
        if not over and changes < 8:
            changes += 1
            device.change(FORMS[changes % len(FORMS)])
    assert device.totals["changes"] >= 1
    if application == "bfs":
        depths = nx.single_source_shortest_path_length(networkx_graph(GRAPH), SOURCE)
        assert {vertex: device.data.level[vertex] for vertex in depths} == depths
    with refused(InputError, "finished"):
        device.change(FORMS[0])


def test_a_queue_that_overflows(device: TaskDevice) -> None:
    """Pushes of a colouring are as many as its vertices at least."""
    problem = toy(graph(4, (0, 1), (1, 2)), application="colouring", capacity=5)
    device.begin(problem, Form("bulk-synchronous", fetch=4))
    with refused(DeadlockError, "0 overflows", "worker 0", "5 places"):
        device.advance()


def test_a_vote_that_cannot_complete(device: TaskDevice) -> None:
    device.begin(toy(graph(3, (0, 1), (1, 2)), polls=3), Form(fetch=1, grid=5))
    with refused(DeadlockError, "2 of 5 workers", "3 wait"):
        device.advance()


def test_an_early_end(device: TaskDevice) -> None:
    """On a long path one worker at a time has something to do; the others vote, and it does, too."""
    path = graph(40, *((i, i + 1) for i in range(39)))
    device.begin(toy(path, polls=2), Form(fetch=1))
    with refused(DeadlockError, "after 2"):
        device.advance()
    run(device, toy(path, polls=2, relaunch=True), Form(fetch=1))
    assert device.data.level.tolist() == list(range(40))
    assert device.totals["kernels"] > 1


def test_as_few_polls_as_will_do() -> None:
    """On the compiled device: the other one would go through millions of polls."""
    device = make_task_device("compiled")
    path = graph(40, *((i, i + 1) for i in range(39)))
    problem = toy(path)
    tuned = run_tuned(problem, Form(fetch=1), device)
    assert tuned.polls is not None
    few = Form(fetch=1, polls=max(1, tuned.polls // 2))
    device.begin(problem, few)
    with refused(DeadlockError, "early"):
        device.advance()


def test_a_threshold_is_of_depths(device: TaskDevice) -> None:
    with refused(InputError, "threshold"):
        device.begin(toy(graph(2, (0, 1)), application="colouring"), Form("discrete", threshold=2))


@pytest.mark.parametrize("name", TASK_SCHEDULERS.names())
def test_every_scheduler_runs(name: str) -> None:
    problem = TaskProblem(graph=GRAPH, application="bfs", source=SOURCE, polls=20, relaunch=True, machine=TOY)
    times = [
        run_tasks_of(TASK_SCHEDULERS.make(name), problem, make_task_device(device)).time_ps
        for device in ("reference", "compiled")
    ]
    assert times[0] == times[1]
    best = run_tasks_of(TASK_SCHEDULERS.make("offline-best"), problem, make_task_device("compiled")).time_ps
    if not getattr(TASK_SCHEDULERS.maker(name), "changes", True):
        assert best <= times[0]


def test_a_scheduler_that_gives_no_form() -> None:
    class Wrong:
        def reset(self, knowledge: object, rng: np.random.Generator) -> str:
            return "persistent"

        def decide(self, view: object) -> str:
            return "persistent"

    with refused(IllegalCommand, "'persistent'", "form"):
        run_tasks_of(Wrong(), toy(graph(1)), make_task_device("compiled"))  # type: ignore[arg-type]

"""Small problems of tasks to solve by hand: round prices in nanoseconds, two workers, memory that is never short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from gpusched_env.games.task_queues.device import Event, TaskDevice
from gpusched_env.games.task_queues.hardware.links import TaskLink
from gpusched_env.games.task_queues.hardware.machine import TaskMachine
from gpusched_env.games.task_queues.problem import Form, TaskProblem
from gpusched_env.hardware.specs import load_gpu
from gpusched_env.workload.graphs import Graph, simple_graph

if TYPE_CHECKING:
    import networkx as nx

PS = 1000
"""A nanosecond."""
TOY = TaskMachine(
    gpu=replace(load_gpu("v100-sxm"), name="one-sm", sms=1, dram_bytes_per_us=1e12),
    persistent_blocks_per_sm=2,
    persistent_warps_per_sm=2,
    discrete_warps_per_sm=16,
    discrete_block_warps=8,
    atomic_ps=1 * PS,
    grab_ps=9 * PS,
    load_ps=20 * PS,
    vertex_ps=15 * PS,
    slot_ps=10 * PS,
    push_ps=50 * PS,
    warp_push_ps=40 * PS,
    write_ps=100 * PS,
    poll_ps=30 * PS,
    warp_poll_ps=30 * PS,
    refresh_ps=5 * PS,
    host_launch_ps=100 * PS,
    launch_ps=100 * PS,
    copy_ps=10 * PS,
    sync_ps=50 * PS,
)

PUSH = TaskLink(name="push", latency_ps=200 * PS, bytes_per_us=64_000.0, operation_bytes=32, sort_ps=4 * PS)
"""A task of a search takes it 1 ns, and a trip 200."""
BATCHES = TaskLink(
    name="batches",
    latency_ps=200 * PS,
    bytes_per_us=8_000.0,
    operation_bytes=8,
    sort_ps=4 * PS,
    batch=2,
    wait=3,
    look_ps=100 * PS,
)
"""The same; the communication kernel looks every 100 ns, and sends two tasks, or what there is at the third look."""


def graph(vertices: int, *edges: tuple[int, int]) -> Graph:
    """Of undirected edges."""
    ends, others = np.array(edges, np.int64).reshape(-1, 2).T
    return simple_graph(vertices, ends, others)


def toy(made: Graph, **options: Any) -> TaskProblem:
    """A search on the toy machine that keeps a log."""
    return TaskProblem(graph=made, **{"application": "bfs", "machine": TOY, "log": 1000, "polls": 20, **options})


def events(device: TaskDevice) -> list[tuple[Any, ...]]:
    """The log: times in nanoseconds, names of events."""
    rows = device.log.tolist()
    return [(time_ps / PS, Event(event).name, worker, a, b) for time_ps, event, worker, a, b in rows]


def run(device: TaskDevice, problem: TaskProblem, form: Form) -> TaskDevice:
    """From the beginning to the end."""
    device.begin(problem, form)
    assert device.advance()
    return device


def networkx_graph(graph: Graph) -> nx.Graph:
    """Of the vertices that have edges."""
    import networkx as nx

    return nx.Graph(zip(graph.origin.tolist(), graph.neighbour.tolist(), strict=True))

"""Launches that are parts of others: the nodes of graphs, and the children that kernels launch from the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpusched_env.devices.reference.clock import Phase
from gpusched_env.devices.reference.launch import Launch, State
from gpusched_env.hardware.clock import NEVER, to_ps
from gpusched_env.scenarios.program import HostOp
from gpusched_env.workload.workload import OpKind

if TYPE_CHECKING:
    from gpusched_env.devices.reference.device import ReferenceDevice


def begin_graph(device: ReferenceDevice, graph: Launch) -> None:
    """A graph is ready: its nodes become launches that wait for each other, in its stream."""
    assert isinstance(graph.op, HostOp)
    now = device.clock.now
    gap_ps = to_ps(device.problem.gpu.timing.graph_gap_us)
    nodes: list[Launch] = []
    for op in graph.op.nodes:
        node = device.streams.new(op, graph.tenant, graph.job, graph)
        node.state = State.LAUNCHED
        node.stream, node.priority, node.partition = graph.stream, graph.priority, graph.partition
        node.branch, node.gap_ps = op.branch, gap_ps
        node.issued_ps, node.launched_ps, node.ready_ps = graph.issued_ps, graph.launched_ps, now
        for before in op.after:
            node.wait_for(nodes[before])
        nodes.append(node)
    graph.emptied = True
    graph.parts = len(nodes)
    for node in nodes:
        if not node.waits:
            _arm(device, node, now)


def _arm(device: ReferenceDevice, node: Launch, at_ps: int) -> None:
    node.alarm.set(at_ps, Phase.READY, node.id, lambda: device.streams.ready(node))


def started(device: ReferenceDevice, launch: Launch) -> None:
    """The first block of a kernel has started since it was launched, or a copy: its graph has, and it has children."""
    now = device.clock.now
    first = launch.first_started_ps == NEVER
    for begun in (launch, launch.parent):
        if begun is not None and (begun is launch or begun.kind is OpKind.GRAPH) and begun.started_ps == NEVER:
            begun.started_ps = now
            begun.first_started_ps = min(begun.first_started_ps, now)
    if first and isinstance(launch.op, HostOp):
        for op in launch.op.children:
            child = device.streams.new(op, launch.tenant, launch.job, launch)
            child.state = State.COMING
            launch.parts += 1
            _come(device, child)


def _come(device: ReferenceDevice, child: Launch) -> None:
    """A child is issued when the launch call on the device has taken effect."""
    at_ps = device.clock.now + to_ps(device.problem.gpu.timing.child_launch_us)
    child.alarm.set(at_ps, Phase.READY, child.id, lambda: device.streams.issued(child))

"""Launches that the GPU makes itself: the nodes of a graph, and the children of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from gpusched_env.devices.reference.clock import Phase
from gpusched_env.devices.reference.launch import Launch, State
from gpusched_env.devices.reference.setting import Setting
from gpusched_env.hardware.clock import to_ps
from gpusched_env.scenarios.program import ChildOp, HostOp, NodeOp
from gpusched_env.workload.host.objects import Job


class New(Protocol):
    """Makes a launch with the next id."""

    def __call__(self, op: NodeOp | ChildOp, tenant: int, job: Job, parent: Launch) -> Launch: ...


class Offspring:
    """A launch with offspring has finished when they have."""

    def __init__(self, setting: Setting, new: New, issue: Callable[[Launch], None]) -> None:
        """``issue``: called with a child when its launch call on the device has taken effect."""
        self._clock, self._new, self._issue = setting.clock, new, issue
        timing = setting.problem.gpu.timing
        self._gap_ps, self._child_ps = to_ps(timing.graph_gap_us), to_ps(timing.child_launch_us)

    def make_nodes(self, graph: Launch) -> list[Launch]:
        """The nodes of a graph that is ready become launches that wait for each other, in its stream."""
        assert isinstance(graph.op, HostOp)
        for op in graph.op.nodes:
            node = self._new(op, graph.tenant, graph.job, graph)
            node.state = State.LAUNCHED
            node.stream, node.priority, node.partition = graph.stream, graph.priority, graph.partition
            node.branch, node.gap_ps = op.branch, self._gap_ps
            node.issued_ps, node.launched_ps, node.ready_ps = graph.issued_ps, graph.launched_ps, self._clock.now
            for before in op.after:
                node.wait_for(graph.nodes[before])
            graph.nodes.append(node)
        graph.emptied = True
        graph.parts = len(graph.nodes)
        return graph.nodes

    def launch_children(self, kernel: Launch) -> None:
        """A kernel has started for the first time: it launches its children."""
        if not isinstance(kernel.op, HostOp):
            return
        for op in kernel.op.children:
            child = self._new(op, kernel.tenant, kernel.job, kernel)
            child.state = State.COMING
            kernel.parts += 1
            child.set_off(self._clock.now + self._child_ps, Phase.READY, self._issue)

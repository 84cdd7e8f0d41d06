"""Programs of a problem: a workload's operations with the problem's streams, kernels and dependencies.

Events are resolved here. An event that a workload records stands for the last operations before it in its stream; an
operation behind a wait for it waits for those. Operations that others wait for get a *mark*, a number within the job,
and the others name the mark. The order within a stream is not spelled out: whoever runs a program keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.hardware.timing import host_copy_us
from gpusched_env.workload.dependent import check_tiles
from gpusched_env.workload.profile import KernelProfile
from gpusched_env.workload.workload import (
    DEVICE_OPS,
    GraphNode,
    Marks,
    Op,
    OpKind,
    Ref,
    Segment,
    TileNeeds,
    Variant,
    Workload,
)

NEEDS_BY_ROW: Final = TileNeeds()


@dataclass(frozen=True, slots=True)
class NodeOp:
    """A node of a graph on this problem's GPU."""

    kind: OpKind
    identity: int
    """Row of ``Problem.kernels``; -1 if it is no kernel."""
    scale: float
    """Actual over profiled duration."""
    device_us: float
    bytes: int
    after: tuple[int, ...]
    """Nodes that it waits for."""
    branch: int
    """Which of the graph's branches it is on: nodes of one follow each other, branches run side by side."""
    cold: float = 0.0
    """Share by which it takes longer where the L2 has lost its data."""


@dataclass(frozen=True, slots=True)
class ChildOp:
    """A kernel launched from the device."""

    identity: int
    scale: float
    device_us: float
    cold: float = 0.0
    """Share by which it takes longer where the L2 has lost its data, as of :class:`HostOp`."""


@dataclass(frozen=True, slots=True)
class HostOp:
    """One host operation of a tenant on this problem's GPU."""

    kind: OpKind
    """A kind of :data:`~gpusched_env.workload.workload.DEVICE_OPS`, a synchronisation, or ``HOST``."""
    host_us: float
    """Host time before the operation."""
    identity: int
    """Row of ``Problem.kernels``, graphs are counted behind them; -1 if it is neither."""
    scale: float
    """Actual over profiled duration of this occurrence (kernels)."""
    device_us: float
    """Device time alone (kernels: profiled duration times ``scale``; graphs: along their longest chain)."""
    bytes: int
    left_us: float
    """Profiled device time of this and all later kernels of its thread's iteration."""
    stream: int = 0
    """Row of ``Problem.streams``."""
    gap_us: float = 0.0
    """Time from the end of the operation before in the stream, already queued, to its start."""
    after: tuple[int, ...] = ()
    """Marks of operations of its job that it waits for, besides the one before it in its stream."""
    mark: int = -1
    """The number by which operations of its job wait for it; -1: none does."""
    tiles: int = -1
    """The mark of the kernel whose tiles it needs, which is one of ``after``; -1: none."""
    needs: TileNeeds = NEEDS_BY_ROW
    """What its tiles need of the tiles of that kernel."""
    children: tuple[ChildOp, ...] = ()
    nodes: tuple[NodeOp, ...] = ()
    """Nodes of a graph."""
    reads: tuple[Segment, ...] | None = None
    writes: tuple[Segment, ...] | None = None
    cold: float = 0.0
    """Share by which it takes longer where the L2 has lost its data (kernels)."""

    @property
    def launches(self) -> int:
        """Launches that it is, with its children and its graph's nodes; 0 if it never reaches the device."""
        return 0 if self.kind not in DEVICE_OPS else 1 + len(self.children) + len(self.nodes)


@dataclass(frozen=True, slots=True)
class JobProgram:
    """What one job does: the operations of all host threads, thread after thread."""

    ops: tuple[HostOp, ...]
    threads: tuple[int, ...]
    """How many operations belong to each thread, the main one first."""
    marks: int
    """Number of marks."""

    def __iter__(self) -> Iterator[HostOp]:
        return iter(self.ops)

    def __len__(self) -> int:
        return len(self.ops)

    def __getitem__(self, place: int) -> HostOp:
        return self.ops[place]

    def by_thread(self) -> list[tuple[HostOp, ...]]:
        """Operations of each thread."""
        found, first = [], 0
        for count in self.threads:
            found.append(self.ops[first : first + count])
            first += count
        return found

    def with_host_times(self, factor: float) -> JobProgram:
        """The program with host times that are ``factor`` times as long."""
        return replace(self, ops=tuple(replace(op, host_us=op.host_us * factor) for op in self.ops))

    def with_launch_times(self, host_us: float) -> JobProgram:
        """The program with a host that takes ``host_us`` for each launch, and no time for anything else."""
        return replace(
            self, ops=tuple(replace(op, host_us=host_us if op.kind in DEVICE_OPS else 0.0) for op in self.ops)
        )


@dataclass(frozen=True, slots=True)
class Compiler:
    """Turns the operations of one workload into those of a problem."""

    workload: Workload
    profiles: Sequence[KernelProfile]
    """Profiles of the problem's kernels."""
    first_kernel: int
    """Row of the workload's first kernel in the problem."""
    first_graph: int
    """Identity of the workload's first graph in the problem."""
    first_stream: int
    """Row of the tenant's first stream in the problem."""
    gpu: GpuSpec

    def job(self, variant: Variant) -> JobProgram:
        """The program of a variant.

        Raises:
            InputError: tiles of a kernel need those of none, or their grids do not match.
        """
        marks = Marks(variant)
        check_tiles(self.workload, variant, marks)
        threads = [self._thread(ops, t, marks) for t, ops in enumerate(variant.all_threads)]
        return JobProgram(
            ops=tuple(op for ops in threads for op in ops),
            threads=tuple(len(ops) for ops in threads),
            marks=marks.count,
        )

    def _thread(self, ops: tuple[Op, ...], thread: int, marks: Marks) -> list[HostOp]:
        left_us = sum(self._profiled_us(op) for op in ops)
        found: list[HostOp] = []
        spent_us = 0.0
        for place, op in enumerate(ops):
            spent_us += op.host_us
            if op.kind in (OpKind.RECORD, OpKind.WAIT):
                continue
            after = marks.awaited_marks(thread, place)
            found.append(
                HostOp(
                    kind=op.kind,
                    host_us=spent_us,
                    left_us=left_us,
                    stream=self.first_stream + op.stream,
                    gap_us=self.gpu.timing.stream_gap_us,
                    after=after,
                    mark=marks.of((thread, place)),
                    tiles=marks.tiles(op),
                    needs=op.needs,
                    reads=op.reads,
                    writes=op.writes,
                    bytes=op.bytes,
                    **self._device_part(op),
                )
            )
            left_us -= self._profiled_us(op)
            spent_us = 0.0
        if spent_us > 0.0:
            found.append(HostOp(OpKind.HOST, spent_us, -1, 1.0, 0.0, 0, 0.0))
        return found

    def _profiled_us(self, op: Op) -> float:
        if op.kind is OpKind.KERNEL:
            return self.profiles[self.first_kernel + op.index].duration_us
        if op.kind is OpKind.GRAPH:
            nodes = self.workload.graphs[op.index]
            return sum(self.profiles[self.first_kernel + n.index].duration_us for n in nodes if n.index >= 0)
        return 0.0

    def _device_part(self, op: Op) -> dict[str, Any]:
        """The fields that say what is done on the device."""
        if op.kind is OpKind.KERNEL:
            identity, scale, device_us = self._kernel(op.index, op.duration_us)
            children = tuple(ChildOp(*self._kernel(c.index, c.duration_us)) for c in op.children)
            part = {"identity": identity, "scale": scale, "device_us": device_us, "children": children}
            return part | {"cold": op.cold}
        if op.kind is OpKind.GRAPH:
            nodes = self.nodes(self.workload.graphs[op.index])
            alone_us = critical_path_us(nodes, self.gpu.timing.graph_gap_us)
            return {"identity": self.first_graph + op.index, "scale": 1.0, "device_us": alone_us, "nodes": nodes}
        return {"identity": -1, "scale": 1.0, "device_us": self._copy_us(op)}

    def _kernel(self, index: int, duration_us: float) -> tuple[int, float, float]:
        """Identity, scale and device time of a kernel that took ``duration_us`` when it was recorded."""
        scale = duration_us / self.workload.kernels[index].duration_us
        identity = self.first_kernel + index
        return identity, scale, self.profiles[identity].duration_us * scale

    def _copy_us(self, op: Op | GraphNode) -> float:
        # A recorded copy keeps its time on the GPU of the recording; elsewhere the engine's speed decides.
        between = op.kind in (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST) and self.workload.gpu != self.gpu.name
        return (
            host_copy_us(op.bytes, self.gpu.copies.latency_us, self.gpu.copies.bytes_per_us)
            if between
            else op.duration_us
        )

    def nodes(self, nodes: Sequence[GraphNode]) -> tuple[NodeOp, ...]:
        """A graph's nodes."""
        found: list[NodeOp] = []
        for node in nodes:
            if node.kind is OpKind.KERNEL:
                identity, scale, device_us = self._kernel(node.index, node.duration_us)
            else:
                identity, scale, device_us = -1, 1.0, self._copy_us(node)
            found.append(NodeOp(node.kind, identity, scale, device_us, node.bytes, node.after, 0, node.cold))
        return on_branches(found)


def on_branches(nodes: Sequence[NodeOp]) -> tuple[NodeOp, ...]:
    """Nodes of a graph, each on the branch of a node that it waits for, if none went on with it, or on its own."""
    found: list[NodeOp] = []
    tips: dict[int, int] = {}
    branches = 0
    for number, node in enumerate(nodes):
        branch = next((tips.pop(before) for before in node.after if before in tips), -1)
        if branch < 0:
            branch, branches = branches, branches + 1
        tips[number] = branch
        found.append(replace(node, branch=branch))
    return tuple(found)


def critical_path_us(nodes: Sequence[NodeOp], gap_us: float) -> float:
    """The time of a graph's longest chain of nodes, with ``gap_us`` between two."""
    ends: list[float] = []
    for node in nodes:
        ends.append(max((ends[before] + gap_us for before in node.after), default=0.0) + node.device_us)
    return max(ends)


def as_graph(workload: Workload, gpu: GpuSpec) -> Workload:
    """The workload with each iteration as one graph: what followed in a stream, or waited for an event, still does."""
    graphs: list[tuple[GraphNode, ...]] = []
    variants = []
    for variant in workload.variants:
        marks = Marks(variant)
        places: dict[Ref, int] = {}
        tails: dict[int, int] = {}
        nodes: list[GraphNode] = []
        for thread, ops in enumerate(variant.all_threads):
            for place, op in enumerate(ops):
                if op.kind is OpKind.GRAPH or op.children or op.tiles >= 0:
                    raise ValueError("graphs, child launches and tile dependencies cannot be captured into a graph")
                if op.kind not in DEVICE_OPS:
                    continue
                awaited = [places[ref] for ref in marks.awaited(thread, place) if ref in places]
                before = {*awaited, *([tails[op.stream]] if op.stream in tails else [])}
                places[thread, place] = tails[op.stream] = len(nodes)
                nodes.append(GraphNode(op.kind, op.index, op.duration_us, op.bytes, tuple(sorted(before)), op.cold))
        launch = Op(OpKind.GRAPH, host_us=gpu.timing.graph_launch_us, index=len(graphs))
        graphs.append(tuple(nodes))
        variants.append(Variant(ops=(launch, Op(OpKind.SYNC)), step=variant.step))
    return msgspec.structs.replace(
        workload, graphs=tuple(graphs), variants=tuple(variants), stream_priorities=workload.stream_priorities[:1]
    )


def with_graphs_opened(job: JobProgram, gpu: GpuSpec, spare: Sequence[int]) -> JobProgram:
    """The program with each graph's nodes as launches of their own, for a scheduler that intercepts inside graphs.

    What followed a graph in its stream, or waited for it, waits for the ends of all its branches; so that a
    synchronisation of a stream with such a graph is one of the tenant.

    Args:
        job: the program.
        gpu: for its graph gap.
        spare: streams for branches beyond the first, at least as many as :func:`branches` says, less one.
    """
    return _Opening(job, gpu, spare).opened()


class _Opening:
    """A program whose graphs are being opened."""

    def __init__(self, job: JobProgram, gpu: GpuSpec, spare: Sequence[int]) -> None:
        self._job = job
        self._gap_us = gpu.timing.graph_gap_us
        self._spare = spare
        self._marks = job.marks
        self._ends: dict[int, tuple[int, ...]] = {}
        """Marks of the last nodes of each graph, by the graph's mark."""

    def opened(self) -> JobProgram:
        """The program with nodes in place of graphs."""
        threads = [self._thread(ops) for ops in self._job.by_thread()]
        ops = [replace(op, after=self._resolved(op.after)) for thread in threads for op in thread]
        return JobProgram(tuple(ops), tuple(len(thread) for thread in threads), self._marks)

    def _resolved(self, after: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(mark for graph in after for mark in self._ends.get(graph, (graph,))))

    def _thread(self, ops: tuple[HostOp, ...]) -> list[HostOp]:
        found: list[HostOp] = []
        tails: dict[int, tuple[int, ...]] = {}
        """Marks of what the next operation waits for besides the last, by stream in which a graph was opened."""
        last: dict[int, int] = {}
        """Place of the last operation in each stream."""
        for op in ops:
            if op.kind is OpKind.SYNC_STREAM and op.stream in tails:
                op = replace(op, kind=OpKind.SYNC)
            if op.kind in DEVICE_OPS:
                before = tails.get(op.stream, ())
                if op.nodes:
                    roots = (*op.after, *before, *self._marked(found, last.get(op.stream)))
                    nodes = self._nodes(op, roots)
                    found += nodes
                    ends = self._last_of(op, nodes)
                    if op.mark >= 0:
                        self._ends[op.mark] = ends
                    # Behind the graph, the next operation follows the last node in its stream, and waits for the rest.
                    tails[op.stream] = ends
                    mine = [place for place, node in enumerate(found) if node.stream == op.stream]
                    last[op.stream] = mine[-1]
                    continue
                op = replace(op, after=(*op.after, *before))
                tails.pop(op.stream, None)
                last[op.stream] = len(found)
            found.append(op)
        return found

    def _marked(self, ops: list[HostOp], place: int | None) -> tuple[int, ...]:
        """The mark of an operation, which gets one if it has none."""
        if place is None:
            return ()
        if ops[place].mark < 0:
            ops[place] = replace(ops[place], mark=self._marks)
            self._marks += 1
        return (ops[place].mark,)

    def _nodes(self, graph: HostOp, roots: tuple[int, ...]) -> list[HostOp]:
        """The nodes of a graph, those without predecessors behind ``roots``."""
        base = self._marks
        self._marks += len(graph.nodes)
        return [
            HostOp(
                kind=node.kind,
                host_us=graph.host_us if number == 0 else 0.0,
                identity=node.identity,
                scale=node.scale,
                device_us=node.device_us,
                bytes=node.bytes,
                left_us=graph.left_us,
                stream=graph.stream if node.branch == 0 else self._spare[node.branch - 1],
                gap_us=self._gap_us,
                after=tuple(base + before for before in node.after) or roots,
                mark=base + number,
                cold=node.cold,
            )
            for number, node in enumerate(graph.nodes)
        ]

    def _last_of(self, graph: HostOp, nodes: list[HostOp]) -> tuple[int, ...]:
        """Marks of the nodes that no other waits for."""
        awaited = {before for node in graph.nodes for before in node.after}
        return tuple(op.mark for number, op in enumerate(nodes) if number not in awaited)


def branches(job: JobProgram) -> int:
    """Most branches of a graph in a program."""
    return max((node.branch + 1 for op in job.ops for node in op.nodes), default=0)

"""What :class:`~gpusched_env.workload.idle_gpu.IdleGpu` reads of a program; of a recorded one, and in general."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gpusched_env.hardware.specs import Timing
from gpusched_env.workload.workload import GraphNode, Marks, OpKind, Variant


class ChildAlone(Protocol):
    """A kernel that a kernel launches."""

    @property
    def device_us(self) -> float: ...


class NodeAlone(Protocol):
    """A node of a graph."""

    @property
    def kind(self) -> OpKind: ...
    @property
    def device_us(self) -> float: ...
    @property
    def after(self) -> tuple[int, ...]:
        """Earlier nodes that it waits for."""


class Operation(Protocol):
    """An operation of a host thread."""

    @property
    def kind(self) -> OpKind: ...
    @property
    def host_us(self) -> float: ...
    @property
    def device_us(self) -> float: ...
    @property
    def stream(self) -> int: ...
    @property
    def gap_us(self) -> float:
        """Time from the end of the operation before in its stream."""

    @property
    def after(self) -> tuple[int, ...]:
        """Marks that it waits for."""

    @property
    def mark(self) -> int:
        """Mark that it sets, for others to wait for; -1: none."""

    @property
    def nodes(self) -> Sequence[NodeAlone]: ...
    @property
    def children(self) -> Sequence[ChildAlone]: ...


class AloneNode(NamedTuple):
    """A node, or a child, on the GPU of its recording."""

    kind: OpKind
    device_us: float
    after: tuple[int, ...] = ()


class AloneOp(NamedTuple):
    """An operation on the GPU of its recording."""

    kind: OpKind
    host_us: float
    device_us: float
    stream: int = 0
    gap_us: float = 0.0
    after: tuple[int, ...] = ()
    mark: int = -1
    nodes: tuple[AloneNode, ...] = ()
    children: tuple[AloneNode, ...] = ()


def recorded_threads(variant: Variant, graphs: Sequence[Sequence[GraphNode]], timing: Timing) -> list[list[AloneOp]]:
    """The operations of a variant by host thread, on the GPU of its recording.

    Records and waits are not among them: their host time is the next operation's.
    """
    marks = Marks(variant)
    threads = []
    for thread, ops in enumerate(variant.all_threads):
        found: list[AloneOp] = []
        spent_us = 0.0
        for place, op in enumerate(ops):
            spent_us += op.host_us
            if op.kind in (OpKind.RECORD, OpKind.WAIT):
                continue
            nodes = graphs[op.index] if op.kind is OpKind.GRAPH else ()
            found.append(
                AloneOp(
                    op.kind, spent_us, op.duration_us, op.stream, timing.stream_gap_us,
                    after=marks.awaited_marks(thread, place),
                    mark=marks.of((thread, place)),
                    nodes=tuple(AloneNode(node.kind, node.duration_us, node.after) for node in nodes),
                    children=tuple(AloneNode(OpKind.KERNEL, child.duration_us) for child in op.children),
                )
            )  # fmt: skip
            spent_us = 0.0
        if spent_us > 0.0:
            found.append(AloneOp(OpKind.HOST, spent_us, 0.0))
        threads.append(found)
    return threads

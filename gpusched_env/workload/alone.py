"""How a host program runs when nobody else uses the GPU: a recurrence over its streams.

Used to scale recorded host times to the unprofiled wall time, to profile turnarounds and gaps, and to check the
devices against (a tenant alone on one stream must do exactly this; kernels on several streams are taken not to slow
each other).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from gpusched_env.hardware.specs import Timing
from gpusched_env.workload.events import Marks
from gpusched_env.workload.workload import DEVICE_OPS, GraphNode, OpKind, Variant


class AloneOp(NamedTuple):
    """What :func:`run_alone` reads of an operation."""

    kind: OpKind
    host_us: float
    device_us: float
    stream: int = 0
    gap_us: float = -1.0
    """From the end of the operation before in its stream; negative: the GPU's ``stream_gap_us``."""
    after: tuple[int, ...] = ()
    """Marks that it waits for."""
    mark: int = -1
    """Mark that it sets, for others to wait for."""


class _Op(Protocol):
    @property
    def kind(self) -> OpKind: ...
    @property
    def host_us(self) -> float: ...
    @property
    def device_us(self) -> float: ...
    @property
    def stream(self) -> int: ...
    @property
    def gap_us(self) -> float: ...
    @property
    def after(self) -> tuple[int, ...]: ...
    @property
    def mark(self) -> int: ...


def chain_ends_us(nodes: Iterable[tuple[Sequence[int], float]], gap_us: float) -> list[float]:
    """When each node of a CUDA graph ends that runs by itself, since the graph's start.

    Args:
        nodes: the earlier nodes that it waits for, and its duration.
        gap_us: time between two nodes that follow each other.
    """
    ends: list[float] = []
    for after, duration_us in nodes:
        ends.append(max((ends[before] + gap_us for before in after), default=0.0) + duration_us)
    return ends


def graph_ends_us(nodes: Sequence[GraphNode], timing: Timing) -> list[float]:
    """The same of a recorded graph on the GPU of its recording."""
    return chain_ends_us(((node.after, node.duration_us) for node in nodes), timing.graph_gap_us)


def recorded_threads(
    variant: Variant, graphs: Sequence[Sequence[GraphNode]], timing: Timing
) -> list[list[tuple[int, AloneOp]]]:
    """What :func:`run_threads_alone` takes, of a variant on the GPU of its recording, with the operations' places.

    Records and waits are not among them: their host time is the next operation's.
    """
    marks = Marks(variant)
    threads = []
    for thread, ops in enumerate(variant.all_threads):
        found: list[tuple[int, AloneOp]] = []
        spent_us = 0.0
        for place, op in enumerate(ops):
            spent_us += op.host_us
            if op.kind in (OpKind.RECORD, OpKind.WAIT):
                continue
            device_us = max(graph_ends_us(graphs[op.index], timing)) if op.kind is OpKind.GRAPH else op.duration_us
            after, mark = marks.awaited_marks(thread, place), marks.of((thread, place))
            found.append((place, AloneOp(op.kind, spent_us, device_us, op.stream, after=after, mark=mark)))
            spent_us = 0.0
        if spent_us > 0.0:
            found.append((len(ops), AloneOp(OpKind.HOST, spent_us, 0.0)))
        threads.append(found)
    return threads


def run_alone(
    ops: Iterable[tuple[int, float, float]], timing: Timing, host_scale: float = 1.0
) -> tuple[float, list[float], list[float]]:
    """Run one iteration of a program of one thread and one stream on an idle GPU.

    Args:
        ops: ``(kind, host_us, device_us)`` in program order (``kind`` an :class:`OpKind`).
        timing: the GPU's latencies.
        host_scale: factor on all host times.

    Returns:
        as :func:`run_threads_alone`, with start and end of each device operation in program order.
    """
    thread = [AloneOp(OpKind(kind), host_us, device_us) for kind, host_us, device_us in ops]
    host, spans = run_threads_alone([thread], timing, host_scale)
    placed = [span for span in spans[0] if span is not None]
    return host, [start for start, _ in placed], [end for _, end in placed]


def run_threads_alone(
    threads: Sequence[Sequence[_Op]], timing: Timing, host_scale: float = 1.0
) -> tuple[float, list[list[tuple[float, float] | None]]]:
    """Run one iteration of a program on an idle GPU.

    Args:
        threads: operations by host thread.
        timing: the GPU's latencies.
        host_scale: factor on all host times.

    Returns:
        the time at which the last host thread is done with its last operation, and for each operation of each thread
        its start and end on the device, ``None`` where it has none (microseconds since the hosts began).
    """
    spans: list[list[tuple[float, float] | None]] = [[] for _ in threads]
    stream_end: dict[int, float] = {}
    mark_end: dict[int, float] = {}
    last_end = 0.0
    # Always the thread whose time is least goes on; one that waits for a mark lets the others go first.
    turns = [(0.0, t) for t in range(len(threads))]
    finished = 0.0
    stuck = 0
    while turns:
        host, t = heapq.heappop(turns)
        if len(spans[t]) == len(threads[t]):
            finished = max(finished, host)
            continue
        op = threads[t][len(spans[t])]
        if any(mark not in mark_end for mark in op.after) and stuck <= len(turns):
            stuck += 1
            heapq.heappush(turns, (max([host, *(time for time, _ in turns)]), t))
            continue
        stuck = 0
        host += op.host_us * host_scale
        span = None
        if op.kind in DEVICE_OPS:
            gap_us = op.gap_us if op.gap_us >= 0.0 else timing.stream_gap_us
            start = host + timing.launch_latency_us
            if op.stream in stream_end:
                start = max(start, stream_end[op.stream] + gap_us)
            for mark in op.after:
                start = max(start, mark_end.get(mark, 0.0) + max(gap_us, timing.event_latency_us))
            end = start + op.device_us
            span = (start, end)
            stream_end[op.stream] = end
            last_end = max(last_end, end)
            if op.mark >= 0:
                mark_end[op.mark] = end
        else:
            ends = _awaited(op, stream_end, mark_end, last_end)
            if ends > 0.0:
                host = max(host, ends + timing.sync_latency_us)
        spans[t].append(span)
        heapq.heappush(turns, (host, t))
    return finished, spans


def _awaited(op: _Op, stream_end: dict[int, float], mark_end: dict[int, float], last_end: float) -> float:
    """The end of what a host waits for at ``op``; 0 if that is nothing."""
    if op.kind is OpKind.SYNC:
        return last_end
    if op.kind is OpKind.SYNC_STREAM:
        return stream_end.get(op.stream, 0.0)
    if op.kind is OpKind.SYNC_EVENT:
        return max((mark_end.get(mark, 0.0) for mark in op.after), default=0.0)
    return 0.0

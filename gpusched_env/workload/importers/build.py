"""Making a workload of a recording: kernels, graphs, streams, operations, and host times without the profiler."""

from __future__ import annotations

import functools
import hashlib
import math
import re
import statistics
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from gpusched_env.display.words import counted
from gpusched_env.hardware.occupancy import footprint
from gpusched_env.hardware.specs import GpuSpec, gpu_names
from gpusched_env.workload.alone import recorded_threads
from gpusched_env.workload.idle_gpu import IdleGpu
from gpusched_env.workload.importers.ordering import CLOCK_US, Action
from gpusched_env.workload.importers.program import ImportedOp, Iteration, iterations, leave_out_overlap
from gpusched_env.workload.importers.recording import DeviceEvent, LaunchShape, Recording
from gpusched_env.workload.kernel import Kernel, classify
from gpusched_env.workload.workload import EVENT_OPS, GraphNode, Op, OpKind, Variant, Workload

MAX_LENGTH = 160
"""Longest name kept; longer ones end in a digest of the full name."""

_NOISE = (
    (re.compile(r"\(anonymous namespace\)::|<unnamed>::"), ""),
    (re.compile(r"\{lambda\(\)#(\d+)\}"), r"lambda\1"),
    (re.compile(r"\{lambda\((.*?)\)#(\d+)\}"), r"lambda\2(\1)"),
    (re.compile(r"::operator\(\)\(\) const"), ""),
    (re.compile(r"\b(?:at::native|at::cuda|at_cuda_detail|c10|cudnn::engines_precompiled|torch::headeronly)::"), ""),
    (re.compile(r"^(?:void|std::enable_if<.*?>::type) "), ""),
)


def short_name(full: str) -> str:
    """``full`` (a demangled C++ name) without namespaces, lambda noise and parameter list.

    Template arguments stay: they distinguish kernels. The result depends on ``full`` alone and has at
    most :data:`MAX_LENGTH` characters.
    """
    name = full
    for pattern, replacement in _NOISE:
        name = pattern.sub(replacement, name)
    name = _without_parameters(name).strip()
    return name if name and len(name) <= MAX_LENGTH else with_digest(name, full)


def with_digest(name: str, full: str) -> str:
    """``name``, cut if need be, with a digest of ``full`` to keep it distinct."""
    digest = hashlib.sha256(full.encode()).hexdigest()[:6]
    return f"{name[: MAX_LENGTH - 7]}~{digest}"


def _without_parameters(name: str) -> str:
    """Drop the parameter list: everything from the first ``(`` outside template brackets."""
    depth = 0
    for i, character in enumerate(name):
        if character == "<":
            depth += 1
        elif character == ">":
            depth -= 1
        elif character == "(" and depth == 0 and i > 0:
            return name[:i]
    return name


JOIN_GAP_US = 1.0
"""A node that waits for its own branch alone follows within less (0.5 to 0.8 us on an H200)."""


@dataclass(slots=True)
class ImportedNode:
    """A node of a graph."""

    event: DeviceEvent
    """What it was in the first launch of its graph."""
    duration_us: float
    """Mean duration over the launches of the graph."""
    after: tuple[int, ...]
    """Earlier nodes that it waits for."""


def graphs_of(launches: Sequence[Action]) -> tuple[list[list[ImportedNode]], dict[Action, int]]:
    """The distinct graphs among ``launches``, in order of first launch, and which one each launch is of."""
    alike: dict[tuple[object, ...], list[Action]] = {}
    for action in launches:
        alike.setdefault(_identity(action), []).append(action)
    rows = {action: row for row, actions in enumerate(alike.values()) for action in actions}
    return [_nodes(actions) for actions in alike.values()], rows


def _branches(action: Action) -> list[list[DeviceEvent]]:
    """Nodes by stream, that of the launch first."""
    branches: dict[int, list[DeviceEvent]] = {}
    for event in action.events:
        branches.setdefault(event.stream, []).append(event)
    return [branches[stream] for stream in sorted(branches, key=lambda stream: (stream != action.stream, stream))]


def _identity(action: Action) -> tuple[object, ...]:
    return tuple(tuple((e.kind, e.name, e.shape, e.bytes) for e in branch) for branch in _branches(action))


def _nodes(actions: Sequence[Action]) -> list[ImportedNode]:
    runs = [_branches(action) for action in actions]
    places = [(b, i) for b, branch in enumerate(runs[0]) for i in range(len(branch))]
    places.sort(key=lambda place: (runs[0][place[0]][place[1]].start_us, runs[0][place[0]][place[1]].end_us))
    numbers = {place: number for number, place in enumerate(places)}
    ends = sorted((runs[0][b][i].end_us, b, i) for b, i in places)
    found = []
    for number, (b, i) in enumerate(places):
        waits = [(b, i - 1), *_joined(runs, b, i)] if i > 0 else _forked(runs, ends, b)
        found.append(
            ImportedNode(
                event=runs[0][b][i],
                duration_us=statistics.fmean(run[b][i].duration_us for run in runs),
                # Only earlier nodes: one that never takes any time could otherwise wait for its like.
                after=tuple(sorted(numbers[place] for place in waits if numbers[place] < number)),
            )
        )
    return found


def _forked(
    runs: Sequence[list[list[DeviceEvent]]], ends: Sequence[tuple[float, int, int]], b: int
) -> list[tuple[int, int]]:
    """The node that the first one of branch ``b`` waits for; ``ends`` are those of all nodes, in order."""
    starts = [run[b][0].start_us for run in runs]
    for place in range(bisect_right(ends, (starts[0] + CLOCK_US, math.inf)) - 1, -1, -1):
        _, other, n = ends[place]
        if other != b and all(run[other][n].end_us <= s + CLOCK_US for run, s in zip(runs, starts, strict=True)):
            return [(other, n)]
    return []


def _joined(runs: Sequence[list[list[DeviceEvent]]], b: int, i: int) -> list[tuple[int, int]]:
    """Nodes of other branches that a later node ``i`` of branch ``b`` waits for."""
    starts = [run[b][i].start_us for run in runs]
    idle_from = [run[b][i - 1].end_us for run in runs]
    if statistics.median(s - e for s, e in zip(starts, idle_from, strict=True)) <= JOIN_GAP_US:
        return []
    found = []
    for other, branch in enumerate(runs[0]):
        # Nodes of a branch end in order.
        last = bisect_right(branch, starts[0] + CLOCK_US, key=lambda node: node.end_us) - 1 if other != b else -1
        first = bisect_right(branch, idle_from[0], key=lambda node: node.end_us)
        for n in range(last, first - 1, -1):
            if all(
                since < run[other][n].end_us <= start + CLOCK_US
                for run, since, start in zip(runs, idle_from, starts, strict=True)
            ):
                found.append((other, n))
                break
    return found


DECIMALS = 3
"""Times are kept to 1 ns: what profilers resolve."""
_SHORTEST_US = 10.0**-DECIMALS
LEAST_FACTOR, USUAL_FACTOR = 0.5, 0.77
"""Host times without the profiler over those with it (recordings of 36 models on an H100 with PyTorch's profiler:
factors 0.5 to 0.77, mostly 0.7)."""
DEVICE_BOUND = 1.05
"""An iteration that is at most so much longer than it should be, at :data:`LEAST_FACTOR`, says nothing of the host."""

_Identity = tuple[str, LaunchShape]


def build_workload(recording: Recording, gpu: GpuSpec, summary: str = "") -> Workload:
    """The workload of ``recording``, which was made on ``gpu``.

    One variant an iteration, each ended by a synchronisation. Streams, records of events and waits for them stay
    (:mod:`~gpusched_env.workload.importers.ordering`), as do CUDA graphs
    (:mod:`~gpusched_env.workload.importers.build`) and host threads that run side by side
    (:mod:`~gpusched_env.workload.importers.ordering`). Durations are the recorded ones: what ran beside other work of
    the recording is as slow as it was there. If the recording knows wall times without
    the profiler, the host times of each variant are scaled such that it takes their median alone; if not,
    they stay, and ``iteration_us`` holds the recorded lengths of the iterations.

    Raises:
        InputError: no iteration launches a kernel, too many launches are missing, or a kernel does not
            fit on ``gpu``.
    """
    found = iterations(recording, gpu.timing)
    kernels, rows = _kernel_table(recording.origin, found, gpu)
    graphs, launches = graphs_of([op.action for op in _in_order(found) if op.action and op.kind is OpKind.GRAPH])
    tables = _Tables(rows, launches, _streams(found))
    nodes = tuple(tuple(tables.node(node) for node in graph) for graph in graphs)
    idle = IdleGpu(gpu)

    def alone_us(iteration: Iteration) -> float:
        return idle.play(recorded_threads(tables.variant(iteration), nodes, gpu.timing)).host_us

    overlaps_us = [leave_out_overlap(iteration, functools.partial(alone_us, iteration)) for iteration in found]
    variants = [tables.variant(iteration) for iteration in found]
    factors = [1.0] * len(found)
    notes = [f"{recording.recorder} on {recording.gpu.name or gpu.name}", *recording.notes]
    if recording.unprofiled_us:
        target = statistics.median(recording.unprofiled_us)
        factors = [host_factor(variant, nodes, target, gpu) for variant in variants]
        notes.append(f"host times x {min(factors):.2f} to {max(factors):.2f} to the wall time without profiler")
    else:
        notes.append("host times as under the profiler")
    added = sum(not iteration.closed for iteration in found)
    if added:
        notes.append(f"closing synchronisation added to {added} of {counted(len(found), 'iteration')}")
    if any(overlaps_us):
        overlapping = f"{sum(us > 0.0 for us in overlaps_us)} of {counted(len(found), 'iteration')}"
        notes.append(
            f"{sum(overlaps_us) / 1e3:.4g} ms of host work left out in {overlapping}: it passed while the device was "
            "busy with the one before"
        )
    known = sum(event.reads is not None for event in recording.events)
    if known:
        notes.append(f"memory known of {known} of {len(recording.events)} kernels, copies and memsets")
    lost = sum(event.call is None for event in recording.events)
    if lost:
        notes.append(f"{lost} launches without a host call, inferred from their starts")
    paired = sum(op.action is not None and op.action.inferred for iteration in found for op in iteration.ops)
    if paired:
        notes.append(f"{paired} waits for events paired with the record before them")
    left_out = sum(iteration.left_out for iteration in found)
    if left_out:
        notes.append(
            f"{left_out} waits for events left out: no record in their iteration fits, or shows that it was waited for"
        )
    return Workload(
        name=recording.name,
        summary=summary,
        gpu=gpu.name,
        gpu_spec=None if gpu.name in gpu_names() else gpu,
        source="; ".join(notes),
        kernels=kernels,
        graphs=nodes,
        stream_priorities=(0,) * len(tables.streams),
        variants=tuple(_rounded(variant, factor) for variant, factor in zip(variants, factors, strict=True)),
        iteration_us=tuple(
            max(_SHORTEST_US, round(us, DECIMALS))
            for us in recording.unprofiled_us or [iteration.recorded_us for iteration in found]
        ),
        profiled=not recording.unprofiled_us,
    )


def host_factor(variant: Variant, graphs: Sequence[Sequence[GraphNode]], target_us: float, gpu: GpuSpec) -> float:
    """The factor on host times with which ``variant`` takes ``target_us`` alone.

    Where the device bounds the iteration its length says little of the host: the factor is then
    :data:`LEAST_FACTOR`, and the iteration takes a little more than ``target_us`` (profilers also slow the device by a
    percent or so).
    """
    idle, threads = IdleGpu(gpu), recorded_threads(variant, graphs, gpu.timing)

    def alone_us(factor: float) -> float:
        return idle.play(threads, factor).host_us

    low = LEAST_FACTOR
    if alone_us(low) >= target_us and (alone_us(low) <= DEVICE_BOUND * target_us or alone_us(0.0) >= target_us):
        return low
    low, high = (0.0, low) if alone_us(low) >= target_us else (low, 2.0 * low)
    while alone_us(high) < target_us:
        low, high = high, 2.0 * high
    return idle.host_scales(threads, target_us, low, high)[1]


def _kernel_table(origin: str, found: list[Iteration], gpu: GpuSpec) -> tuple[tuple[Kernel, ...], dict[_Identity, int]]:
    """Kernels in order of first launch, and their rows by full name and shape."""
    durations: dict[_Identity, list[float]] = defaultdict(list)
    for op in _in_order(found):
        for event in op.action.events if op.action else ():
            if event.shape is not None:
                durations[event.name, event.shape].append(event.duration_us)
    full_names: dict[str, set[str]] = defaultdict(set)
    for name, _ in durations:
        full_names[short_name(name)].add(name)
    kernels = []
    for (name, shape), seen in durations.items():
        short = short_name(name)
        mean = max(_SHORTEST_US, round(statistics.fmean(seen), DECIMALS))
        kernel = Kernel(
            name=short if len(full_names[short]) == 1 else with_digest(short, name),
            grid=shape.grid,
            block=shape.block,
            registers=shape.registers,
            shared_bytes=shape.shared_bytes,
            duration_us=mean,
            waves="even",
            kind=classify(name, shape.grid[0] * shape.grid[1] * shape.grid[2], mean),
        )
        footprint(gpu, kernel.threads, kernel.registers, kernel.shared_bytes, f"{origin}: kernel {kernel.name}")
        kernels.append(kernel)
    return tuple(kernels), {identity: row for row, identity in enumerate(durations)}


def _in_order(found: Sequence[Iteration]) -> Iterator[ImportedOp]:
    """Recorded operations of all iterations, one iteration after the other, in order of their calls."""
    for iteration in found:
        recorded = [(op.action.call.start_us, k, op) for k, op in enumerate(iteration.ops) if op.action is not None]
        yield from (op for *_, op in sorted(recorded, key=lambda entry: entry[:2]))


def _streams(found: Sequence[Iteration]) -> dict[int, int]:
    """The program's streams by their recorded numbers."""
    used = dict.fromkeys(
        op.stream for op in _in_order(found) if op.action and op.action.events and op.stream is not None
    )
    return {stream: row for row, stream in enumerate(used)}


@dataclass(frozen=True, slots=True)
class _Tables:
    """Where a workload's operations find what they name."""

    kernels: dict[_Identity, int]
    graphs: dict[Action, int]
    """Number of the graph that each launch is of."""
    streams: dict[int, int]
    """Number of each stream in the workload, by the recorded one."""

    def variant(self, iteration: Iteration) -> Variant:
        """An iteration, with times as recorded."""
        records = [op.action for op in _in_order([iteration]) if op.action and op.kind is OpKind.RECORD]
        events = {record: number for number, record in enumerate(records)}
        main, *others = (tuple(self._op(op, events) for op in thread) for thread in iteration.threads)
        return Variant(ops=main, threads=tuple(others))

    def _op(self, op: ImportedOp, events: dict[Action, int]) -> Op:
        stream = 0 if op.stream is None or op.kind is OpKind.SYNC else self.streams[op.stream]
        # With one stream, waiting for it is waiting for everything.
        kind = OpKind.SYNC if op.kind is OpKind.SYNC_STREAM and len(self.streams) == 1 else op.kind
        action = op.action
        if action is None or kind in (OpKind.SYNC, OpKind.SYNC_STREAM):
            return Op(kind, op.host_us, stream=stream)
        if kind in EVENT_OPS:
            record = action if kind is OpKind.RECORD else action.record
            assert record is not None, "kept with its record"
            return Op(kind, op.host_us, events[record], stream=0 if kind is OpKind.SYNC_EVENT else stream)
        if kind is OpKind.GRAPH:
            return Op(kind, op.host_us, self.graphs[action], stream=stream)
        (event,) = action.events
        row, reads, writes = self._row(event), event.reads, event.writes
        return Op(kind, op.host_us, row, event.duration_us, event.bytes, stream, reads=reads, writes=writes)

    def node(self, node: ImportedNode) -> GraphNode:
        """A node of a graph."""
        event = node.event
        return GraphNode(
            event.kind, self._row(event), _device_us(event.kind, node.duration_us), event.bytes, node.after
        )

    def _row(self, event: DeviceEvent) -> int:
        return -1 if event.shape is None else self.kernels[event.name, event.shape]


def _rounded(variant: Variant, factor: float) -> Variant:
    """The variant with host times that are ``factor`` times as long, all times in whole nanoseconds."""

    def rounded(op: Op) -> Op:
        host_us = round(op.host_us * factor, DECIMALS)
        return msgspec.structs.replace(op, host_us=host_us, duration_us=_device_us(op.kind, op.duration_us))

    return variant.mapped(rounded)


def _device_us(kind: OpKind, duration_us: float) -> float:
    return max(_SHORTEST_US if kind is OpKind.KERNEL else 0.0, round(duration_us, DECIMALS))

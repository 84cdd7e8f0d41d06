"""The time alone: what a device plays of a program when nobody else is there.

Slowdowns, progress, costs, host speeds and the figures of an import all read this one definition. It is a simulation
of its own, event by event, that agrees with the devices to the picosecond:

* Host threads work through their operations as :mod:`gpusched_env.workload.host` has it: launches enter a stream, and
  the queue of those that are pending (``launch_depth``), in the order in which the host times before them end; at one
  instant the lower thread comes first. Synchronisations wait, and so do launches that find the queue full.
* A launch starts ``launch_latency_us`` after it was issued, and behind what it waits for that was unfinished then:
  ``stream_gap_us`` after the end of the launch before it in its stream, ``event_latency_us`` after that of a launch of
  another one. Graphs run node by node, ``graph_gap_us`` apart; children follow the start of their kernel.
* Copies between host and device queue for an engine in order of arrival.

Left out is what is not the program's own: kernels take their profiled durations, and those that run side by side in
streams of one program are taken not to slow each other, nor to run out of hardware queues; the L2 is warm, as for every
job but the first; a core of the CPU is free; a scheduler decides at once. A wait for an event that is recorded behind
it, at which a device's host thread stays for ever, is passed.

Times are sums of microseconds, in the order of the devices' whole picoseconds. Where all that is added is whole
picoseconds, so is the sum; else the devices, which round every event, differ by less than one for each.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gpusched_env.hardware.clock import to_ps
from gpusched_env.hardware.specs import GpuSpec
from gpusched_env.workload.alone import ChildAlone, NodeAlone, Operation
from gpusched_env.workload.workload import OpKind

LAUNCH_DEPTH: Final = 1024
"""Launches of a process that may be pending; the next call blocks."""
Span = tuple[float, float]
"""Start and end, microseconds since the hosts began."""


@dataclass(frozen=True, slots=True)
class IdleGpu:
    """A GPU that nobody else uses."""

    spec: GpuSpec
    launch_depth: int = LAUNCH_DEPTH

    def play(self, threads: Sequence[Sequence[Operation]], host_scale: float = 1.0) -> PlayedAlone:
        """Run one iteration of a program.

        Args:
            threads: operations by host thread.
            host_scale: factor on all host times.
        """
        return _Run(self, threads, host_scale).played()

    def host_scales(
        self, threads: Sequence[Sequence[Operation]], target_us: float, low: float, high: float
    ) -> tuple[float, float]:
        """The neighbouring factors on host times between which an iteration comes to take ``target_us``.

        Args:
            threads: operations by host thread.
            target_us: when the last host thread is to be done.
            low, high: with factor ``low`` that takes less, with ``high`` it does not.
        """

        below, above = (low, self.play(threads, low).host_us), (high, self.play(threads, high).host_us)

        def is_less(scale: float) -> bool:
            nonlocal below, above
            if below[0] < scale < above[0]:
                found = scale, self.play(threads, scale).host_us
                below, above = (found, above) if found[1] < target_us else (below, found)
            return scale <= below[0]

        for halving in range(_HALVINGS):
            if halving == _ROUGHLY:
                # Between two that are close the length is linear: where it meets the target decides most halvings.
                for _ in range(_CHORDS):
                    share = (target_us - below[1]) / (above[1] - below[1])
                    meets = below[0] + (above[0] - below[0]) * share
                    is_less(meets * (1.0 - _CLOSE))
                    is_less(meets * (1.0 + _CLOSE))
            middle = 0.5 * (low + high)
            low, high = (middle, high) if is_less(middle) else (low, middle)
        return low, high


@dataclass(frozen=True, slots=True)
class PlayedAlone:
    """One iteration alone."""

    host_us: float
    """When the last host thread is done with its last operation."""
    launches: list[list[_Launch | None]]
    """Launches by thread and operation; ``None`` for what never reaches the device."""

    @property
    def spans(self) -> list[list[tuple[Span, ...]]]:
        """When each part of an operation ran: a kernel or copy itself, a graph's nodes in their order."""
        return [[() if launch is None else launch.spans for launch in thread] for thread in self.launches]

    @property
    def device_us(self) -> float:
        """When the device is done: the turnaround of a job that is alone."""
        return max(launch.end_us for thread in self.launches for launch in thread if launch is not None)


_HALVINGS, _ROUGHLY, _CHORDS, _CLOSE = 50, 7, 2, 1e-13
_SYNCS = (OpKind.SYNC, OpKind.SYNC_STREAM, OpKind.SYNC_EVENT)
_QUEUE = (OpKind.COPY_TO_DEVICE, OpKind.COPY_TO_HOST)
"""Kinds of operations that go through a copy engine."""
_ENDS, _COPY_ENDS, _READY, _HOST = range(4)
"""Events in the order in which they happen at one instant, as on the devices; within each by launch or thread."""


class _Launch:
    """A launch, or a part of one: a node of a graph, a child. Times of a node count from the start of its graph."""

    nodes: Sequence[NodeAlone] = ()
    children: Sequence[ChildAlone] = ()
    whole: _Launch | None = None
    """The launch that it is a part of."""
    parts: tuple[_Launch, ...] = ()
    left = 1
    """How many have not ended of its parts and what it does itself."""
    base_us = 0.0
    waits = 0
    """Unfinished launches that it waits for."""
    waiters: tuple[_Launch, ...] = ()
    start_us = end_us = 0.0
    done = False

    def __init__(self, number: int, kind: OpKind, device_us: float, stream: int, gap_us: float) -> None:
        self.number, self.kind, self.device_us, self.stream, self.gap_us = number, kind, device_us, stream, gap_us
        self.ready_us = 0.0

    def wait_for(self, other: _Launch) -> None:
        """Start behind ``other``, if that is unfinished."""
        if not other.done:
            self.waits += 1
            other.waiters += (self,)

    @property
    def spans(self) -> tuple[Span, ...]:
        """When it ran, or the nodes of a graph."""
        ran = self.parts if self.nodes else (self,)
        return tuple((one.base_us + one.start_us, one.base_us + one.end_us) for one in ran)


class _Run:
    """An iteration that is being played."""

    def __init__(self, gpu: IdleGpu, threads: Sequence[Sequence[Operation]], host_scale: float) -> None:
        self._timing, self._engines = gpu.spec.timing, gpu.spec.copies.engines
        self._depth, self._threads, self._scale = gpu.launch_depth, threads, host_scale
        self._events: list[tuple[int, int, int, float]] = []
        """Events: picoseconds, what, of which launch or thread, and the time itself."""
        self._launches: list[_Launch] = []
        self._passed: list[list[_Launch | None]] = [[] for _ in threads]
        """Launches of the operations that each thread is done with; ``None`` for those that are no launches."""
        self._blocked: set[int] = set()
        self._host_us = 0.0
        self._outstanding = 0
        self._last_end_us = -math.inf
        self._lines: defaultdict[int, deque[_Launch]] = defaultdict(deque)
        """Unfinished launches by stream, in order of issue."""
        self._line_end_us: dict[int, float] = {}
        self._marked: dict[int, _Launch | None] = {}
        """Launches by the mark that they have set; ``None``: it was the host's own."""
        self._free_us: dict[int, float] = {}
        """When each copy engine is free."""
        self._kernels: dict[int, _Launch] = {}
        """Kernels whose start is known and that have not ended, by number of the launch."""

    def played(self) -> PlayedAlone:
        """Play it to its end."""
        for t in range(len(self._threads)):
            self._turn(t, 0.0)
        now_us = 0.0
        while self._events or self._blocked:
            if not self._events:
                self._stop_waiting(now_us)
            _, what, number, now_us = heapq.heappop(self._events)
            if what == _HOST:
                self._step(number, now_us)
            elif what == _READY:
                self._begin(self._launches[number], now_us)
            else:
                self._kernels.pop(number, None)
                self._end(self._launches[number], self._launches[number].end_us)
        return PlayedAlone(self._host_us, self._passed)

    def _at(self, us: float, what: int, number: int) -> None:
        heapq.heappush(self._events, (to_ps(us), what, number, us))

    # ---- hosts -------------------------------------------------------------------------------------------------------

    def _turn(self, t: int, now_us: float) -> None:
        """A thread turns to its next operation, or is done."""
        place = len(self._passed[t])
        if place < len(self._threads[t]):
            self._at(now_us + self._threads[t][place].host_us * self._scale, _HOST, t)
        else:
            self._host_us = max(self._host_us, now_us)

    def _step(self, t: int, now_us: float) -> None:
        """A thread has spent the host time before an operation, or looks again."""
        op = self._threads[t][len(self._passed[t])]
        if not self._may_pass(op):
            self._blocked.add(t)
            return
        launch = None
        if op.kind in _SYNCS:
            now_us = max(now_us, self._awaited_us(op) + self._timing.sync_latency_us)
        elif op.kind is not OpKind.HOST:
            launch = self._issue(op, now_us)
        self._passed[t].append(launch)
        if op.mark >= 0:
            self._marked[op.mark] = launch
            self._wake(now_us)
        self._turn(t, now_us)

    def _may_pass(self, op: Operation) -> bool:
        """Whether nothing keeps a thread at an operation."""
        if op.kind is OpKind.SYNC:
            return self._outstanding == 0
        if op.kind is OpKind.SYNC_STREAM:
            return not self._lines[op.stream]
        if op.after and not self._marked.keys() >= set(op.after):
            return False
        if op.kind is OpKind.SYNC_EVENT:
            return all(launch.done for launch in self._behind(op))
        return self._outstanding < self._depth or (op.kind is OpKind.HOST and not op.after)

    def _behind(self, op: Operation) -> list[_Launch]:
        """The launches behind the marks that an operation waits for."""
        return [launch for launch in map(self._marked.get, op.after) if launch is not None]

    def _awaited_us(self, op: Operation) -> float:
        """The end of what a synchronisation has waited for; far in the past if that is nothing."""
        if op.kind is OpKind.SYNC:
            return self._last_end_us
        if op.kind is OpKind.SYNC_STREAM:
            return self._line_end_us.get(op.stream, -math.inf)
        return max((launch.end_us for launch in self._behind(op)), default=-math.inf)

    def _wake(self, now_us: float) -> None:
        """Blocked threads look again, if what they wait for has happened."""
        if self._blocked:
            for t in [t for t in self._blocked if self._may_pass(self._threads[t][len(self._passed[t])])]:
                self._blocked.remove(t)
                self._at(now_us, _HOST, t)

    def _stop_waiting(self, now_us: float) -> None:
        """Nothing happens any more, but a thread waits for an event that is recorded behind it: it goes on."""
        t = min(self._blocked)
        for mark in self._threads[t][len(self._passed[t])].after:
            self._marked.setdefault(mark, None)
        self._wake(now_us)

    # ---- the device --------------------------------------------------------------------------------------------------

    def _new(self, kind: OpKind, device_us: float, stream: int, gap_us: float) -> _Launch:
        launch = _Launch(len(self._launches), kind, device_us, stream, gap_us)
        self._launches.append(launch)
        return launch

    def _issue(self, op: Operation, now_us: float) -> _Launch:
        launch = self._new(op.kind, op.device_us, op.stream, op.gap_us)
        launch.ready_us = now_us + self._timing.launch_latency_us
        launch.nodes, launch.children = op.nodes, op.children
        line = self._lines[op.stream]
        if line:
            launch.wait_for(line[-1])
        if op.after:
            for other in self._behind(op):
                launch.wait_for(other)
        line.append(launch)
        self._outstanding += 1
        if launch.waits == 0:
            self._arm(launch)
        return launch

    def _arm(self, launch: _Launch) -> None:
        """Go on with a launch that waits for nothing more."""
        if launch.kind in _QUEUE or launch.nodes or launch.children:
            self._at(launch.base_us + launch.ready_us, _READY, launch.number)
        else:
            self._run(launch, launch.ready_us)

    def _begin(self, launch: _Launch, now_us: float) -> None:
        """What waits for an engine, or has parts, is ready."""
        if launch.nodes:
            self._begin_nodes(launch, now_us)
        elif launch.children:
            self._run(launch, launch.ready_us)
            self._begin_children(launch)
        else:
            engine = launch.kind % self._engines
            self._run(launch, max(launch.ready_us, self._free_us.get(engine, -math.inf) - launch.base_us))
            self._free_us[engine] = launch.base_us + launch.end_us

    def _begin_nodes(self, graph: _Launch, now_us: float) -> None:
        for op in graph.nodes:
            node = self._new(op.kind, op.device_us, graph.stream, self._timing.graph_gap_us)
            node.base_us, node.whole = now_us, graph
            for before in op.after:
                node.wait_for(graph.parts[before])
            graph.parts += (node,)
        graph.left = len(graph.parts)
        for node in graph.parts:
            if node.waits == 0:
                self._arm(node)

    def _begin_children(self, kernel: _Launch) -> None:
        start_us = kernel.start_us + self._timing.child_launch_us + self._timing.launch_latency_us
        for op in kernel.children:
            child = self._new(OpKind.KERNEL, op.device_us, -1, 0.0)
            child.whole = kernel
            kernel.left += 1
            self._run(child, start_us)

    def _run(self, launch: _Launch, start_us: float) -> None:
        launch.start_us, launch.end_us = start_us, start_us + launch.device_us
        is_kernel = launch.kind is OpKind.KERNEL
        if is_kernel:
            self._kernels[launch.number] = launch
        self._at(launch.base_us + launch.end_us, _ENDS if is_kernel else _COPY_ENDS, launch.number)

    def _end(self, launch: _Launch, end_us: float) -> None:
        """What a launch does itself has ended, or a part of it; nothing may be left."""
        launch.end_us = max(launch.end_us, end_us)
        launch.left -= 1
        if launch.left > 0:
            return
        self._release(launch)
        if launch.whole is not None:
            self._end(launch.whole, launch.base_us + launch.end_us)
            return
        self._outstanding -= 1
        self._lines[launch.stream].popleft()
        self._last_end_us = self._line_end_us[launch.stream] = launch.end_us
        self._wake(launch.end_us)

    def _release(self, launch: _Launch) -> None:
        """What waits for a launch learns that it has ended."""
        launch.done = True
        for waiter in launch.waiters:
            gap_us = waiter.gap_us
            if waiter.stream != launch.stream:
                gap_us = max(gap_us, self._timing.event_latency_us)
            if waiter.whole is not None and self._beside(waiter.whole, launch):
                gap_us += self._timing.graph_gap_beside_us
            waiter.ready_us = max(waiter.ready_us, launch.end_us + gap_us)
            waiter.waits -= 1
            if waiter.waits == 0:
                self._arm(waiter)

    def _beside(self, graph: _Launch, ended: _Launch) -> bool:
        """Whether kernels that are not a graph's run when one of its nodes has ended."""
        now_ps = to_ps(ended.base_us + ended.end_us)
        others = (kernel for kernel in self._kernels.values() if kernel.whole is not graph)
        return any(to_ps(kernel.base_us + kernel.start_us) < now_ps for kernel in others)

"""A GPU driven through CuPy: streams with priorities, kernels that stand for recorded ones, copies, graphs.

What has started and ended stands in memory of the host, where the kernels themselves write it with the GPU's time: to
poll is to read there. A copy, a graph or a library's kernel has a mark before and one behind it, kernels of one thread
in its stream.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.fitting import MEASURED, Fit, FitCache, StandIn, cache_file, fitted, launched, stand_for
from gpusched_env.devices.cuda.gpu import GpuWork, Report
from gpusched_env.devices.cuda.kernels import open_cupy, shared_numbers
from gpusched_env.devices.cuda.launching import Call, HostClock, Launcher, call
from gpusched_env.devices.cuda.library import Library
from gpusched_env.devices.cuda.real_time.tables import (
    HANG_S,
    LOOK_S,
    REPORT_WORDS,
    AddressRow,
    Tables,
    pieces_of,
    tables,
)
from gpusched_env.devices.cuda.resources import BlockRecord, CopyBuffers, Partitions, Recalls
from gpusched_env.errors import GpuError
from gpusched_env.scenarios.adapting import with_kernels
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp, NodeOp
from gpusched_env.workload.workload import OpKind

SLOTS: Final = 1 << 14
"""Reports in memory: more than there ever is work on the GPU, since a host may be ahead by a thousand launches."""
SUCCESS, NOT_READY = 0, 600
"""The values of ``cudaSuccess`` and ``cudaErrorNotReady``."""
NO_QUEUE: Final = 0
"""What stands in place of the handle of a stream at a priority that nothing in it can have."""
REPORT_BYTES: Final = 8 * REPORT_WORDS

QueueKey = tuple[int, int, tuple[int, int] | None]
"""Row of a stream, its priority, and first and number of its SMs."""


@dataclass
class StreamQueue:
    """A stream at a priority, on all SMs or some."""

    stream: Any
    handle: int
    """The driver's handle of the stream."""
    work: deque[tuple[int, int]] = field(default_factory=deque)
    """Launch and first word of its report, in order of submission; those that have not ended."""
    started: bool = False
    """Whether the start of the first of them was reported."""


class CupyGpu:
    """See :class:`gpusched_env.devices.cuda.gpu.Gpu`."""

    def __init__(self, number: int = 0, *, cache: bool = True) -> None:
        """
        Args:
            number: of the GPU in this machine.
            cache: keep fits on disk, and use those that are there.

        Raises:
            InputError: CuPy is not installed, there is no driver, or no such GPU.
        """
        self._cp = cupy = open_cupy("a real GPU")
        self.name = str(cupy.cuda.runtime.getDeviceProperties(number)["name"].decode())
        """Name of the product, as ``NVIDIA H100 80GB HBM3``."""
        self._faults = cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError
        with self._told("cannot be used"):
            cupy.cuda.Device(number).use()
            self._reports, self._reports_at = shared_numbers(cupy, SLOTS * REPORT_BYTES // 8)
            self._seen = self._reports.data
            self._counts = cupy.zeros(SLOTS, np.uint32)
            self._counts_at = int(self._counts.data.ptr)
            self._launcher = Launcher(cupy, f"sm_{cupy.cuda.Device(number).compute_capability}")
            self._mark = call(self._launcher.mark, 1, 1, 0, [0])
            self._clock = HostClock(cupy, self._launcher)
        self._calls: dict[tuple[int, float], Call] = {}
        """Calls of stand-ins, by kernel of the problem and scale."""
        self._fits = FitCache(cache_file(cupy, self.name) if cache else None)
        self._library: Library | None = None
        """Kernels of libraries, made when a tenant asks for them."""
        self._number = number
        self._partitions: Partitions | None = None
        self._queues: dict[QueueKey, StreamQueue] = {}
        self._busy: dict[int, StreamQueue] = {}
        """Queues with work, by handle of the stream."""
        self._pool: dict[int, Any] = {}
        """Events by slot, to be used again."""
        self._events: dict[int, Any] = {}
        """Events of launches that have not ended."""
        self._graphs: dict[tuple[int, QueueKey], Any] = {}
        self._captures: list[Any] = []
        """Graphs that compiled code launches."""
        self.fits: dict[tuple[int, str], Fit[Any]] = {}
        """Stand-ins of the prepared problem, by identity of the kernel and what the tenant has for its kernels."""
        self._blocks: BlockRecord | None = None
        self._recalls: Recalls | None = None
        self._slot = 0

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Raise errors of CUDA as :class:`GpuError`."""
        try:
            yield
        except self._faults as error:
            raise GpuError(
                f"the GPU {what}: {error}; after a fault of a kernel the process must be started anew"
            ) from error
        except self._cp.cuda.memory.OutOfMemoryError as error:
            raise GpuError(f"the GPU {what}: {error}") from error

    # ---- getting ready -----------------------------------------------------------------------------------------------

    def prepare(self, problem: Problem, *, blocks: bool = False) -> None:
        """Make kernels, buffers and streams for a problem; stand-ins are measured the first time.

        Raises:
            GpuError: the GPU, its driver or its memory.
        """
        with self._told("cannot get ready"):
            bytes_ = [
                op.bytes
                for p in problem.programs
                for job in p.variants
                for op in (*job, *(n for o in job for n in o.nodes))
            ]
            self._copies = CopyBuffers(self._cp, max(bytes_, default=0))
            self._graphs, self._captures = {}, []
            self._blocks = BlockRecord(self._cp) if blocks else None
            self._recalls = Recalls(self._cp, SLOTS) if "preempt" in problem.scenario.commands else None
            gap_us = problem.gpu.timing.stream_gap_us
            self.fits = {}
            self._calls = {}
            synthetic = [program for program in problem.programs if program.tenant.kernels == "synthetic"]
            for identity, scale in launched(job for program in synthetic for job in program.variants):
                if (identity, scale) not in self._calls:
                    profile = problem.kernels[identity]
                    fit = self._fit(stand_for(profile, problem.gpu), profile.duration_us, gap_us)
                    self.fits[identity, "synthetic"] = fit
                    self._calls[identity, scale] = self._launcher.ready(fit.stand.scaled(scale))
            if self._library is None and len(synthetic) < len(problem.programs):
                self._library = Library(self._cp, self._launcher, self._clock)
            if self._library is not None:
                found = self._library.prepare(problem, self._fits)
                self.fits |= {(identity, "library"): fit for identity, fit in found.items()}
            self._fits.write()
            for row, own in enumerate(problem.streams):
                for priority in {own.priority, *problem.scenario.stream_priorities}:
                    self._queue((row, priority, None))

    def as_launched(self, problem: Problem) -> Problem:
        """A problem whose library kernels have the blocks, registers and shared memory that the library chose.

        Kernels that tenants share of whom only some have a library's stay as recorded.

        Args:
            problem: with the recorded kernels.

        Raises:
            GpuError: the GPU or its driver.
        """
        if all(program.tenant.kernels == "synthetic" for program in problem.programs):
            return problem
        self.prepare(problem)
        assert self._library is not None
        with self._told("does not tell the shapes of kernels"):
            made = self._library.kernels(problem)
        alone = {identity: kernel for identity, kernel in made.items() if (identity, "synthetic") not in self.fits}
        return with_kernels(problem, alone)

    def _queue(self, key: QueueKey) -> StreamQueue:
        found = self._queues.get(key)
        if found is None:
            _, priority, sms = key
            stream = self._stream(priority, sms)
            found = self._queues[key] = StreamQueue(stream, int(stream.ptr))
        return found

    def _stream(self, priority: int, sms: tuple[int, int] | None) -> Any:
        if sms is None:
            return self._cp.cuda.Stream(non_blocking=True, priority=priority)
        if self._partitions is None:
            self._partitions = Partitions(self._number)
        return self._cp.cuda.Stream.from_external(self._partitions.stream(*sms, priority))

    def _fit(self, stand: StandIn, duration_us: float, gap_us: float) -> Fit[StandIn]:
        """The stand-in that takes so long; measured once."""
        return self._fits.of(
            stand,
            duration_us,
            gap_us,
            lambda: fitted(stand, duration_us, lambda tried: self.period_us(tried) - gap_us),
            recallable=self._recalls is not None,
        )

    def period_us(self, stand: StandIn) -> float:
        """Median time between the ends of launches of a stand-in that follow each other in a stream, alone, us: its
        duration and the gap between two kernels."""
        ready = self._launcher.ready(stand)
        # They wait until all are in the stream, so that the host's time is not measured.
        stream = self._clock.hold()
        ends = []
        for _ in range(MEASURED + 1):
            slot = self._take_slot()
            self._stand_in(ready, stream.ptr, slot)
            ends.append(self._word(slot) + 1)
        self._clock.release()
        stream.synchronize()
        return float(np.median(np.diff([self._seen[end] for end in ends]))) / 1e3

    # ---- an episode --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin at time 0; the clocks of host and GPU are compared."""
        with self._told("cannot start"):
            self._clock.start()
        if self._blocks is not None:
            self._blocks.clear()
        if self._recalls is not None:
            self._recalls.clear()

    def now_ps(self) -> int:
        """Time since the start, picoseconds."""
        return self._clock.now_ps()

    def submit(self, work: GpuWork) -> None:
        """Hand work to its queue."""
        key = work.stream, work.priority, work.sms
        queue = self._queue(key)
        slot = self._take_slot()
        try:
            for before in work.after:
                # Without an event it has ended.
                if (event := self._events.get(before)) is not None:
                    queue.stream.wait_event(event)
            if work.op.kind is OpKind.KERNEL and self._library_of(work.op) is None:
                ready = self._calls[work.op.identity, work.op.scale]
                count = ready.blocks if work.blocks < 0 else work.blocks
                blocks = 0 if self._blocks is None else self._blocks.place(work.launch, count)
                seed = self._stand_in(ready, queue.handle, slot, blocks, count)
                if self._recalls is not None:
                    self._recalls.note(work.launch, slot, seed, count)
            else:
                self._marked(work, key, self._reports_at + REPORT_BYTES * slot)
            event = self._event(slot)
            event.record(queue.stream)
        except self._faults as error:
            raise GpuError(f"the GPU did not take launch {work.launch}: {error}") from error
        self._events[work.launch] = event
        queue.work.append((work.launch, self._word(slot)))
        self._busy[queue.handle] = queue

    def _library_of(self, op: HostOp) -> Library | None:
        """Where the kernels of an operation's tenant are from, if from a library. The operation names a stream of its
        tenant's, whichever it is launched into; identities of kernels are shared by tenants of one workload."""
        return self._library if self._library is not None and op.stream in self._library.streams else None

    def _event(self, slot: int) -> Any:
        """The event of a slot, made the first time."""
        found = self._pool.get(slot)
        if found is None:
            found = self._pool[slot] = self._cp.cuda.Event(disable_timing=True)
        return found

    def _take_slot(self) -> int:
        slot = self._slot = (self._slot + 1) % SLOTS
        at = self._word(slot)
        self._seen[at] = self._seen[at + 1] = self._seen[at + 2] = 0
        return slot

    def _word(self, slot: int) -> int:
        """Place of the first word of a slot's report."""
        return slot * REPORT_BYTES // 8

    def _stand_in(self, ready: Call, stream: int, slot: int, blocks: int = 0, only: int = -1) -> int:
        """Launch a stand-in that reports; returns its seed."""
        recall = 0 if self._recalls is None else self._recalls.address(slot)
        report = self._reports_at + REPORT_BYTES * slot
        ended = self._counts_at + 4 * slot
        return self._launcher.stand_in(ready, stream, ended, report, blocks, recall=recall, only=only)

    def recall(self, launches: list[int]) -> None:
        """Let no further block of kernels begin."""
        assert self._recalls is not None
        with self._told("did not take a preemption"):
            self._recalls.stop(launches)

    def _marked(self, work: GpuWork, key: QueueKey, report: int) -> None:
        """Launch a graph, copy or library's kernel between two marks."""
        queue = self._queues[key]
        words = self._mark.words
        words[0] = report
        self._launcher.launch(self._mark, queue.handle)
        if work.op.kind is OpKind.GRAPH:
            self._graph(work, key).launch(queue.stream)
        elif (library := self._library_of(work.op)) is not None and work.op.kind is OpKind.KERNEL:
            library.launch(work.op.identity, work.op.scale, queue.stream)
        else:
            self._copies.start(work.op, queue.stream)
        words[0] = report + 8
        self._launcher.launch(self._mark, queue.handle)

    def _graph(self, work: GpuWork, key: QueueKey) -> Any:
        """The CUDA graph of a launch, captured the first time: it keeps the priority and the SMs of its stream."""
        known = id(work.op), key
        if known not in self._graphs:
            self._graphs[known] = self._captured(work.op, key)
        return self._graphs[known]

    def _captured(self, op: HostOp, key: QueueKey) -> Any:
        stream = self._queues[key].stream
        library = self._library_of(op)
        _, priority, sms = key
        branches = {0: stream}
        ends: list[Any] = []
        stream.begin_capture()
        begin = self._cp.cuda.Event(disable_timing=True)
        begin.record(stream)
        for node in op.nodes:
            own = branches.get(node.branch)
            if own is None:
                own = branches[node.branch] = self._stream(priority, sms)
                own.wait_event(begin)
            for before in node.after:
                own.wait_event(ends[before])
            if node.kind is OpKind.KERNEL and library is not None:
                library.launch(node.identity, node.scale, own, marked=op.kind is not OpKind.GRAPH)
            elif node.kind is OpKind.KERNEL:
                self._launcher.stand_in(self._calls[node.identity, node.scale], own.ptr, 0, 0)
            else:
                self._copies.start(node, own)
            end = self._cp.cuda.Event(disable_timing=True)
            end.record(own)
            ends.append(end)
        for end in ends:
            stream.wait_event(end)
        return stream.end_capture()

    # ---- for compiled code -------------------------------------------------------------------------------------------

    def tables(self, problem: Problem, operations: Sequence[HostOp | None]) -> Tables:
        """What compiled code needs to drive the GPU in an episode, before it begins (:meth:`start`).

        Args:
            problem: that was prepared.
            operations: rows of the arena's table.

        Raises:
            GpuError: the GPU or its driver.
        """
        offered = [{own.priority, *problem.scenario.stream_priorities} for own in problem.streams]
        levels = range(0, -problem.gpu.priorities, -1)
        with self._told("cannot get ready"):
            pieces, graphs = pieces_of(operations, offered, problem.gpu.priorities, self)
            queues = [
                self._queue((row, priority, None)).handle if priority in offers else NO_QUEUE
                for row, offers in enumerate(offered)
                for priority in levels
            ]
            events = [int(self._event(slot).ptr) for slot in range(SLOTS)]
        places = {AddressRow.REPORTS: self._reports_at, AddressRow.COUNTERS: self._counts_at}
        return tables(pieces, graphs, self._mark, queues, events, places, self._reports)

    @property
    def clock_ns(self) -> tuple[int, int]:
        """When the episode began by the host's clock, and how far the GPU's is ahead."""
        return self._clock.zero_ns, self._clock.ahead_ns

    def kernel(self, op: HostOp) -> Call | None:
        """What an operation launches, if that is a stand-in."""
        if op.kind is not OpKind.KERNEL or self._library_of(op) is not None:
            return None
        return self._calls[op.identity, op.scale]

    def graph(self, op: HostOp, priority: int) -> int:
        """The handle of a graph of an operation that is no stand-in, for a queue of its stream."""
        key: QueueKey = (op.stream, priority, None)
        self._queue(key)
        if op.kind is not OpKind.GRAPH:
            node = NodeOp(op.kind, op.identity, op.scale, op.device_us, op.bytes, after=(), branch=0)
            op = replace(op, nodes=(node,))
        graph = self._captured(op, key)
        self._captures.append(graph)
        return int(graph.graphExec)

    # ---- what happens ------------------------------------------------------------------------------------------------

    def poll(self) -> list[Report]:
        """What has happened since the last call, in order of time."""
        found: list[Report] = []
        seen = self._seen
        for queue in list(self._busy.values()):
            while queue.work:
                launch, at = queue.work[0]
                # In this order: who sees the end sees how many blocks ran.
                ended = seen[at + 1]
                left = self._recalls.left(launch, seen[at + 2]) if ended and self._recalls is not None else 0
                started = seen[at]
                if not started and not left:
                    break
                if started and not queue.started:
                    queue.started = True
                    found.append(Report(self._clock.ps(started), launch, False))
                if not ended:
                    break
                if self._recalls is not None:
                    self._recalls.forget(launch, left)
                found.append(Report(self._clock.ps(max(started, ended)), launch, True, left))
                queue.work.popleft()
                queue.started = False
                del self._events[launch]
            if not queue.work:
                del self._busy[queue.handle]
        return sorted(found)

    def _news(self) -> bool:
        """Whether there is something to poll."""
        seen = self._seen
        for queue in self._busy.values():
            at = queue.work[0][1]
            # What was recalled before it began ends without a start.
            if seen[at + 1] or (seen[at] and not queue.started):
                return True
        return False

    def pause(self, until_ps: int) -> None:
        """Return at a time, or when there is something to poll."""
        begun = looked = time.perf_counter()
        while self.now_ps() < until_ps and not self._news():
            now = time.perf_counter()
            if now - looked > LOOK_S:
                looked = now
                self._check(now - begun)

    def _check(self, quiet_s: float) -> None:
        """Whether the GPU still works."""
        busy = list(self._busy.values())
        for queue in busy:
            self._idle(queue)
        if busy and quiet_s > HANG_S:
            launches = [queue.work[0][0] for queue in busy]
            raise GpuError(f"launches {launches[:5]} have neither started nor ended for {HANG_S:g} s")

    def _idle(self, queue: StreamQueue) -> bool:
        """Whether nothing is left in a queue; tells a fault."""
        status = int(self._cp.cuda.runtime.streamQuery(queue.handle))
        if status not in (SUCCESS, NOT_READY):
            with self._told("has failed"):
                self._cp.cuda.runtime.check_status(status)
        return status == SUCCESS

    def blocks(self) -> NDArray[np.int64]:
        """Blocks of kernels that have ended, shape ``(blocks, 4)``: SM, launch, start and end in picoseconds."""
        if self._blocks is None:
            return np.empty((0, 4), np.int64)
        self._wait()
        with self._told("did not give the record of blocks"):
            unfinished = set(self._events) if self._recalls is None else {*self._events, *self._recalls.unfinished}
            return self._blocks.rows(self._clock, unfinished)

    def _wait(self) -> None:
        """Wait until nothing is left on the GPU."""
        begun = time.perf_counter()
        for queue in self._queues.values():
            while not self._idle(queue):
                if time.perf_counter() - begun > HANG_S:
                    raise GpuError(f"work on the GPU has not ended for {HANG_S:g} s: this process must end")

    def stop(self) -> None:
        """Wait until nothing is left on the GPU, and forget what was.

        Raises:
            GpuError: something on it does not end.
        """
        self._wait()
        for queue in self._queues.values():
            queue.work.clear()
            queue.started = False
        self._events.clear()
        self._busy.clear()

    def close(self) -> None:
        """Give streams, graphs, partitions and memory back."""
        self._queues = {}
        self._busy = {}
        self._graphs, self._captures = {}, []
        self._recalls = None
        if self._partitions is not None:
            self._partitions.close()
        self._pool = {}
        self._calls = {}
        if self._library is not None:
            self._library.close()
        self._launcher.close()
        self._cp.get_default_memory_pool().free_all_blocks()

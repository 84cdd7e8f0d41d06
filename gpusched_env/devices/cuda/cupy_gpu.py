"""A GPU driven through CuPy: streams with priorities, kernels that stand for recorded ones, copies, graphs.

What has started and ended stands in memory of the host, where the kernels themselves write it with the GPU's time: to
poll is to read there. A copy or a graph has a mark before and one behind it, kernels of one thread in its stream.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.fitting import Stand, fitted, stand_for
from gpusched_env.devices.cuda.gpu import Report, Work
from gpusched_env.devices.cuda.kernels import cubin, values_for
from gpusched_env.errors import GpuError, InputError
from gpusched_env.scenarios.problem import Problem
from gpusched_env.scenarios.program import HostOp, NodeOp
from gpusched_env.workload.workload import OpKind

SLOTS: Final = 1 << 14
"""Reports in memory: more than there ever is work on the GPU, since a host may be ahead by a thousand launches."""
LINES: Final = 1 << 26
"""Of 16 bytes, of the buffer that kernels load from: a gigabyte, so that no cache holds what a launch reads."""
HANG_S: Final = 10.0
"""Nothing has started or ended for so long: something on the GPU hangs."""
LOOK_S: Final = 1e-3
"""How often the driver is asked for errors while nothing happens."""
ANSWERS: Final = 64
"""How often the clocks are compared at a start; the quickest answer counts."""
MEASURED: Final = 5
"""Launches of which the median is a stand-in's duration."""


@dataclass
class Queue:
    """A stream at a priority."""

    stream: Any
    work: deque[tuple[int, int]] = field(default_factory=deque)
    """Launch and slot of its report, in order of submission; those that have not ended."""
    started: bool = False
    """Whether the start of the first of them was reported."""


class CupyGpu:
    """See :class:`gpusched_env.devices.cuda.gpu.Gpu`."""

    def __init__(self, number: int = 0) -> None:
        """
        Args:
            number: of the GPU in this machine.

        Raises:
            InputError: CuPy is not installed, there is no driver, or no such GPU.
        """
        try:
            import cupy
        except ImportError:
            raise InputError("a real GPU needs CuPy: install the extra, gpusched-env[gpu]") from None
        if not cupy.is_available():
            raise InputError("there is no NVIDIA GPU with its driver in this machine")
        self._cp = cupy
        with self._told("cannot be used"):
            cupy.cuda.Device(number).use()
            self._arch = f"sm_{cupy.cuda.Device(number).compute_capability}"
            self._reports, self._reports_at = self._shared(SLOTS * 2)
            self._counts = cupy.zeros((SLOTS, 2), np.uint32)
            self._buffer = cupy.zeros(LINES * 4, np.float32)
            self._sink = cupy.zeros(1, np.float32)
            module = self._module(8, 1)
            self._mark, self._answer = (module.get_function(name) for name in ("mark", "answer"))
        self._kernels: dict[tuple[int, int], Any] = {}
        self._fits: dict[tuple[Stand, float], Stand] = {}
        self._queues: dict[tuple[int, int], Queue] = {}
        self._events: dict[int, Any] = {}
        self._graphs: dict[tuple[int, int, int], Any] = {}
        self._slot = self._seed = self._zero_ns = self._ahead_ns = 0

    @contextlib.contextmanager
    def _told(self, what: str) -> Iterator[None]:
        """Errors of CUDA as :class:`GpuError`."""
        try:
            yield
        except (self._cp.cuda.runtime.CUDARuntimeError, self._cp.cuda.driver.CUDADriverError) as error:
            raise GpuError(
                f"the GPU {what}: {error}; after a fault of a kernel the process must be started anew"
            ) from error
        except self._cp.cuda.memory.OutOfMemoryError as error:
            raise GpuError(f"the GPU {what}: {error}") from error

    def _shared(self, numbers: int) -> tuple[NDArray[np.uint64], int]:
        """Zeros in memory of the host that kernels reach, and their address."""
        memory = self._cp.cuda.alloc_pinned_memory(8 * numbers)
        array = np.frombuffer(memory, np.uint64, numbers)
        array[:] = 0
        return array, int(memory.ptr)

    def _module(self, values: int, chains: int) -> Any:
        """The machine code of ``synthetic.cu`` on the GPU."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "synthetic.cubin")
            path.write_bytes(cubin(values, chains, self._arch))
            module = self._cp.RawModule(path=str(path))
            module.compile()
        return module

    # ---- getting ready -----------------------------------------------------------------------------------------------

    def prepare(self, problem: Problem) -> None:
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
            size = max([1, *bytes_])
            self._host, self._host_at = self._shared(-(-size // 8))
            self._here, self._there = (self._cp.zeros(size, np.uint8) for _ in range(2))
            self._queues = {}
            self._graphs = {}
            self._stands = [
                self._fit(stand_for(profile, problem.gpu), profile.duration_us) for profile in problem.kernels
            ]
            for row, own in enumerate(problem.streams):
                for priority in {own.priority, *problem.scenario.stream_priorities}:
                    self._queue(row, priority)

    def _queue(self, row: int, priority: int) -> Queue:
        found = self._queues.get((row, priority))
        if found is None:
            stream = self._cp.cuda.Stream(non_blocking=True, priority=priority)
            found = self._queues[row, priority] = Queue(stream)
        return found

    def _fit(self, stand: Stand, duration_us: float) -> Stand:
        """The stand-in that takes so long; measured once."""
        key = stand, duration_us
        if key not in self._fits:
            self._fits[key] = fitted(stand, duration_us, self._measure)
        return self._fits[key]

    def _measure(self, stand: Stand) -> float:
        """Duration of a stand-in alone, us: median of some launches, the first one apart."""
        stream = self._cp.cuda.Stream(non_blocking=True)
        took = []
        for _ in range(MEASURED + 1):
            slot = self._take_slot()
            with stream:
                self._run(stand, slot)
            stream.synchronize()
            started, ended = self._reports[2 * slot : 2 * slot + 2].tolist()
            took.append((ended - started) / 1e3)
        return float(np.median(took[1:]))

    # ---- an episode --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Time 0; the clocks of host and GPU are compared."""
        with self._told("cannot start"):
            self._ahead_ns = self._compare_clocks()
        self._zero_ns = time.perf_counter_ns()

    def _compare_clocks(self) -> int:
        """How far the GPU's clock is ahead of the host's, ns: in the middle of the quickest question and answer."""
        words, at = self._shared(2)
        flags = words.view(np.uint32)
        stream = self._cp.cuda.Stream(non_blocking=True)
        with stream:
            self._answer((1,), (1,), (np.uint64(at), np.uint64(at + 8), np.uint32(ANSWERS)))
        best, ahead = 1 << 62, 0
        for number in range(1, ANSWERS + 1):
            words[1] = 0
            asked = time.perf_counter_ns()
            flags[0] = number
            while not words[1]:
                if time.perf_counter_ns() - asked > HANG_S * 1e9:
                    raise GpuError(f"the GPU does not see memory of the host: no answer within {HANG_S:g} s")
            answered = time.perf_counter_ns()
            if answered - asked < best:
                best, ahead = answered - asked, int(words[1]) - (asked + answered) // 2
        stream.synchronize()
        return ahead

    def now_ps(self) -> int:
        """Time since the start, picoseconds."""
        return (time.perf_counter_ns() - self._zero_ns) * 1000

    def _ps(self, gpu_ns: int) -> int:
        """A time of the GPU's."""
        return max(0, gpu_ns - self._ahead_ns - self._zero_ns) * 1000

    def submit(self, work: Work) -> None:
        """Hand work to its queue."""
        queue = self._queue(work.stream, work.priority)
        slot = self._take_slot()
        with self._told(f"did not take launch {work.launch}"), queue.stream:
            for before in work.after:
                queue.stream.wait_event(self._events[before])
            if work.op.kind is OpKind.KERNEL:
                self._run(self._stands[work.op.identity].scaled(work.op.scale), slot)
            else:
                at = self._reports_at + 16 * slot
                self._mark((1,), (1,), (np.uint64(at),))
                if work.op.kind is OpKind.GRAPH:
                    self._graph(work, queue.stream).launch(queue.stream)
                else:
                    self._copy(work.op, queue.stream)
                self._mark((1,), (1,), (np.uint64(at + 8),))
            self._events[work.launch] = event = self._cp.cuda.Event(disable_timing=True)
            event.record(queue.stream)
        queue.work.append((work.launch, slot))

    def _take_slot(self) -> int:
        self._slot = (self._slot + 1) % SLOTS
        self._reports[2 * self._slot : 2 * self._slot + 2] = 0
        return self._slot

    def _run(self, stand: Stand, slot: int | None) -> None:
        """Launch a stand-in into the current stream; without a slot it reports nothing."""
        key = stand.registers, stand.chains
        kernel = self._kernels.get(key)
        if kernel is None:
            values = values_for(*key, self._arch)
            kernel = self._kernels[key] = self._module(values, stand.chains).get_function("synthetic")
        if stand.shared_bytes > kernel.max_dynamic_shared_size_bytes:
            kernel.max_dynamic_shared_size_bytes = stand.shared_bytes
        self._seed += 1
        counts = 0 if slot is None else self._counts.data.ptr + 8 * slot
        report = 0 if slot is None else self._reports_at + 16 * slot
        arguments = (
            np.uint32(stand.turns), np.uint32(stand.loads), np.uint32(stand.extra), self._buffer, np.uint64(LINES),
            np.uint32(self._seed), np.uint64(counts), np.uint64(report), self._sink,
        )  # fmt: skip
        kernel((stand.blocks,), (stand.threads,), arguments, shared_mem=stand.shared_bytes)

    def _copy(self, op: HostOp | NodeOp, stream: Any) -> None:
        """A copy or memset of the same size, in memory of nobody."""
        runtime, size = self._cp.cuda.runtime, max(1, op.bytes)
        here, there = self._here.data.ptr, self._there.data.ptr
        if op.kind is OpKind.MEMSET:
            runtime.memsetAsync(here, 0, size, stream.ptr)
            return
        target, source, kind = {
            OpKind.COPY_TO_DEVICE: (here, self._host_at, runtime.memcpyHostToDevice),
            OpKind.COPY_TO_HOST: (self._host_at, here, runtime.memcpyDeviceToHost),
            OpKind.COPY_ON_DEVICE: (there, here, runtime.memcpyDeviceToDevice),
        }[op.kind]
        runtime.memcpyAsync(target, source, size, kind, stream.ptr)

    def _graph(self, work: Work, stream: Any) -> Any:
        """The CUDA graph of a launch, captured the first time: it keeps the priority of its stream."""
        key = id(work.op), work.stream, work.priority
        if key not in self._graphs:
            self._graphs[key] = self._captured(work.op, stream, work.priority)
        return self._graphs[key]

    def _captured(self, op: HostOp, stream: Any, priority: int) -> Any:
        branches = {0: stream}
        ends: list[Any] = []
        stream.begin_capture()
        begin = self._cp.cuda.Event(disable_timing=True)
        begin.record(stream)
        for node in op.nodes:
            own = branches.get(node.branch)
            if own is None:
                own = branches[node.branch] = self._cp.cuda.Stream(non_blocking=True, priority=priority)
                own.wait_event(begin)
            for before in node.after:
                own.wait_event(ends[before])
            with own:
                if node.kind is OpKind.KERNEL:
                    self._run(self._stands[node.identity].scaled(node.scale), None)
                else:
                    self._copy(node, own)
            end = self._cp.cuda.Event(disable_timing=True)
            end.record(own)
            ends.append(end)
        for end in ends:
            stream.wait_event(end)
        return stream.end_capture()

    # ---- what happens ------------------------------------------------------------------------------------------------

    def poll(self) -> list[Report]:
        """What has happened since the last call, in order of time."""
        found: list[Report] = []
        reports = self._reports
        for queue in self._queues.values():
            while queue.work:
                launch, slot = queue.work[0]
                started, ended = int(reports[2 * slot]), int(reports[2 * slot + 1])
                if started and not queue.started:
                    queue.started = True
                    found.append(Report(self._ps(started), launch, False))
                if not ended:
                    break
                found.append(Report(max(self._ps(started), self._ps(ended)), launch, True))
                queue.work.popleft()
                queue.started = False
                del self._events[launch]
        return sorted(found)

    def _news(self) -> bool:
        """Whether there is something to poll."""
        for queue in self._queues.values():
            if queue.work:
                slot = queue.work[0][1]
                if self._reports[2 * slot + queue.started]:
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
        busy = [queue for queue in self._queues.values() if queue.work]
        with self._told("has failed"):
            for queue in busy:
                self._cp.cuda.runtime.streamQuery(queue.stream.ptr)
        if busy and quiet_s > HANG_S:
            launches = [queue.work[0][0] for queue in busy]
            raise GpuError(f"launches {launches[:5]} have neither started nor ended for {HANG_S:g} s")

    def stop(self) -> None:
        """Wait until nothing is left on the GPU, and forget what was."""
        for queue in self._queues.values():
            with self._told("has failed"):
                queue.stream.synchronize()
            queue.work.clear()
            queue.started = False
        self._events.clear()

    def close(self) -> None:
        """Give streams, graphs and memory back."""
        self._queues = {}
        self._graphs = {}
        self._kernels = {}
        del self._buffer, self._counts
        self._cp.get_default_memory_pool().free_all_blocks()

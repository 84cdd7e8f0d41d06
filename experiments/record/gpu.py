"""Synthetic kernels on the GPU at hand, through CuPy: streams that are filled first and then released together.

Each stream waits for a flag in the GPU's memory (``cuStreamWaitValue32``, for which CuPy has no call; cuda-core's own
bindings have). A kernel of one thread raises the flags at their delays, once the host has released it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from gpusched_env.devices.cuda.kernels import compiled, open_cupy, registers_of
from gpusched_env.devices.cuda.launching import LINES, MAX_DYNAMIC_SHARED, Call, call
from gpusched_env.errors import GpuError, InputError, needs
from gpusched_env.experiments.record.library import Blocks, Spec

SOURCE: Final = "work.cu"
QUEUES: Final = "CUDA_DEVICE_MAX_CONNECTIONS"
"""Streams beyond as many of the GPU's queues share one, where a stream that waits holds up another; 8 by default."""
MOST_QUEUES: Final = "32"
STREAMS: Final = 16
"""Flags, as many as ``Release`` in ``work.cu`` has; a recording has at most eight streams."""
SEED, BLOCKS = 3, 4
"""Words of ``Work`` in ``work.cu`` that differ from launch to launch."""
BLOCK_WORDS: Final = 3
"""Words of 8 bytes that a block reports."""
HANG_S: Final = 20.0
"""Nothing in a recording runs so long: something hangs."""
SUCCESS, NOT_READY = 0, 600
"""Codes ``cudaSuccess`` and ``cudaErrorNotReady``."""
WARM_UP_S: Final = 0.5
"""Seconds of work before the first measurement, for which the GPU raises its clocks."""


def more_queues() -> None:
    """A queue of the GPU for every stream; to be called before any library takes the GPU into use."""
    os.environ.setdefault(QUEUES, MOST_QUEUES)


@dataclass(frozen=True, slots=True)
class StreamedKernel:
    """A kernel in a stream."""

    spec: Spec
    stream: int = 0
    priority: int = 0
    """CUDA's convention: 0 is the default, lower is more urgent."""
    delay_us: float | None = None
    """The time after the release when the stream may start; ``None``: right behind the launch before it."""
    graph: bool = False
    """Whether it is a node of a CUDA graph, a chain: so many launches of a stream as follow each other there."""
    copy: bool = False
    """Whether its machine code is a second copy, elsewhere in memory: another kernel to caches of instructions."""


class CupyRecorder:
    """Records synthetic kernels on the GPU at hand."""

    def __init__(self, number: int = 0) -> None:
        """
        Args:
            number: of the GPU in this machine.

        Raises:
            InputError: CuPy or cuda-core is not installed, or there is no GPU.
            GpuError: the GPU cannot be used.
        """
        more_queues()
        self._cp = cupy = open_cupy("recording")
        try:
            from cuda.bindings import driver
        except ImportError:
            raise InputError(needs("recording", "cuda")) from None
        self._bindings = driver
        self._faults = cupy.cuda.runtime.CUDARuntimeError, cupy.cuda.driver.CUDADriverError
        with self._told():
            device = cupy.cuda.Device(number)
            device.use()
            self.sms = int(device.attributes["MultiProcessorCount"])
            self.most_shared = int(device.attributes["MaxSharedMemoryPerBlockOptin"])
            code = compiled(__package__, SOURCE, f"sm_{device.compute_capability}")
            self.regs = registers_of(code, "work")
            self._modules = [cupy.cuda.Module(), cupy.cuda.Module()]
            for module in self._modules:
                module.load(code)
            self._work = [int(module.get_function("work").ptr) for module in self._modules]
            self._timer = int(self._modules[0].get_function("timer").ptr)
            for work in self._work:
                cupy.cuda.driver.funcSetAttribute(work, MAX_DYNAMIC_SHARED, self.most_shared)
            self._buffer = cupy.zeros(LINES * 4, np.float32)
            self._sink = cupy.zeros(1, np.float32)
            self._flags = cupy.zeros(STREAMS, np.uint32)
            self._blocks = cupy.zeros((0, BLOCK_WORDS), np.uint64)
            # The release, and the time of it: in memory of the host.
            self._pinned = cupy.cuda.alloc_pinned_memory(8 * 2)
            self._words = np.frombuffer(self._pinned, np.uint64, 2)
            self._words[:] = 0
            self._clock = cupy.cuda.Stream(non_blocking=True)
            # No stream here waits for CuPy's own, which fills the buffers.
            cupy.cuda.runtime.deviceSynchronize()
        self.head: dict[str, Any] = {
            "gpu": str(cupy.cuda.runtime.getDeviceProperties(number)["name"].decode()),
            "sms": self.sms,
            "cupy": str(cupy.__version__),
            "cuda": int(cupy.cuda.runtime.runtimeGetVersion()),
            "driver": int(cupy.cuda.runtime.driverGetVersion()),
            "work_regs": self.regs,
        }
        self._streams: dict[tuple[int, int], Any] = {}
        self._calls: dict[tuple[int, Spec], Call] = {}
        """Calls by function and kernel."""
        self._turn = self._seed = 0
        self._warm_up()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of CUDA as :class:`GpuError`."""
        try:
            yield
        except (*self._faults, self._cp.cuda.memory.OutOfMemoryError) as error:
            raise GpuError(f"the GPU has failed: {error}; the process must be started anew") from error

    def _warm_up(self) -> None:
        """Loads the kernels, which a kernel that spins would not let the driver do later, and raises the clocks."""
        spec = Spec(kind="compute", grid=4 * self.sms, block=1024, smem=0, iters=400, fma=16, load=0)
        self._room(spec.grid)
        begun = time.perf_counter()
        with self._told():
            for copy in (True, False):
                self._launch(spec, self._stream(0, 0), 0, copy)
            while time.perf_counter() - begun < WARM_UP_S:
                self._launch(spec, self._stream(0, 0), 0)
                self._stream(0, 0).synchronize()
            self._stream(0, 0).synchronize()
            self._driver(self._timer_call({}), self._clock.ptr)
            self._clock.synchronize()

    def run(self, launches: Sequence[StreamedKernel]) -> list[Blocks]:
        """All streams together, once; what each launch's blocks reported.

        Raises:
            InputError: too many streams.
            GpuError: a kernel has failed, or does not end.
        """
        most = max(launch.stream for launch in launches)
        if most >= STREAMS:
            raise InputError(f"stream {most}: a recording has at most {STREAMS} streams, from 0")
        firsts = np.cumsum([0, *(launch.spec.grid for launch in launches)]).tolist()
        delays = {launch.stream: launch.delay_us for launch in reversed(launches) if launch.delay_us is not None}
        self._room(firsts[-1])
        # Made before the timer runs: the driver may want the GPU idle for it.
        streams = [self._stream(launch.stream, launch.priority) for launch in launches]
        graphs = self._captured(launches, streams, firsts)

        def fill() -> None:
            for row, (launch, stream, first) in enumerate(zip(launches, streams, firsts, strict=False)):
                if launch.delay_us is not None:
                    self._await_flag(stream, launch.stream)
                if row in graphs:
                    graphs[row].launch(stream)
                elif not launch.graph:
                    self._launch(launch.spec, stream, first, launch.copy)

        zero = self._released(fill, delays)
        return self._reported(firsts, zero)

    def _captured(
        self, launches: Sequence[StreamedKernel], streams: Sequence[Any], firsts: Sequence[int]
    ) -> dict[int, Any]:
        """CUDA graphs by the row of the first launch of each."""
        chains: dict[int, list[int]] = {}
        growing: dict[int, int] = {}
        """The chain that goes on with the next launch of a stream, by stream."""
        for row, launch in enumerate(launches):
            if not launch.graph:
                growing.pop(launch.stream, None)
                continue
            if launch.delay_us is not None or launch.stream not in growing:
                growing[launch.stream] = row
            chains.setdefault(growing[launch.stream], []).append(row)
        made = {}
        for head, rows in chains.items():
            stream = streams[head]
            stream.begin_capture()
            for row in rows:
                self._launch(launches[row].spec, stream, firsts[row], launches[row].copy)
            made[head] = stream.end_capture()
            made[head].upload(stream)
            stream.synchronize()
        return made

    def event_gap_ns(self, spec: Spec) -> float:
        """The time from the end of a kernel to the start of one on another stream that waits for it, by an event."""
        self._room(2 * spec.grid)
        first, second = self._stream(0, 0), self._stream(1, 0)
        event = self._cp.cuda.Event(disable_timing=True)

        def fill() -> None:
            self._await_flag(first, 0)
            self._launch(spec, first, 0)
            event.record(first)
            second.wait_event(event)
            self._launch(spec, second, spec.grid)

        before, after = self._reported([0, spec.grid, 2 * spec.grid], self._released(fill, {0: 20.0}))
        return float(after[:, 0].min() - before[:, 1].max())

    def host_us(self, spec: Spec, count: int) -> float:
        """Time of the host for a launch, of ``count`` in a row, with CuPy."""
        stream = self._stream(0, 0)
        begun = time.perf_counter()
        for _ in range(count):
            self._launch(spec, stream, 0)
        took_us = (time.perf_counter() - begun) * 1e6 / count
        self._finish()
        return took_us

    def synchronised_us(self, spec: Spec) -> float:
        """Time of the host for a launch and until its stream is done."""
        stream = self._stream(0, 0)
        begun = time.perf_counter()
        self._launch(spec, stream, 0)
        stream.synchronize()
        return (time.perf_counter() - begun) * 1e6

    # ---- streams and their release -----------------------------------------------------------------------------------

    def _stream(self, number: int, priority: int) -> Any:
        key = number, priority
        if key not in self._streams:
            self._streams[key] = self._cp.cuda.Stream(non_blocking=True, priority=priority)
        return self._streams[key]

    def _await_flag(self, stream: Any, number: int) -> None:
        """What is behind in the stream waits for its flag."""
        at = int(self._flags.data.ptr) + 4 * number
        wait = self._bindings.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_GEQ
        (status,) = self._bindings.cuStreamWaitValue32(stream.ptr, at, self._turn, int(wait))
        if status != self._bindings.CUresult.CUDA_SUCCESS:
            raise GpuError(f"the driver does not let a stream wait for memory: {status.name}")

    def _released(self, fill: Callable[[], None], delays_us: dict[int, float]) -> int:
        """Fill streams behind their flags, release them, and wait for all; the time of the release, ns."""
        self._turn += 1
        self._words[1] = 0
        with self._told():
            self._driver(self._timer_call(delays_us), self._clock.ptr)
            try:
                fill()
            finally:
                # Also when a launch has failed: a timer that waits for ever would keep the process from ending.
                self._words[0] = self._turn
            self._finish()
        return int(self._words[1])

    def _timer_call(self, delays_us: dict[int, float]) -> Call:
        """The kernel that raises the flags of streams at their delays."""
        at, flags = int(self._pinned.ptr), int(self._flags.data.ptr)
        order = sorted(delays_us, key=lambda stream: (delays_us[stream], stream))
        unused = [0] * (STREAMS - len(order))
        delays_ns = [round(1e3 * delays_us[stream]) for stream in order]
        given = [at, self._turn, at + 8, flags, len(order), *delays_ns, *unused, *order, *unused]
        return call(self._timer, 1, 1, 0, given, one=True)

    def _finish(self) -> None:
        """Wait until nothing is left on the GPU."""
        begun = time.perf_counter()
        for stream in (self._clock, *self._streams.values()):
            while (status := int(self._cp.cuda.runtime.streamQuery(stream.ptr))) == NOT_READY:
                if time.perf_counter() - begun > HANG_S:
                    raise GpuError(f"work on the GPU has not ended for {HANG_S:g} s: this process must end")
            if status != SUCCESS:
                self._cp.cuda.runtime.check_status(status)

    # ---- launches and their reports ----------------------------------------------------------------------------------

    def _room(self, blocks: int) -> None:
        """Memory for the reports of so many blocks."""
        if len(self._blocks) < blocks:
            with self._told():
                self._blocks = self._cp.zeros((blocks, BLOCK_WORDS), np.uint64)
                self._cp.cuda.runtime.deviceSynchronize()

    def _launch(self, spec: Spec, stream: Any, first: int, copy: bool = False) -> None:
        """Launch a kernel whose blocks report from the ``first`` place on."""
        key = self._function(spec, stream, copy), spec
        if key not in self._calls:
            self._calls[key] = call(key[0], spec.grid, spec.block, spec.smem, self._given(spec), one=True)
        ready = self._calls[key]
        self._seed += 1
        ready.words[SEED] = self._seed
        ready.words[BLOCKS] = int(self._blocks.data.ptr) + 8 * BLOCK_WORDS * first
        self._driver(ready, stream.ptr)

    def _function(self, spec: Spec, stream: Any, copy: bool) -> int:
        """The driver's handle of the function of a kernel in a stream."""
        return self._work[copy]

    def _given(self, spec: Spec) -> list[int]:
        """The words of 8 bytes that a kernel is told."""
        return [self._buffer.data.ptr, LINES, self._sink.data.ptr, 0, 0, spec.iters | spec.fma << 32, spec.load]

    def _driver(self, ready: Call, stream: int) -> None:
        self._cp.cuda.driver.launchKernel(
            ready.function, ready.blocks, 1, 1, ready.threads, 1, 1, ready.shared_bytes, stream, ready.at, 0
        )

    def _reported(self, firsts: Sequence[int], zero: int) -> list[Blocks]:
        """The reports of launches whose blocks begin at ``firsts``, the last of which is the end of all."""
        found = self._blocks[: firsts[-1]].get().astype(np.int64)
        found[:, :2] -= zero
        return np.split(found, firsts[1:-1])

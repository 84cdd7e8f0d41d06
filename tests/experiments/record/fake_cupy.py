"""What :class:`gpusched_env.experiments.record.gpu.CupyRecorder` uses of CuPy, without a GPU: streams that wait for
flags, a timer that raises them when the host has released it, kernels of one wave that report their blocks."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.devices.cuda.fake_cupy import CudaError, Module, OutOfMemory, alloc_pinned_memory
from tests.devices.cuda.fake_cupy import Function as KnownFunction

ZERO_NS = 5_000_000_000
FLAG_NS, GAP_NS, GRAPH_GAP_NS, ITERATION_NS = 3_900, 2_000, 1_500, 1_000
BUSY = 600


def word(address: int) -> ctypes.c_uint64:
    return ctypes.c_uint64.from_address(address)


class Array:
    """Memory that both sides see."""

    def __init__(self, of: Any) -> None:
        self.of = of
        self.data = SimpleNamespace(ptr=of.ctypes.data)

    def __len__(self) -> int:
        return len(self.of)

    def __getitem__(self, part: slice) -> Array:
        return Array(self.of[part])

    def get(self) -> Any:
        return self.of.copy()


class Event:
    def __init__(self, disable_timing: bool) -> None:
        self.at_ns: int | None = None

    def record(self, stream: Stream) -> None:
        stream.work.append(("record", self))


class Stream:
    def __init__(self, gpu: FakeCupy, priority: int) -> None:
        self.gpu, self.priority, self.ptr = gpu, priority, len(gpu.streams) + 1
        self.work: list[tuple[str, Any]] = []
        self.captured: list[tuple[str, Any]] | None = None
        self.free_ns = 0
        gpu.streams[self.ptr] = self

    def begin_capture(self) -> None:
        assert self.captured is None
        self.captured = []

    def end_capture(self) -> Graph:
        assert self.captured is not None
        captured, self.captured = self.captured, None
        return Graph(self.gpu, captured)

    def wait_event(self, event: Event) -> None:
        self.work.append(("after", event))

    def synchronize(self) -> None:
        self.gpu.advance()
        assert not self.work

    def step(self) -> bool:
        """Carry out what is first; whether it could be."""
        kind, what = self.work[0]
        if kind == "flag":
            if what not in self.gpu.raised:
                return False
            self.free_ns = self.gpu.raised[what] + FLAG_NS - GAP_NS
        elif kind == "after":
            if what.at_ns is None:
                return False
            self.free_ns = what.at_ns + 1_600
        elif kind == "record":
            what.at_ns = self.free_ns
        elif kind == "timer":
            go, turn, released, flags, count, *more = what
            if word(go).value < turn:
                return False
            for place in range(count):
                self.gpu.raised[flags + 4 * more[16 + place], turn] = ZERO_NS + more[place]
            word(released).value = ZERO_NS
        else:
            blocks, grid, iters, code, gap_ns = what
            start = self.free_ns + gap_ns
            self.free_ns = start + ITERATION_NS * iters
            self.gpu.codes.append(code)
            reports = np.ctypeslib.as_array((ctypes.c_uint64 * (3 * grid)).from_address(blocks)).reshape(grid, 3)
            reports[:, 0], reports[:, 1], reports[:, 2] = start, self.free_ns, np.arange(grid) % self.gpu.sms
        del self.work[0]
        return True


class Graph:
    def __init__(self, gpu: FakeCupy, work: list[tuple[str, Any]]) -> None:
        self.gpu, self.work = gpu, work

    def upload(self, stream: Stream) -> None:
        assert stream.captured is None

    def launch(self, stream: Stream) -> None:
        self.gpu.graphs.append(len(self.work))
        stream.work += self.work


class FakeCupy:
    """The module."""

    __version__ = "14.0"
    ndarray = Array
    """Libraries ask for the class of arrays."""
    sms = 8

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}
        self.raised: dict[tuple[int, int], int] = {}
        """When flags were raised, by address and value."""
        self.codes: list[int] = []
        """Handles of the kernels that ran, in order."""
        self.graphs: list[int] = []
        """Of the graphs that were launched, how many kernels each has."""
        self.available = True
        self.hangs = False
        attributes = {"MultiProcessorCount": self.sms, "MaxSharedMemoryPerBlockOptin": 232_448}
        device = SimpleNamespace(use=lambda: None, compute_capability="90", attributes=attributes)
        runtime = SimpleNamespace(
            CUDARuntimeError=CudaError, streamQuery=self.query, deviceSynchronize=lambda: None,
            getDeviceProperties=lambda number: {"name": b"NVIDIA H100 80GB HBM3"},
            runtimeGetVersion=lambda: 13020, driverGetVersion=lambda: 13000,
        )  # fmt: skip
        self.cuda = SimpleNamespace(
            runtime=runtime, Device=lambda number: device, Module=Module, Event=Event,
            Stream=lambda non_blocking, priority=0: Stream(self, priority), alloc_pinned_memory=alloc_pinned_memory,
            driver=SimpleNamespace(
                CUDADriverError=CudaError, launchKernel=self.launch, funcSetAttribute=lambda *given: None
            ),
            memory=SimpleNamespace(OutOfMemoryError=OutOfMemory),
        )  # fmt: skip

    def is_available(self) -> bool:
        return self.available

    def zeros(self, shape: Any, dtype: Any) -> Array:
        return Array(np.zeros(shape, dtype))

    def wait_value(self, stream: int, address: int, value: int, flags: int) -> tuple[Any]:
        """Stands for ``cuStreamWaitValue32``."""
        from cuda.bindings.driver import CUresult

        assert flags == 0
        self.streams[stream].work.append(("flag", (address, value)))
        return (CUresult.CUDA_SUCCESS,)

    def launch(self, handle: int, grid: int, y: int, z: int, threads: int, *rest: int) -> None:
        _, _, _, stream, places, extra = rest
        assert (y, z, extra) == (1, 1, 0)
        timer = KnownFunction.known[handle].name == "timer"
        words = [word(word(places).value + 8 * n).value for n in range(37 if timer else 7)]
        if timer:
            self.streams[stream].work.append(("timer", words))
            return
        to = self.streams[stream]
        captured = to.captured is not None
        gap_ns = GRAPH_GAP_NS if captured else GAP_NS
        (to.captured if captured else to.work).append(("work", (words[4], grid, words[5] & 0xFFFFFFFF, handle, gap_ns)))

    def advance(self) -> None:
        """Carry out all that does not wait."""
        if self.hangs:
            return
        while any(stream.work and stream.step() for stream in self.streams.values()):
            pass

    def query(self, stream: int) -> int:
        self.advance()
        return BUSY if self.streams[stream].work else 0

"""What :mod:`gpusched_env.devices.cuda.cupy_gpu` uses of CuPy, without a GPU: streams that keep their order, kernels
that take their time and write their reports when they are due, a clock of its own."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

AHEAD_NS = 7_000_000_000
"""Of the host's clock."""
FIXED_NS, TURN_NS = 2_000, 100


def gpu_ns() -> int:
    return time.perf_counter_ns() + AHEAD_NS


class CudaError(Exception):
    """Stands for the errors of CUDA."""


class OutOfMemory(Exception):
    """Stands for CuPy's."""


def write(address: int, value: int) -> None:
    if address:
        ctypes.c_uint64.from_address(address).value = value


class Event:
    def __init__(self, disable_timing: bool = False) -> None:
        self.at_ns = 0

    def record(self, stream: Stream) -> None:
        self.at_ns = stream.free_ns


class Stream:
    """Work in order: when the last of it ends is known when it is handed over."""

    fault: str | None = None
    """What the driver says, of all streams."""
    hangs = False
    """Whether kernels never end."""
    current: list[Stream]

    def __init__(self, non_blocking: bool = False, priority: int = 0) -> None:
        self.priority = priority
        self.ptr = id(self)
        self.free_ns = 0
        self.captured: list[Callable[[Stream], None]] | None = None

    def __enter__(self) -> Stream:
        Stream.current.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        Stream.current.pop()

    def wait_event(self, event: Event) -> None:
        self.free_ns = max(self.free_ns, event.at_ns)

    def synchronize(self) -> None:
        if Stream.hangs:
            return
        while gpu_ns() < self.free_ns or PENDING:
            time.sleep(1e-4)

    def run(self, took_ns: int, *reports: tuple[int, bool]) -> None:
        """Work of some duration; writes its start or (True) its end to addresses."""
        start = max(gpu_ns(), self.free_ns)
        self.free_ns = start + took_ns
        for address, ended in reports:
            if address and not (ended and Stream.hangs):
                PENDING.append((self.free_ns if ended else start, address))

    def begin_capture(self) -> None:
        self.before_ns, self.free_ns = self.free_ns, 0

    def end_capture(self) -> Graph:
        graph = Graph(self.free_ns - gpu_ns())
        self.free_ns = self.before_ns
        return graph


Stream.current = []
PENDING: list[tuple[int, int]] = []
"""What is to be written: when, and where."""


def _writer() -> None:
    while True:
        for due in sorted(PENDING):
            if due[0] <= gpu_ns():
                write(due[1], due[0])
                PENDING.remove(due)
        time.sleep(5e-5)


WRITER = threading.Thread(target=_writer, daemon=True)


class Graph:
    made = 0

    def __init__(self, took_ns: int) -> None:
        Graph.made += 1
        self.took_ns = max(0, took_ns)

    def launch(self, stream: Stream) -> None:
        stream.run(self.took_ns)


class Function:
    max_dynamic_shared_size_bytes = 48 * 1024

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...], shared_mem: int = 0) -> None:
        stream = Stream.current[-1]
        if self._name == "synthetic":
            assert shared_mem <= self.max_dynamic_shared_size_bytes
            turns, report = int(arguments[0]), int(arguments[7])
            stream.run(FIXED_NS + TURN_NS * turns, (report, False), (report + 8 if report else 0, True))
        elif self._name == "mark":
            stream.run(0, (int(arguments[0]), False))
        else:
            threading.Thread(target=_answer, args=tuple(map(int, arguments)), daemon=True).start()


def _answer(flag: int, at: int, times: int) -> None:
    for number in range(1, times + 1):
        while ctypes.c_uint32.from_address(flag).value < number:
            time.sleep(0)
        write(at, gpu_ns())


class RawModule:
    def __init__(self, path: str) -> None:
        assert Path(path).read_bytes()[:4] == b"\x7fELF"

    def compile(self) -> None:
        pass

    def get_function(self, name: str) -> Function:
        return Function(name)


def alloc_pinned_memory(size: int) -> Any:
    kind = type("Pinned", (ctypes.Array,), {"_type_": ctypes.c_uint8, "_length_": size})
    memory = kind()
    memory.ptr = ctypes.addressof(memory)
    return memory


def zeros(shape: Any, dtype: Any) -> Any:
    return SimpleNamespace(data=SimpleNamespace(ptr=4096), shape=shape, dtype=np.dtype(dtype))


def _stream_query(stream: int) -> None:
    if Stream.fault:
        raise CudaError(Stream.fault)


def _copied(target: int, source: int, size: int, *rest: int) -> None:
    Stream.current[-1].run(1000)


def fake_cupy() -> Any:
    """The module."""
    if not WRITER.is_alive():
        WRITER.start()
    runtime = SimpleNamespace(
        CUDARuntimeError=CudaError, streamQuery=_stream_query, memcpyAsync=_copied, memsetAsync=_copied,
        memcpyHostToDevice=1, memcpyDeviceToHost=2, memcpyDeviceToDevice=3,
    )  # fmt: skip
    cuda = SimpleNamespace(
        runtime=runtime, driver=SimpleNamespace(CUDADriverError=CudaError), Stream=Stream, Event=Event,
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemory), alloc_pinned_memory=alloc_pinned_memory,
        Device=lambda number: SimpleNamespace(use=lambda: None, compute_capability="90"),
    )  # fmt: skip
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    return SimpleNamespace(
        cuda=cuda, zeros=zeros, RawModule=RawModule, is_available=lambda: True, get_default_memory_pool=lambda: pool
    )

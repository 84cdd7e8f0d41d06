"""What :mod:`gpusched_env.devices.cuda.cupy_gpu` uses of CuPy, without a GPU: streams that keep their order, kernels
that take their time and write their reports when they are due, a clock of its own."""

from __future__ import annotations

import ctypes
import threading
import time
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest
from cuda.bindings import driver

from gpusched_env.devices.cuda.real_time.tables import Function as Function_

AHEAD_NS = 7_000_000_000
"""Of the host's clock."""
FIXED_NS, TURN_NS, MARK_NS = 2_000, 100, 500
GATE_NS = 5_000_000
"""How long what is behind the gate waits: until the host has launched all of it."""
SMS = 132
BUSY, FAULT = 600, 700
"""States of streams besides 0: all is done."""


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
    known: ClassVar[dict[int, Event]] = {}

    def __init__(self, disable_timing: bool = False) -> None:
        self.at_ns = 0
        self.ptr = id(self)
        Event.known[self.ptr] = self

    def record(self, stream: Stream) -> None:
        self.at_ns = stream.free_ns


class Stream:
    """Work in order: when the last of it ends is known when it is handed over."""

    fault: str | None = None
    """What the driver says, of all streams."""
    hangs = False
    """Whether kernels never end."""
    failure = 0
    """What the driver tells compiled code of every stream."""
    known: ClassVar[dict[int, Stream]] = {}

    def __init__(self, non_blocking: bool = False, priority: int = 0) -> None:
        self.priority = priority
        self.ptr = id(self)
        self.free_ns = 0
        Stream.known[self.ptr] = self

    current: ClassVar[list[Stream]] = []
    """Of ``with``, the innermost last."""
    captured: ClassVar[int] = 0
    """Captures under way, in which nothing may be allocated."""

    def __enter__(self) -> Stream:
        Stream.current.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        assert Stream.current.pop() is self

    def wait_event(self, event: Event) -> None:
        self.free_ns = max(self.free_ns, event.at_ns)

    @property
    def busy(self) -> bool:
        return Stream.hangs or gpu_ns() < self.free_ns or bool(PENDING)

    def synchronize(self) -> None:
        while self.busy:
            time.sleep(1e-4)

    def run(self, took_ns: int, *reports: tuple[int, bool]) -> None:
        """Work of some duration; writes its start or (True) its end to addresses."""
        start = max(gpu_ns(), self.free_ns)
        self.free_ns = start + took_ns
        for address, ended in reports:
            if address and not (ended and Stream.hangs):
                PENDING.append((self.free_ns if ended else start, address))

    def begin_capture(self) -> None:
        Stream.captured += 1
        self.before_ns, self.free_ns = self.free_ns, 0

    def end_capture(self) -> Graph:
        Stream.captured -= 1
        graph = Graph(self.free_ns - gpu_ns())
        self.free_ns = self.before_ns
        return graph


PENDING: list[tuple[int, int]] = []
"""What is to be written: when, and where."""
WRITING = threading.Lock()
QUIETENED: list[None] = []
"""An entry for each :func:`quieten`."""


def quieten() -> None:
    """Write no more, at the end of a test: it would go to memory that the next tests have."""
    with WRITING:
        PENDING.clear()
        QUIETENED.append(None)


def _writer() -> None:
    while True:
        with WRITING:
            for due in sorted(PENDING):
                if due[0] <= gpu_ns():
                    write(due[1], due[0])
                    PENDING.remove(due)
        time.sleep(5e-5)


WRITER = threading.Thread(target=_writer, daemon=True)


class Graph:
    made = 0
    known: ClassVar[dict[int, Graph]] = {}

    def __init__(self, took_ns: int) -> None:
        Graph.made += 1
        self.took_ns = max(0, took_ns)
        self.graphExec = id(self)
        Graph.known[self.graphExec] = self

    def launch(self, stream: Stream) -> None:
        stream.run(self.took_ns)


LAUNCHED: list[tuple[str, int]] = []
"""Kernels and library calls: name, and handle of the stream."""


class Function:
    """A kernel, which the driver finds by its handle."""

    known: ClassVar[dict[int, Function]] = {}

    def __init__(self, name: str) -> None:
        self.name = name
        self.room = 48 * 1024
        self.ptr = len(Function.known) + 1
        Function.known[self.ptr] = self


class Recallable(NamedTuple):
    """A launch that can be recalled."""

    seed: int
    stream: Stream
    report: int
    blocks_at: int
    blocks: int
    start_ns: int
    end_ns: int


RECALLABLE: dict[int, Recallable] = {}
"""By address of the record; the last launch that had it."""
STOPPED: list[int] = []
"""Addresses of records of launches that were recalled, in the order in which they were told."""


def write_value(stream: int, at: int, value: int, flags: int) -> tuple[int]:
    """``cuStreamWriteValue32``: blocks are handed out evenly over a launch, those that have begun end at once."""
    assert (stream in Stream.known, flags) == (True, 0)
    ctypes.c_uint32.from_address(at).value = value
    STOPPED.append(at - 8)
    found, now = RECALLABLE[at - 8], gpu_ns()
    if found.seed != value or now >= found.end_ns:
        return (0,)
    ran = 0
    if now >= found.start_ns:
        ran = found.blocks * (now - found.start_ns) // (found.end_ns - found.start_ns) + 1
    with WRITING:
        PENDING[:] = [due for due in PENDING if due[1] != found.report + 8 and (ran or due[1] != found.report)]
        write(found.report + 16, ran)
        PENDING.append((now, found.report + 8))
    for block in range(ran if found.blocks_at else found.blocks, found.blocks):
        write(found.blocks_at + 24 * block + 8, 0)
    found.stream.free_ns = now
    return (0,)


def _launch(handle: int, blocks: int, y: int, z: int, threads: int, *rest: int) -> None:
    _, _, shared, stream, places, extra = rest
    assert (y, z, extra) == (1, 1, 0)
    function, on = Function.known[handle], Stream.known[stream]
    LAUNCHED.append((function.name, stream))
    first = ctypes.c_uint64.from_address(places).value
    if function.name == "synthetic":
        words = np.ctypeslib.as_array((ctypes.c_uint64 * 10).from_address(first))
        assert shared <= function.room
        turns, report = int(words[6]) & 0xFFFFFFFF, int(words[5])
        if words[8]:
            began = max(gpu_ns(), on.free_ns)
            for block in range(blocks):
                for field, value in enumerate((began, began + FIXED_NS + TURN_NS * turns, block % SMS)):
                    write(int(words[8]) + 24 * block + 8 * field, value)
        start, took = max(gpu_ns(), on.free_ns), FIXED_NS + TURN_NS * turns
        on.run(took, (report, False), (report + 8 if report else 0, True))
        if words[9]:
            seed, at, end = int(words[3]), int(words[9]), start + took
            assert ctypes.c_uint64.from_address(at).value == 0
            assert ctypes.c_uint32.from_address(at + 8).value != seed
            write(report + 16, blocks)
            RECALLABLE[at] = Recallable(seed, on, report, int(words[8]), blocks, start, end)
    elif function.name == "mark":
        on.run(MARK_NS, (ctypes.c_uint64.from_address(first).value, False))
    else:
        given = [
            ctypes.c_uint64.from_address(ctypes.c_uint64.from_address(places + 8 * n).value).value for n in range(3)
        ]
        on.run(GATE_NS if given[2] == 1 else 0)
        threading.Thread(target=_answer, args=given, daemon=True).start()


def _set_attribute(handle: int, attribute: int, value: int) -> None:
    assert attribute == 8
    Function.known[handle].room = value


def _answer(flag: int, at: int, times: int) -> None:
    began = len(QUIETENED)
    for number in range(1, times + 1):
        while ctypes.c_uint32.from_address(flag).value < number:
            time.sleep(0)
            if len(QUIETENED) > began:
                return
        write(at, gpu_ns())


class Module:
    def load(self, code: bytes) -> None:
        assert code[:4] == b"\x7fELF"

    def get_function(self, name: str) -> Function:
        return Function(name)


def alloc_pinned_memory(size: int) -> Any:
    kind = type("Pinned", (ctypes.Array,), {"_type_": ctypes.c_uint8, "_length_": size})
    memory = kind()
    memory.ptr = ctypes.addressof(memory)
    return memory


class Array:
    """Zeros at an address."""

    def __init__(self, host: Any) -> None:
        self.host = host
        self.data = SimpleNamespace(ptr=host.ctypes.data)

    @property
    def size(self) -> int:
        return int(self.host.size)

    def __getitem__(self, rows: slice) -> Array:
        return Array(self.host[rows])

    def __setitem__(self, rows: Any, values: Array) -> None:
        """Numbers that nobody looks at."""

    def reshape(self, size: int) -> Array:
        return Array(self.host.reshape(size))


def zeros(shape: Any, dtype: Any) -> Any:
    assert not Stream.captured
    return Array(np.zeros(shape, dtype))


def as_strided(array: Array, shape: tuple[int, int], strides: tuple[int, int]) -> Array:
    return Array(np.lib.stride_tricks.as_strided(array.host, shape, strides))


ELEMENT_NS, PRODUCT_NS = 0.01, 1e-2
"""Of an element of an element-wise operation, and of a multiply-add on one tile of a product."""


def negative(given: Array, out: Array) -> None:
    """The element-wise operation."""
    assert given.host.shape == out.host.shape
    stream = Stream.current[-1]
    LAUNCHED.append(("elementwise", stream.ptr))
    stream.run(FIXED_NS + round(ELEMENT_NS * out.size))


class CublasError(Exception):
    """cuBLAS has failed."""


class Cublas:
    """What is called of ``nvmath.bindings.cublas``."""

    cuBLASError = CublasError
    Operation, ComputeType = SimpleNamespace(N=0), SimpleNamespace(COMPUTE_32F=68)
    GemmAlgo = SimpleNamespace(DEFAULT=-1)

    def __init__(self) -> None:
        self.stream = self.space = 0
        self.spaces: dict[int, set[int]] = {}
        """Addresses of memory to work in, by stream."""
        self.products: list[tuple[int, int, int]] = []
        """``m``, ``n``, ``k``."""

    def create(self) -> int:
        return 77

    def destroy(self, handle: int) -> None:
        assert handle == 77

    def get_version(self, handle: int) -> int:
        return 130_100

    def set_stream(self, handle: int, stream: int) -> None:
        self.stream, self.space = stream, 0

    def set_workspace(self, handle: int, address: int, size: int) -> None:
        self.space = address
        self.spaces.setdefault(self.stream, set()).add(address)

    def gemm_ex(self, handle: int, ta: int, tb: int, m: int, n: int, k: int, *rest: Any) -> None:
        alpha, _, a, lda, _, b, ldb, beta, _, c, ldc, compute, algorithm = rest
        assert handle == 77
        assert self.space, "without memory of ours cuBLAS allocates some, also in a capture"
        assert (ta, tb, a, lda, b, ldb, c, ldc) == (0, 0, 2, m, 2, k, 2, m)
        factors = [ctypes.c_float.from_address(one).value for one in (alpha, beta)]
        assert (factors, compute, algorithm) == ([1.0, 0.0], 68, -1)
        self.products.append((m, n, k))
        LAUNCHED.append(("product", self.stream))
        Stream.known[self.stream].run(FIXED_NS + round(PRODUCT_NS * m * n * k / SMS))


class Kernels:
    """What is called of ``cuda.bindings.driver`` to look at what was captured: nodes are names of :data:`LAUNCHED`."""

    def __init__(self, **shapes: tuple[tuple[int, int, int], tuple[int, int, int], int, int, int]) -> None:
        """``shapes``: grid, block, registers, static and dynamic shared memory by name; others are no kernels."""
        self.shapes = shapes
        self.begun = 0
        self.graphs = 0
        """That were not destroyed."""

    def cuStreamBeginCapture(self, stream: int, mode: Any) -> tuple[int]:
        self.begun = len(LAUNCHED)
        return (0,)

    def cuStreamEndCapture(self, stream: int) -> tuple[int, list[str]]:
        self.graphs += 1
        return 0, [name for name, _ in LAUNCHED[self.begun :]]

    def cuGraphGetNodes(self, graph: list[str], count: int = 0) -> tuple[int, list[str], int]:
        return 0, graph[:count], len(graph)

    def cuGraphNodeGetType(self, node: str) -> tuple[int, Any]:
        kinds = driver.CUgraphNodeType
        return 0, kinds.CU_GRAPH_NODE_TYPE_KERNEL if node in self.shapes else kinds.CU_GRAPH_NODE_TYPE_MEMSET

    def cuGraphKernelNodeGetParams(self, node: str) -> tuple[int, Any]:
        grid, block, *_, dynamic = self.shapes[node]
        sizes = zip(("gridDim", "blockDim"), (grid, block), strict=True)
        named = {f"{size}{axis}": given for size, three in sizes for axis, given in zip("XYZ", three, strict=True)}
        # A kernel of a library has no function before it is asked for one.
        return 0, SimpleNamespace(**named, sharedMemBytes=dynamic, func=0, kern=node)

    def cuKernelGetFunction(self, kern: str) -> tuple[int, str]:
        return 0, kern

    def cuFuncGetAttribute(self, which: Any, function: str) -> tuple[int, int]:
        _, _, registers, static, _ = self.shapes[function]
        return 0, {"CU_FUNC_ATTRIBUTE_NUM_REGS": registers, "CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES": static}[which.name]

    def cuGraphDestroy(self, graph: list[str]) -> tuple[int]:
        self.graphs -= 1
        return (0,)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Kernels:
        """In place of the driver's."""
        for name in [name for name in dir(self) if name.startswith("cu")]:
            monkeypatch.setattr(driver, name, getattr(self, name))
        return self


def _stream_query(stream: int) -> int:
    return FAULT if Stream.fault else BUSY if Stream.known[stream].busy else 0


def _check_status(status: int) -> None:
    assert status == FAULT
    raise CudaError(Stream.fault)


class Driver:
    """Functions at addresses, as compiled code calls them."""

    refusal: ClassVar[int] = 0
    """What the driver answers to every launch of a kernel."""
    waits: ClassVar[list[Event]] = []
    """That streams were told to wait for."""

    def __init__(self) -> None:
        calls = {
            Function_.LAUNCH_KERNEL: (11, self._launch_kernel),
            Function_.LAUNCH_GRAPH: (2, lambda graph, stream: Graph.known[graph].launch(Stream.known[stream])),
            Function_.RECORD_EVENT: (2, lambda event, stream: Event.known[event].record(Stream.known[stream])),
            Function_.WAIT_EVENT: (3, self._wait_event),
            Function_.QUERY_STREAM: (1, lambda stream: Stream.failure or _stream_query(stream)),
        }
        self._made = {
            row: ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_int64] * count)(self._answering(call))
            for row, (count, call) in calls.items()
        }
        self._made[Function_.CLOCK] = ctypes.CDLL(None).clock_gettime

    def _answering(self, call: Any) -> Any:
        return lambda *given: call(*given) or 0

    def _launch_kernel(self, *given: int) -> int:
        if not Driver.refusal:
            _launch(*given)
        return Driver.refusal

    def _wait_event(self, stream: int, event: int, flags: int) -> None:
        Stream.known[stream].wait_event(Event.known[event])
        Driver.waits.append(Event.known[event])

    def functions(self) -> Any:
        """In place of :func:`gpusched_env.devices.cuda.real_time.tables.functions`."""
        return np.array([ctypes.cast(self._made[row], ctypes.c_void_p).value for row in Function_], np.int64)


def _copied(*given: int) -> None:
    Stream.known[given[-1]].run(1000)


def fake_cupy() -> Any:
    """The module."""
    if not WRITER.is_alive():
        WRITER.start()
    runtime = SimpleNamespace(
        CUDARuntimeError=CudaError, streamQuery=_stream_query, check_status=_check_status,
        getDeviceProperties=lambda number: {"name": b"NVIDIA H100 80GB HBM3"}, memcpyAsync=_copied, memsetAsync=_copied,
        memcpyHostToDevice=1, memcpyDeviceToHost=2, memcpyDeviceToDevice=3,
        driverGetVersion=lambda: 13000, runtimeGetVersion=lambda: 13000,
    )  # fmt: skip
    cuda = SimpleNamespace(
        runtime=runtime, Stream=Stream, Event=Event, Module=Module,
        driver=SimpleNamespace(CUDADriverError=CudaError, launchKernel=_launch, funcSetAttribute=_set_attribute),
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemory), alloc_pinned_memory=alloc_pinned_memory,
        Device=lambda number: SimpleNamespace(use=lambda: None, compute_capability="90"),
    )  # fmt: skip
    pool = SimpleNamespace(free_all_blocks=lambda: None)
    return SimpleNamespace(
        cuda=cuda,
        ndarray=Array,
        zeros=zeros,
        asarray=Array,
        negative=negative,
        lib=SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=as_strided)),
        __version__="14.2.0",
        asnumpy=lambda array: array.host.copy(),
        is_available=lambda: True,
        get_default_memory_pool=lambda: pool,
    )

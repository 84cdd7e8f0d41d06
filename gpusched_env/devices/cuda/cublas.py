"""Matrix products of cuBLAS in a stream of one's choice, and the shapes of the kernels that a library launches.

CuPy's own calls refuse a stream whose work is captured for a graph, so cuBLAS is called through NVIDIA's bindings. A
shape is read from a graph that a launch is captured into: nothing runs and no profiler is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from gpusched_env.errors import GpuError, InputError, needs

STREAMS: Final = 4096
"""Most streams with products in them at a time: those of a problem's queues, and of the branches of its graphs."""
WORKSPACE: Final = 16 * 1024
"""Bytes for each stream: as few as cuBLAS takes, so that a product is one kernel, not several parts and their sum."""
HALF: Final = 2
"""The type of half precision, ``CUDA_R_16F``."""


def bindings() -> Any:
    """The module of cuBLAS's functions.

    Raises:
        InputError: it is not installed.
    """
    try:
        from nvmath.bindings import cublas
    except ImportError:
        raise InputError(needs("a library kernel", "nvmath")) from None
    return cublas


class Cublas:
    """cuBLAS on the GPU in use."""

    def __init__(self, cupy: Any) -> None:
        """
        Raises:
            InputError: its bindings are not installed.
            GpuError: it cannot be loaded, or fails.
        """
        self._library = bindings()
        self._plain = int(self._library.Operation.N)
        self._single = int(self._library.ComputeType.COMPUTE_32F)
        self._algorithm = int(self._library.GemmAlgo.DEFAULT)
        try:
            self._handle = self._library.create()
        except Exception as error:  # of the loader, or of cuBLAS: nothing here would treat them differently
            raise GpuError(f"cuBLAS cannot be used: {error}") from error
        self.version = int(self._library.get_version(self._handle))
        self._factors = np.array([1.0, 0.0], np.float32)
        """Factors of the product, and of what was there."""
        self._room = cupy.zeros(STREAMS * WORKSPACE, np.uint8)
        self.forget_all()

    def forget_all(self) -> None:
        """Take the memory of all streams back, in which nothing is left to do."""
        self._spaces: dict[int, tuple[Any, int]] = {}
        """The stream by its handle, so that no other gets that, and the address of its memory."""
        self._free = [int(self._room.data.ptr) + WORKSPACE * number for number in reversed(range(STREAMS))]

    def forget(self, stream: Any) -> None:
        """Take the memory of a stream back, in which nothing is left to do."""
        if (known := self._spaces.pop(stream.ptr, None)) is not None:
            self._free.append(known[1])

    def _space(self, stream: Any) -> int:
        known = self._spaces.get(stream.ptr)
        if known is None:
            if not self._free:
                raise GpuError(f"more than {STREAMS:,} streams and branches of graphs have library kernels")
            known = self._spaces[stream.ptr] = stream, self._free.pop()
        return known[1]

    def product(self, m: int, n: int, k: int, given: int, taken: int, stream: Any) -> None:
        """Put a product of two matrices of half precision into a stream.

        Args:
            m, n, k: the first matrix is m by k, the second k by n.
            given: address of both: they begin at the same one.
            taken: address of the result.
            stream: of CuPy.

        Raises:
            GpuError: cuBLAS has failed.
        """
        one = self._factors.ctypes.data
        zero = one + self._factors.itemsize
        try:
            # With another stream cuBLAS goes back to memory of its own.
            self._library.set_stream(self._handle, int(stream.ptr))
            self._library.set_workspace(self._handle, self._space(stream), WORKSPACE)
            self._library.gemm_ex(
                self._handle, self._plain, self._plain, m, n, k, one, given, HALF, m, given, HALF, k, zero, taken, HALF,
                m, self._single, self._algorithm,
            )  # fmt: skip
        except self._library.cuBLASError as error:
            raise GpuError(f"a matrix product of cuBLAS has failed: {error}") from error

    def close(self) -> None:
        """Give handle and memory back."""
        self._library.destroy(self._handle)
        self.forget_all()
        del self._room


class ProductLaunch(NamedTuple):
    """What a launch says of a kernel, and its compiler."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    """Registers of a thread."""
    shared_bytes: int
    """Static and dynamic shared memory of a block."""

    @property
    def threads(self) -> int:
        """Threads of the whole grid."""
        x, y, z = self.grid
        a, b, c = self.block
        return x * y * z * a * b * c


def shape_of(launch: Callable[[Any], None], stream: Any) -> ProductLaunch:
    """The shape of what is launched; of several kernels that with most threads.

    Args:
        launch: into a stream, at least one kernel; what it needs is loaded already.
        stream: of CuPy, empty.

    Raises:
        GpuError: the driver does not tell.
    """
    from cuda.bindings import driver

    mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    _checked(driver.cuStreamBeginCapture(int(stream.ptr), mode))
    launch(stream)
    (graph,) = _checked(driver.cuStreamEndCapture(int(stream.ptr)))
    try:
        _, count = _checked(driver.cuGraphGetNodes(graph))
        nodes, _ = _checked(driver.cuGraphGetNodes(graph, count))
        kernel = driver.CUgraphNodeType.CU_GRAPH_NODE_TYPE_KERNEL
        found = [_shape(driver, node) for node in nodes if _checked(driver.cuGraphNodeGetType(node)) == [kernel]]
    finally:
        driver.cuGraphDestroy(graph)
    if not found:
        raise GpuError("a library launched no kernel")
    return max(found, key=lambda shape: shape.threads)


def _shape(driver: Any, node: Any) -> ProductLaunch:
    """The shape of a kernel in a graph."""
    (params,) = _checked(driver.cuGraphKernelNodeGetParams(node))
    function = params.func
    if not int(function):  # It was loaded without a context.
        (function,) = _checked(driver.cuKernelGetFunction(params.kern))

    attribute = driver.CUfunction_attribute
    (registers,) = _checked(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, function))
    (static,) = _checked(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function))
    return ProductLaunch(
        grid=(int(params.gridDimX), int(params.gridDimY), int(params.gridDimZ)),
        block=(int(params.blockDimX), int(params.blockDimY), int(params.blockDimZ)),
        registers=int(registers),
        shared_bytes=int(static) + int(params.sharedMemBytes),
    )


def _checked(answer: tuple[Any, ...]) -> list[Any]:
    """What a call of the driver returns behind its status.

    Raises:
        GpuError: it has failed.
    """
    status, *values = answer
    if status != 0:
        raise GpuError(f"the driver does not tell the shape of a library's kernel: {status}")
    return values

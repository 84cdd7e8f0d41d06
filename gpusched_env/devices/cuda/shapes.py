"""Shapes of the kernels that a library launches: they are read from a graph that a launch is captured into, so that
nothing runs and no profiler is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from gpusched_env.errors import GpuError


class Shape(NamedTuple):
    """What a launch says of a kernel, and its compiler."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    registers: int
    """A thread."""
    shared_bytes: int
    """Static and dynamic, a block."""

    @property
    def threads(self) -> int:
        """Of the whole grid."""
        x, y, z = self.grid
        a, b, c = self.block
        return x * y * z * a * b * c


def shape_of(launch: Callable[[Any], None], stream: Any) -> Shape:
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


def _shape(driver: Any, node: Any) -> Shape:
    """Of a kernel in a graph."""
    (params,) = _checked(driver.cuGraphKernelNodeGetParams(node))
    function = params.func
    if not int(function):  # It was loaded without a context.
        (function,) = _checked(driver.cuKernelGetFunction(params.kern))

    attribute = driver.CUfunction_attribute
    (registers,) = _checked(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_NUM_REGS, function))
    (static,) = _checked(driver.cuFuncGetAttribute(attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function))
    return Shape(
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

"""Functions of the driver and of the C library, for compiled code that calls them itself: 40 us of Python a launch are
more than most kernels take."""

from __future__ import annotations

import ctypes
import enum
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import called
from gpusched_env.devices.compiled.intrinsics import call_c
from gpusched_env.errors import GpuError

Ints = NDArray[np.int64]

LIBRARY: Final = "libcuda.so.1"
MONOTONIC: Final = 1
"""``CLOCK_MONOTONIC``, which ``time.perf_counter_ns`` reads on Linux."""
NS_PER_S: Final = 1_000_000_000
SUCCESS, NOT_READY = 0, 600
"""``CUDA_SUCCESS`` and ``CUDA_ERROR_NOT_READY``."""


class Function(enum.IntEnum):
    """Rows of the addresses that :func:`functions` gives."""

    LAUNCH_KERNEL = 0
    LAUNCH_GRAPH = 1
    RECORD_EVENT = 2
    WAIT_EVENT = 3
    QUERY_STREAM = 4
    CLOCK = 5


NAMES: Final = ("cuLaunchKernel", "cuGraphLaunch", "cuEventRecord", "cuStreamWaitEvent", "cuStreamQuery")


def functions() -> Ints:
    """Addresses, by :class:`Function`.

    Raises:
        GpuError: there is no driver, or an older one.
    """
    try:
        driver, library = ctypes.CDLL(LIBRARY), ctypes.CDLL(None)
        found = [getattr(driver, name) for name in NAMES] + [library.clock_gettime]
    except (OSError, AttributeError) as error:
        raise GpuError(f"the driver cannot be called: {error}") from error
    return np.array([ctypes.cast(each, ctypes.c_void_p).value for each in found], np.int64)


@called
def launch_kernel(functions, call, stream):
    """``cuLaunchKernel``; ``call``: function, blocks, threads, bytes of shared memory, address of its parameters."""
    shape = (call[1], 1, 1, call[2], 1, 1, call[3])
    return call_c(functions[Function.LAUNCH_KERNEL], (call[0], *shape, stream, call[4], 0))


@called
def launch_graph(functions, graph, stream):
    """``cuGraphLaunch``."""
    return call_c(functions[Function.LAUNCH_GRAPH], (graph, stream))


@called
def record_event(functions, event, stream):
    """``cuEventRecord``."""
    return call_c(functions[Function.RECORD_EVENT], (event, stream))


@called
def wait_event(functions, stream, event):
    """``cuStreamWaitEvent``."""
    return call_c(functions[Function.WAIT_EVENT], (stream, event, 0))


@called
def query_stream(functions, stream):
    """``cuStreamQuery``."""
    return call_c(functions[Function.QUERY_STREAM], (stream,))


@called
def host_ns(functions, timespec, address):
    """The host's clock, nanoseconds; ``timespec``: ``(2,)``, written, and its ``address``."""
    call_c(functions[Function.CLOCK], (MONOTONIC, address))
    return timespec[0] * NS_PER_S + timespec[1]

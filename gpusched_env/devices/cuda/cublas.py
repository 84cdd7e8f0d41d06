"""Matrix products of cuBLAS in a stream of one's choice, also in one whose work is captured for a graph.

CuPy's own calls refuse the latter, so cuBLAS is called directly. A stream gets memory for cuBLAS to work in beforehand,
a piece of its own: nothing is allocated in a capture, and products that run side by side do not share any.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import numpy as np

from gpusched_env.errors import GpuError, InputError

STREAMS: Final = 4096
"""With products in them, at a time: those of a problem's queues, and of the branches of its graphs."""
WORKSPACE: Final = 16 * 1024
"""Bytes for each stream: as few as cuBLAS takes, so that a product is one kernel, not several parts and their sum."""
HALF: Final = 2
"""``CUDA_R_16F``."""
COMPUTE_SINGLE: Final = 68
"""``CUBLAS_COMPUTE_32F``."""
PLAIN, DEFAULT_ALGORITHM = 0, -1
"""``CUBLAS_OP_N`` and ``CUBLAS_GEMM_DEFAULT``."""
ARGUMENTS: Final[dict[str, str]] = {
    "cublasCreate_v2": "p",
    "cublasDestroy_v2": "p",
    "cublasGetVersion_v2": "pp",
    "cublasSetStream_v2": "pp",
    "cublasSetWorkspace_v2": "ppz",
    "cublasGemmEx": "piiiiippiipiippiiii",
}
"""Of the functions that are called: ``p`` a pointer, ``i`` an int, ``z`` a size."""
TYPES: Final = {"p": ctypes.c_void_p, "i": ctypes.c_int, "z": ctypes.c_size_t}


def library() -> Any:
    """cuBLAS as the system's loader knows it: the one that CuPy has loaded, if it has.

    Raises:
        InputError: there is none.
    """
    try:
        from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib
    except ImportError:
        raise InputError("a real GPU needs cuda-core and CuPy: install the extra, gpusched-env[gpu]") from None
    try:
        return ctypes.CDLL(str(load_nvidia_dynamic_lib("cublas").abs_path))
    except (DynamicLibNotFoundError, OSError) as error:
        raise InputError(f"library kernels need cuBLAS: {error}") from error


class Cublas:
    """cuBLAS on the GPU in use."""

    def __init__(self, cupy: Any) -> None:
        self._library = library()
        for name, given in ARGUMENTS.items():
            getattr(self._library, name).argtypes = [TYPES[one] for one in given]
        self._handle = ctypes.c_void_p()
        self._done("cublasCreate_v2", ctypes.byref(self._handle))
        version = ctypes.c_int()
        self._done("cublasGetVersion_v2", self._handle, ctypes.byref(version))
        self.version = version.value
        self._one, self._zero = ctypes.c_float(1.0), ctypes.c_float(0.0)
        self._room = cupy.zeros(STREAMS * WORKSPACE, np.uint8)
        self.forget_all()

    def _done(self, name: str, *given: Any) -> None:
        """Call a function.

        Raises:
            GpuError: it has failed.
        """
        if status := getattr(self._library, name)(*given):
            raise GpuError(f"{name} of cuBLAS has failed with status {status}")

    def forget_all(self) -> None:
        """Take the memory of all streams back, in which nothing is left to do."""
        self._spaces: dict[int, tuple[Any, int]] = {}
        """By handle of a stream: the stream, so that no other gets its handle, and the address of its memory."""
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
        """
        # With another stream cuBLAS goes back to memory of its own.
        self._done("cublasSetStream_v2", self._handle, stream.ptr)
        self._done("cublasSetWorkspace_v2", self._handle, self._space(stream), WORKSPACE)
        self._done(
            "cublasGemmEx", self._handle, PLAIN, PLAIN, m, n, k, ctypes.byref(self._one), given, HALF, m, given, HALF,
            k, ctypes.byref(self._zero), taken, HALF, m, COMPUTE_SINGLE, DEFAULT_ALGORITHM,
        )  # fmt: skip

    def close(self) -> None:
        """Give handle and memory back."""
        self._done("cublasDestroy_v2", self._handle)
        self.forget_all()
        del self._room

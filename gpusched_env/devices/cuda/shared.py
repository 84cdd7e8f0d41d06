"""Memory of the host that kernels read and write."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def shared_numbers(cupy: Any, count: int) -> tuple[NDArray[np.uint64], int]:
    """Zeros of 8 bytes, and the address that they have on both sides."""
    memory = cupy.cuda.alloc_pinned_memory(8 * count)
    array = np.frombuffer(memory, np.uint64, count)
    array[:] = 0
    return array, int(memory.ptr)

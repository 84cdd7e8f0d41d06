"""Copies of the recorded sizes, in memory of nobody."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusched_env.devices.cuda.shared import shared_numbers
from gpusched_env.scenarios.program import HostOp, NodeOp
from gpusched_env.workload.workload import OpKind


class CopyBuffers:
    """Buffers for the copies of a problem."""

    def __init__(self, cupy: Any, most_bytes: int) -> None:
        """``most_bytes``: of one copy."""
        self._runtime = cupy.cuda.runtime
        self._host, self._host_at = shared_numbers(cupy, -(-max(1, most_bytes) // 8))
        self._here, self._there = (cupy.zeros(max(1, most_bytes), np.uint8) for _ in range(2))

    def start(self, op: HostOp | NodeOp, stream: Any) -> None:
        """Put a copy or memset into a stream."""
        runtime, size = self._runtime, max(1, op.bytes)
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

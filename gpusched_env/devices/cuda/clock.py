"""Two clocks in one time: the host's, and the GPU's, in which kernels report."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np

from gpusched_env.devices.cuda.launching import Call, Launcher, call
from gpusched_env.devices.cuda.shared import shared_numbers
from gpusched_env.errors import GpuError

ANSWERS: Final = 64
"""How often the clocks are compared at a start; the quickest answer counts."""
ANSWER_S: Final = 10.0
"""An answer that takes longer does not come."""


class HostClock:
    """Time since a start, by the host's clock."""

    def __init__(self, cupy: Any, launcher: Launcher) -> None:
        self._cp, self._launcher = cupy, launcher
        self._words, at = shared_numbers(cupy, 2)
        self._flag = self._words.view(np.uint32)
        self._places = [at, at + 8]
        self.zero_ns = 0
        """Time 0, by the host's clock."""
        self.ahead_ns = 0
        """How far the GPU's clock is ahead of the host's."""

    def start(self) -> None:
        """Compare the clocks, and begin with time 0."""
        self.ahead_ns = self.compare()
        self.zero_ns = time.perf_counter_ns()

    def now_ps(self) -> int:
        """Time since the start, picoseconds."""
        return (time.perf_counter_ns() - self.zero_ns) * 1000

    def ps(self, gpu_ns: Any) -> Any:
        """Times of the GPU's clock, a number or an array, in picoseconds since the start; 0 before it."""
        since_ns = gpu_ns - self.ahead_ns - self.zero_ns
        return np.maximum(since_ns, 0) * 1000 if isinstance(since_ns, np.ndarray) else max(0, since_ns) * 1000

    def compare(self) -> int:
        """How far the GPU's clock is ahead of the host's, ns: in the middle of the quickest question and answer."""
        stream = self.hold(ANSWERS)
        best, ahead = 1 << 62, 0
        for number in range(1, ANSWERS + 1):
            self._words[1] = 0
            asked = time.perf_counter_ns()
            self._flag[0] = number
            while not self._words[1]:
                if time.perf_counter_ns() - asked > ANSWER_S * 1e9:
                    raise GpuError(f"the GPU does not see memory of the host: no answer within {ANSWER_S:g} s")
            answered = time.perf_counter_ns()
            if answered - asked < best:
                best, ahead = answered - asked, int(self._words[1]) - (asked + answered) // 2
        stream.synchronize()
        return ahead

    def hold(self, times: int = 1) -> Any:
        """A stream whose work waits behind a kernel, which answers with its time when the flag is raised, so often."""
        self._flag[0] = self._words[1] = 0
        stream = self._cp.cuda.Stream(non_blocking=True)
        gate: Call = call(self._launcher.answer, 1, 1, 0, [*self._places, times])
        self._launcher.launch(gate, stream.ptr)
        return stream

    def release(self) -> None:
        """Raise the flag for the first time."""
        self._flag[0] = 1

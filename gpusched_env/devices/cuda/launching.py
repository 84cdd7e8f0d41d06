"""Launching kernels of ``synthetic.cu`` with as little host time as can be, and the two clocks in which host and GPU
tell time.
"""

from __future__ import annotations

import dataclasses
import time
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.devices.cuda.fitting import StandIn
from gpusched_env.devices.cuda.kernels import cubin, shared_numbers, values_for
from gpusched_env.errors import GpuError

LINES: Final = 1 << 26
"""Lines of 16 bytes in the buffer that kernels load from: a gigabyte, so that no cache holds what a launch reads."""
SEED, ENDED, REPORT, BLOCKS, RECALL = 3, 4, 5, 8, 9
"""Words of ``Arguments`` in ``synthetic.cu`` that differ from launch to launch."""
SHARED_BY_DEFAULT: Final = 48 * 1024
MAX_DYNAMIC_SHARED: Final = 8
"""The number of ``CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES``."""


@dataclasses.dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A kernel with the parameters that it is launched with."""

    function: int
    """Handle of the driver for its function."""
    blocks: int
    threads: int
    shared_bytes: int
    words: NDArray[np.uint64]
    """Parameters of the kernel; read when it is launched."""
    places: NDArray[np.uint64]
    """Address of each parameter."""
    at: int
    """Address of :attr:`places`."""


def call(function: int, blocks: int, threads: int, shared_bytes: int, words: list[int], *, one: bool = False) -> Call:
    """A kernel ready for launches.

    Args:
        function: handle of the driver.
        blocks, threads, shared_bytes: its shape.
        words: of 8 bytes, its parameters.
        one: the words are one parameter, a structure; otherwise each is one.
    """
    given = np.array(words, np.uint64)
    first = given.ctypes.data
    places = np.array([first] if one else [first + 8 * n for n in range(len(words))], np.uint64)
    return Call(function, blocks, threads, shared_bytes, given, places, places.ctypes.data)


class Launcher:
    """The kernels of ``synthetic.cu`` on one GPU."""

    def __init__(self, cupy: Any, arch: str) -> None:
        """
        Args:
            cupy: the module.
            arch: ``sm_90`` for Hopper.
        """
        self._cp = cupy
        self._driver = cupy.cuda.driver
        self._arch = arch
        self._modules: dict[tuple[int, int], Any] = {}
        self._functions: dict[tuple[int, int], Any] = {}
        self._calls: dict[StandIn, Call] = {}
        self._room: dict[int, int] = {}
        """Dynamic shared memory that a function may ask for, where it is more than by default."""
        self._buffer = cupy.zeros(LINES * 4, np.float32)
        self._sink = cupy.zeros(1, np.float32)
        self._seed = 0
        self.mark = self._others("mark")
        self.answer = self._others("answer")

    def _others(self, name: str) -> int:
        """Handle of a kernel of one thread."""
        return int(self._module(8, 1).get_function(name).ptr)

    def _module(self, values: int, chains: int) -> Any:
        """The machine code of ``synthetic.cu`` on the GPU."""
        if (values, chains) not in self._modules:
            module = self._modules[values, chains] = self._cp.cuda.Module()
            module.load(cubin(values, chains, self._arch))
        return self._modules[values, chains]

    def ready(self, stand: StandIn) -> Call:
        """A stand-in ready for launches; compiled and loaded the first time."""
        found = self._calls.get(stand)
        if found is None:
            found = self._calls[stand] = self._prepared(stand)
        return found

    def _prepared(self, stand: StandIn) -> Call:
        key = stand.registers, stand.chains
        if key not in self._functions:
            self._functions[key] = self._module(values_for(*key, self._arch), stand.chains).get_function("synthetic")
        function = int(self._functions[key].ptr)
        if stand.shared_bytes > self._room.get(function, SHARED_BY_DEFAULT):
            self._driver.funcSetAttribute(function, MAX_DYNAMIC_SHARED, stand.shared_bytes)
            self._room[function] = stand.shared_bytes
        words = [
            self._buffer.data.ptr,
            LINES,
            self._sink.data.ptr,
            0,
            0,
            0,
            stand.turns | stand.loads << 32,
            stand.extra,
            0,
            0,
        ]
        return call(function, stand.blocks, stand.threads, stand.shared_bytes, words, one=True)

    def stand_in(
        self, ready: Call, stream: int, ended: int, report: int, blocks: int = 0, *, recall: int = 0, only: int = -1
    ) -> int:
        """Launch a stand-in; returns its seed, which no other launch has.

        Args:
            ready: of :meth:`ready`.
            stream: handle.
            ended: address of a counter on the GPU, 0 now.
            report: address of its report in memory of the host; 0: it reports nothing.
            blocks: address of the record of its blocks on the GPU; 0: they are not recorded.
            recall: address of its ``Recall`` on the GPU; 0: it cannot be recalled.
            only: so many blocks; -1: all.
        """
        self._seed += 1
        words = ready.words
        words[SEED], words[ENDED], words[REPORT], words[BLOCKS] = self._seed, ended, report, blocks
        words[RECALL] = recall
        self.launch(ready, stream, only)
        return self._seed

    def launch(self, ready: Call, stream: int, only: int = -1) -> None:
        """Launch a kernel with the words that it has, of ``only`` so many blocks (-1: all)."""
        self._driver.launchKernel(
            ready.function,
            ready.blocks if only < 0 else only,
            1,
            1,
            ready.threads,
            1,
            1,
            ready.shared_bytes,
            stream,
            ready.at,
            0,
        )

    def close(self) -> None:
        """Give modules and memory back."""
        self._calls = {}
        self._functions = {}
        self._modules = {}
        del self._buffer, self._sink


ANSWERS: Final = 64
"""How often the clocks are compared at a start; the quickest answer counts."""
ANSWER_S: Final = 10.0
"""Seconds after which an answer does not come any more."""


class HostClock:
    """Time since a start, by the host's clock."""

    def __init__(self, cupy: Any, launcher: Launcher) -> None:
        self._cp, self._launcher = cupy, launcher
        self._words, at = shared_numbers(cupy, 2)
        self._flag = self._words.view(np.uint32)
        self._places = [at, at + 8]
        self.zero_ns = 0
        """The host's clock at time 0."""
        self.ahead_ns = 0
        """How far the GPU's clock is ahead of the host's."""

    def start(self) -> None:
        """Compare the clocks, and begin at time 0."""
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

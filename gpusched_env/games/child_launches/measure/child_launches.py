"""What launches from the device cost: the calling warp's time, when children start, and how many run at once; and what
happens to more launches than the pool of pending ones has room for.

Each such try is a process of its own, as it may never end.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.measure.gpu import (
    DEFAULT_POOL,
    LARGE_POOL,
    REPETITIONS,
    Burst,
    LaunchCallTime,
    MeasuringGpu,
    Overflow,
    Pool,
)
from gpusched_env.hardware.occupancy import WARP_THREADS

POOLS: Final = (DEFAULT_POOL, 1 << 16, LARGE_POOL)
"""Ascending: a program that shrank its pool and then asked for more launches than it held was seen to hang."""
_LATER_CALLS: Final = 7
_SPIN_US: Final = 200.0
"""Long against the calls of a burst, so that children stay."""


@dataclass(frozen=True, kw_only=True)
class LaunchPattern:
    """The warps that launch, and the children that they launch."""

    warps: int = 1
    block_warps: int = 1
    rounds: int = 1
    lanes: int = WARP_THREADS
    child_blocks: int = 1
    child_threads: int = WARP_THREADS
    spin_us: float = 0.0

    @property
    def children(self) -> int:
        """Number of launches in all."""
        return self.warps * self.rounds * self.lanes


MANY_ROUNDS: Final = tuple(LaunchPattern(rounds=1 << power) for power in range(12))
"""32 to 65,536 children from one warp."""
MANY_WARPS: Final = tuple(
    LaunchPattern(warps=warps, block_warps=block_warps)
    for block_warps in (1, 8)
    for warps in (8, 32, 64, 128, 256, 512, 1024, 2048)
)
"""256 to 65,536 children from as many threads."""
CHILD_SHAPES: Final = tuple(
    LaunchPattern(warps=128, child_blocks=blocks, child_threads=threads)
    for blocks, threads in ((1, 64), (1, 256), (1, 1024), (4, 32), (16, 32), (8, 128))
)
LONG_CHILDREN: Final = tuple(
    LaunchPattern(warps=32, child_blocks=blocks, child_threads=threads, spin_us=_SPIN_US)
    for blocks, threads in ((1, 32), (1, 1024), (8, 128))
)


@dataclass(frozen=True, eq=False)
class Times:
    """Times of one kernel, ns from the first warp's start; of children only those that ran."""

    call: NDArray[np.int64]
    """(warps, rounds) how long."""
    cycles: NDArray[np.int64]
    """(warps, rounds) the same in cycles of the SM."""
    issued: int
    """When the last call returned: each warp's calls after its start."""
    start: NDArray[np.int64]
    """(children that ran,) times of their starts, ascending."""
    end: NDArray[np.int64]
    """(children that ran,) times of their ends, ascending."""
    errors: Counter[int]
    """Calls by error code, successes left out."""


class LaunchingKernel:
    """The kernel that launches."""

    def __init__(self, gpu: MeasuringGpu) -> None:
        self._gpu = gpu
        self._kernel = gpu.kernels(__package__, "child_launches.cu").get_function("launch")

    def run(self, shape: LaunchPattern) -> Times:
        """Run the kernel once."""
        calls = (shape.warps, shape.rounds)
        begin, call, cycles = (self._gpu.array(np.zeros(of, np.int64)) for of in (shape.warps, calls, calls))
        start, end = (self._gpu.array(np.full(shape.children, -1)) for _ in range(2))
        error = self._gpu.array(np.zeros(shape.children, np.int32))
        numbers = map(np.int32, (shape.lanes, shape.rounds, shape.child_blocks, shape.child_threads))
        self._kernel(
            (shape.warps // shape.block_warps,),
            (shape.block_warps * WARP_THREADS,),
            (begin, call, cycles, start, end, error, *numbers, np.int64(1e3 * shape.spin_us)),
        )
        zero = int(begin.min())
        started = np.sort(start.get())
        ran = int((started >= 0).sum())
        errors = Counter(error.get().tolist())
        del errors[0]
        issued = begin.get() + call.get().sum(axis=1)
        return Times(
            call.get(),
            cycles.get(),
            int(issued.max()) - zero,
            started[shape.children - ran :] - zero,
            np.sort(end.get())[shape.children - ran :] - zero,
            errors,
        )

    def repeated(self, shape: LaunchPattern) -> list[Times]:
        """Runs of the kernel after one that is not counted."""
        return [self.run(shape) for _ in range(1 + REPETITIONS)][1:]

    def call(self, pool: int, lanes: int) -> LaunchCallTime:
        """Calls of one warp."""
        runs = self.repeated(LaunchPattern(lanes=lanes, rounds=1 + _LATER_CALLS))
        return LaunchCallTime(
            pool=pool,
            lanes=lanes,
            first_ns=_median([run.call[0, 0] for run in runs]),
            first_cycles=_median([run.cycles[0, 0] for run in runs]),
            later_ns=_median([run.call[0, 1:] for run in runs]),
            later_cycles=_median([run.cycles[0, 1:] for run in runs]),
        )

    def burst(self, pool: int, shape: LaunchPattern) -> Burst:
        """Many launches at once."""
        runs = self.repeated(shape)
        marks = [1, *(shape.children * quarter // 4 for quarter in (1, 2, 3, 4))]
        return Burst(
            pool=pool,
            warps=shape.warps,
            block_warps=shape.block_warps,
            rounds=shape.rounds,
            child_blocks=shape.child_blocks,
            child_threads=shape.child_threads,
            spin_us=shape.spin_us,
            children=shape.children,
            call_us=_median_us([run.call for run in runs]),
            longest_call_us=_median_us([run.call.max() for run in runs]),
            issued_us=_median_us([run.issued for run in runs]),
            started_us={mark: _median_us([run.start[mark - 1] for run in runs]) for mark in marks},
            ended_us=_median_us([run.end[-1] for run in runs]),
            resident=int(_median([most_at_once(run.start, run.end) for run in runs])),
        )


def _median(values: Any) -> float:
    return round(float(np.median(values)), 4)


def _median_us(values_ns: Any) -> float:
    return _median(np.asarray(values_ns) / 1e3)


def most_at_once(start: NDArray[np.int64], end: NDArray[np.int64]) -> int:
    """The most of the intervals that overlap; both (intervals,) ascending. One that ends makes room at once."""
    return int((np.arange(1, len(start) + 1) - np.searchsorted(end, start, side="right")).max(initial=0))


def measured(gpu: MeasuringGpu) -> Iterator[LaunchCallTime | Burst | Pool]:
    """All of it, with room for every launch."""
    launcher = LaunchingKernel(gpu)
    for pool in POOLS:
        yield gpu.set_pool(pool)
        for lanes in range(1, WARP_THREADS + 1):
            yield launcher.call(pool, lanes)
        yield launcher.burst(pool, LaunchPattern(warps=32))
    for shape in (*MANY_ROUNDS, *MANY_WARPS, *CHILD_SHAPES, *LONG_CHILDREN):
        yield launcher.burst(LARGE_POOL, shape)


PATIENCE_S: Final = 15.0
"""Seconds after which a try counts as hung; with room for all, the slowest takes a tenth of a second."""
_LARGER: Final = 4096
_LONG_US: Final = 200.0
"""Length of a child: far longer than it takes to launch as many as the pool holds."""
TRIES: Final = (
    *((DEFAULT_POOL, LaunchPattern(warps=warps, spin_us=spin)) for warps in (64, 65, 128) for spin in (0.0, _LONG_US)),
    *((DEFAULT_POOL, LaunchPattern(rounds=128, spin_us=spin)) for spin in (0.0, _LONG_US)),
    *((_LARGER, LaunchPattern(warps=warps, spin_us=_LONG_US)) for warps in (128, 129)),
)
"""Bursts that fit exactly, that are one warp too large and twice too large, and calls of one warp."""


def measured_overflow() -> Iterator[Overflow]:
    """All tries, side by side."""
    running = [(pool, shape, _started(pool, shape)) for pool, shape in TRIES]
    deadline = time.monotonic() + PATIENCE_S
    for pool, shape, process in running:
        try:
            output, errors = process.communicate(timeout=max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            yield _overflow(pool, shape, "hung")
            continue
        if process.returncode:
            yield _overflow(pool, shape, errors.strip().splitlines()[-1])
        else:
            yield msgspec.json.decode(output, type=Overflow)


def _started(pool: int, shape: LaunchPattern) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", __name__, msgspec.json.encode((pool, shape)).decode()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _overflow(
    pool: int, shape: LaunchPattern, outcome: str, ran: int = 0, refused: dict[int, int] | None = None
) -> Overflow:
    return Overflow(
        pool=pool,
        warps=shape.warps,
        rounds=shape.rounds,
        spin_us=shape.spin_us,
        requested=shape.children,
        outcome=outcome,
        ran=ran,
        refused=refused or {},
    )


def _try(pool: int, shape: LaunchPattern) -> Overflow:
    gpu = MeasuringGpu()
    if pool != DEFAULT_POOL:
        gpu.set_pool(pool)
    times = LaunchingKernel(gpu).run(shape)
    return _overflow(pool, shape, "ended", len(times.start), dict(times.errors))


if __name__ == "__main__":
    sys.stdout.write(
        msgspec.json.encode(_try(*msgspec.json.decode(sys.argv[1], type=tuple[int, LaunchPattern]))).decode()
    )

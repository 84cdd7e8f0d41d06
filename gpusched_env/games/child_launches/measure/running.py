"""Applications on the GPU: flat, with child launches at thresholds, and warps of threads of equal work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from gpusched_env.experiments.measure.gpu import LARGE_POOL, MeasuringGpu, struct
from gpusched_env.experiments.measure.recording import ApplicationTime, Input, Pool, SerialTime
from gpusched_env.games.child_launches.measure.applications import Application
from gpusched_env.hardware.occupancy import WARP_THREADS

SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 0.9, 1.0)
"""Of the work that children do, to sweep thresholds over."""
CHILD_BLOCKS: Final = (32, 64)
NEVER: Final = np.iinfo(np.int32).max
"""A threshold above all work."""
WARPS: Final = (1, 132, 264, 528, 1056, 2112, 4224, 8448)
"""Of kernels of equal threads: one warp alone, then 1 to 64 an SM of 132."""
_RESIDENT_BLOCKS: Final = 32 * 132
_SIMILAR: Final = 1024
"""Threads nearest to the median work, of which those of equal work are drawn."""


class WrongResult(RuntimeError):
    """The GPU did not compute what the CPU did."""


class ApplicationOnGpu:
    """An application whose input is on the GPU."""

    def __init__(self, gpu: MeasuringGpu, application: Application) -> None:
        self.application = application
        self._gpu = gpu
        self._module = gpu.kernels(__package__, "applications.cu")
        self._result = gpu.array(application.blank)
        self._blank = gpu.array(application.blank)
        self._fields = {
            name: value if isinstance(value, int) else gpu.array(value) for name, value in application.fields.items()
        }
        self._order = [gpu.array(order) for order in application.order]
        self._refused = gpu.array(np.zeros(1, np.int32))

    def input(self, seed: int) -> Input:
        """What it is."""
        made, kernels = self.application.benchmark, self.application.benchmark.kernels
        names = [f"{self.application.source}_{form}" for form in ("flat", "launching")]
        return Input(
            application=made.name,
            seed=seed,
            kernels=len(kernels),
            threads=sum(len(kernel.threads.base) for kernel in kernels),
            work=made.total_work,
            turns=sum(map(self.application.turns, self.application.order)),
            block=kernels[0].block.threads,
            threshold=made.threshold,
            registers={name: self._module.get_function(name).num_regs for name in names},
        )

    def flat(self, pool: int) -> ApplicationTime:
        """Every thread loops."""
        return self._run("flat", pool)

    def launching(self, pool: int, threshold: int, child_block: int) -> ApplicationTime:
        """Threads of more work than ``threshold`` launch children."""
        return self._run("launching", pool, (threshold, child_block))

    def thresholds(self) -> list[int]:
        """The sweep, descending: nothing launched, shares of the work, the benchmark's own."""
        made = self.application.benchmark
        return sorted({NEVER, made.threshold, *map(made.threshold_of, SHARES)}, reverse=True)

    def _run(self, form: str, pool: int, launch: tuple[int, int] | None = None) -> ApplicationTime:
        made = self.application.benchmark
        threshold, child_block = launch or (None, None)
        more = () if launch is None else (*map(np.int32, launch), self._refused)
        kernel = self._module.get_function(f"{self.application.source}_{form}")
        block = made.kernels[0].block.threads
        launches = [
            (-(-len(order) // block), (self._struct(order), np.int32(len(order)), *more)) for order in self._order
        ]
        refused = []

        def prepare() -> None:
            refused.append(int(self._refused.get()[0]))
            self._refused.fill(0)
            self._result[...] = self._blank

        def work() -> None:
            for blocks, arguments in launches:
                kernel((blocks,), (block,), arguments)

        took = self._gpu.took(work, prepare)
        if not np.array_equal(self._result.get(), self.application.expected):
            raise WrongResult(f"{made.name}, {form}, threshold {threshold}, pool {pool}")
        above = NEVER if threshold is None else threshold
        return ApplicationTime(
            application=made.name,
            threshold=threshold,
            child_block=child_block,
            pool=pool,
            launches=made.child_launches(above),
            refused=int(np.median(refused[1:])),
            share=round(made.offload_share(above), 4),
            median_us=took.median_us,
            min_us=took.min_us,
            max_us=took.max_us,
        )

    def serial(self, warps: int) -> SerialTime:
        """Flat warps of threads with about the same work, on a result that is complete."""
        order = equal_threads(self.application, warps * WARP_THREADS)
        block = WARP_THREADS * -(-warps // _RESIDENT_BLOCKS)
        kernel = self._module.get_function(f"{self.application.source}_flat")
        drawn = self._gpu.array(order)
        self._result[...] = self._gpu.array(self.application.expected)
        grid = (warps * WARP_THREADS // block,)

        def took(threads: int) -> float:
            arguments = (self._struct(drawn), np.int32(threads))
            return self._gpu.took(lambda: kernel(grid, (block,), arguments)).median_us

        return SerialTime(
            application=self.application.benchmark.name,
            warps=warps,
            block=block,
            turns=self.application.turns(order),
            median_us=took(len(order)),
            empty_us=took(0),
        )

    def _struct(self, order: Any) -> NDArray[np.void]:
        return struct({**self._fields, "result": self._result, "order": order})


def equal_threads(application: Application, count: int) -> NDArray[np.int32]:
    """(count,) vertices, tuples or tiles with about as much work as the median iteration's, drawn with a fixed seed."""
    work = np.sort(application.work)
    middle = work[np.searchsorted(np.cumsum(work), work.sum() / 2)]
    nearest = np.argsort(np.abs(application.work - middle), kind="stable")[:_SIMILAR]
    return np.random.default_rng(0).choice(nearest, count).astype(np.int32)


def measured(
    gpu: MeasuringGpu, application: Application, seed: int
) -> Iterator[Input | Pool | ApplicationTime | SerialTime]:
    """Everything about one application."""
    there = ApplicationOnGpu(gpu, application)
    yield there.input(seed)
    yield gpu.set_pool(LARGE_POOL)
    yield there.flat(LARGE_POOL)
    for child_block in CHILD_BLOCKS:
        for threshold in there.thresholds():
            yield there.launching(LARGE_POOL, threshold, child_block)
    yield from map(there.serial, WARPS)

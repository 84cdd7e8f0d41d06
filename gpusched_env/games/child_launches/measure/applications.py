"""Three applications on a real GPU: their inputs and right results, and their times: flat, with child launches at
thresholds, and warps of threads of equal work.

Inputs are those of the benchmarks of the same names (:mod:`gpusched_env.games.child_launches.workload.suite`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.experiments.measure.gpu import (
    LARGE_POOL,
    ApplicationTime,
    Input,
    MeasuringGpu,
    Pool,
    SerialTime,
    struct,
)
from gpusched_env.games.child_launches.workload.graph_applications import breadth_first_search
from gpusched_env.games.child_launches.workload.launches import Benchmark, Counts
from gpusched_env.games.child_launches.workload.planes import Window, render
from gpusched_env.games.child_launches.workload.tables import Distribution, hash_join, keys
from gpusched_env.hardware.occupancy import WARP_THREADS
from gpusched_env.workload.graphs import Graph, citation, kronecker

Source = Literal["search", "join", "mandelbrot"]


@dataclass(frozen=True, eq=False)
class Application:
    """An application and its input."""

    source: Source
    """Which kernels of ``applications.cu`` run it."""
    benchmark: Benchmark
    """The same work as parent kernels, for the simulator."""
    fields: Mapping[str, NDArray[Any] | int]
    """Fields of the kernels' struct, in its order but for the last two: the result and the order of the threads."""
    order: tuple[NDArray[np.int32], ...]
    """What the threads of each kernel work on (vertices, tuples, tiles)."""
    blank: NDArray[np.int32]
    """The result before the first kernel."""
    expected: NDArray[np.int32]
    """The result after the last kernel."""
    work: Counts
    """Serial iterations of each vertex, tuple or tile."""
    items: Counts | None = None
    """(threads, items) iterations of each item, where they differ: a warp takes the longest of each item in turn."""

    def turns(self, order: NDArray[np.int32]) -> int:
        """Iterations of all warps of a kernel whose threads work on ``order`` and launch nothing: lanes go together."""
        padding = -len(order) % WARP_THREADS
        costs = self.work[order][:, None] if self.items is None else self.items[order]
        padded = np.concatenate([costs, np.zeros((padding, costs.shape[1]), costs.dtype)])
        return int(padded.reshape(-1, WARP_THREADS, costs.shape[1]).max(axis=1).sum())


def _narrow(values: NDArray[Any]) -> NDArray[np.int32]:
    return values.astype(np.int32)


def search(graph: Graph, source: int, name: str, threshold: int) -> Application:
    """Breadth-first search from ``source``, level by level."""
    found = breadth_first_search(graph, source)
    levels = range(len(found.kernels))
    return Application(
        "search",
        Benchmark(name, found.kernels, threshold),
        {"first": _narrow(graph.first), "neighbour": _narrow(graph.neighbour)},
        tuple(_narrow(np.flatnonzero(found.level == level)) for level in levels),
        blank=_narrow(np.where(found.level == 0, 0, -1)),
        expected=_narrow(found.level),
        work=graph.degree,
    )


def join(probing: Counts, building: Counts, buckets: int, sampled: int, name: str, threshold: int) -> Application:
    """Hash join that writes the number of each matching tuple of ``building``, by probing tuple."""
    bucket = building % buckets
    sizes = np.bincount(bucket, minlength=buckets)
    first = np.concatenate([[0], np.cumsum(sizes)])
    payload = np.argsort(bucket, kind="stable")
    # The buckets as rows of a graph: tuples are the neighbours of their bucket.
    joined = payload[Graph(first, payload).edges_of(probing % buckets)]
    work = sizes[probing % buckets]
    tuples = np.arange(len(probing), dtype=np.int32)
    return Application(
        "join",
        Benchmark(name, hash_join(probing, building, buckets, sampled), threshold),
        {
            "probing": _narrow(probing),
            "first": _narrow(first),
            "key": _narrow(building[payload]),
            "payload": _narrow(payload),
            "place": _narrow(np.cumsum(work) - work),
            "buckets": buckets,
        },
        tuple(part for part in (tuples[:sampled], tuples[sampled:]) if part.size),
        blank=np.full(len(joined), -1, np.int32),
        expected=_narrow(joined),
        work=work,
    )


def mandelbrot(window: Window, tiles: int, side: int, limit: int, name: str, threshold: int) -> Application:
    """The set over ``tiles`` × ``tiles`` tiles of ``side`` × ``side`` pixels; a tile's work is known beforehand."""
    kernels = render(window, tiles, (side, side), limit)
    requests = kernels[0].threads.requests
    assert requests is not None
    assert requests.children is not None
    iterations = requests.children.base
    across = window.width * np.linspace(-0.5, 0.5, tiles * side, endpoint=False)
    return Application(
        "mandelbrot",
        Benchmark(name, kernels, threshold),
        {
            "real": window.centre.real + across,
            "imaginary": window.centre.imag + across,
            "known_work": _narrow(requests.work),
            "tiles": tiles,
            "side": side,
            "limit": limit,
        },
        (np.arange(tiles**2, dtype=np.int32),),
        blank=np.zeros(len(iterations), np.int32),
        expected=_narrow(iterations),
        work=requests.work,
        items=iterations.reshape(tiles**2, side**2),
    )


def _search(graph: Callable[..., Graph], threshold: int, name: str, seed: int) -> Application:
    made = graph(seed=seed)
    return search(made, made.random_vertex(np.random.default_rng([seed, 2])), name, threshold)


def _join(kind: Distribution, sizes: tuple[int, int], threshold: int, name: str, seed: int) -> Application:
    rng = np.random.default_rng(seed)
    probing, building = (keys(kind, size, 1 << 12, rng) for size in sizes)
    return join(probing, building, 1 << 12, sizes[0] // 64, name, threshold)


def _mandelbrot(threshold: int, name: str, seed: int) -> Application:
    shift = np.random.default_rng(seed).uniform(-0.0005, 0.0005, 2)
    window = Window(complex(-0.7436 + shift[0], 0.1318 + shift[1]), 0.01)
    return mandelbrot(window, 256, 16, 256, name, threshold)


_MAKERS: Final[dict[str, Callable[[str, int], Application]]] = {
    "BFS-citation": partial(_search, citation, 16),
    "BFS-graph500": partial(_search, kronecker, 32),
    "JOIN-uniform": partial(_join, "uniform", (7168, 1 << 18), 51),
    # Of fewer and more even lists than the benchmark.
    "JOIN-gaussian": partial(_join, "gaussian", (30_208, 1 << 15), 9),
    "Mandel": partial(_mandelbrot, 27_000),
}
APPLICATIONS: Final = tuple(_MAKERS)
"""Names of the applications with CUDA kernels."""


def application(name: str, seed: int = 0) -> Application:
    """The application ``name`` on its input.

    Raises:
        InputError: it has no CUDA kernels here.
    """
    if name not in _MAKERS:
        raise InputError(f"no CUDA kernels for {name!r}; {did_you_mean(name, APPLICATIONS)}")
    return _MAKERS[name](name, seed)


SHARES: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 0.9, 1.0)
"""Shares of the work that children do, to sweep thresholds over."""
CHILD_BLOCKS: Final = (32, 64)
NEVER: Final = np.iinfo(np.int32).max
"""A threshold above all work."""
WARPS: Final = (1, 132, 264, 528, 1056, 2112, 4224, 8448)
"""Numbers of warps of kernels of equal threads: one alone, then 1 to 64 an SM of 132."""
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
        """The application on its input, as a row of the recording."""
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
        """The time of the flat kernels: every thread loops."""
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


def measured_application(
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

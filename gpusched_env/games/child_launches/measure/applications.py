"""Three applications as a GPU gets them: arrays of the input, threads of each kernel, and the right result.

Inputs are those of the benchmarks of the same names (:mod:`gpusched_env.games.child_launches.workload.suite`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.child_launches.workload.bfs import breadth_first_search
from gpusched_env.games.child_launches.workload.join import Distribution, hash_join, keys
from gpusched_env.games.child_launches.workload.launches import Benchmark, Counts
from gpusched_env.games.child_launches.workload.mandelbrot import Window, render
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
    """Of the kernels' struct, in its order but for the last two: the result and the order of the threads."""
    order: tuple[NDArray[np.int32], ...]
    """Of each kernel: what its threads work on (vertices, tuples, tiles)."""
    blank: NDArray[np.int32]
    """The result before the first kernel."""
    expected: NDArray[np.int32]
    """And after the last."""
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
    "JOIN-gaussian": partial(_join, "gaussian", (30_208, 1 << 15), 9),
    "Mandel": partial(_mandelbrot, 27_000),
}
APPLICATIONS: Final = tuple(_MAKERS)
"""Their names."""


def application(name: str, seed: int = 0) -> Application:
    """The application ``name`` on its input.

    Raises:
        InputError: it has no CUDA kernels here.
    """
    if name not in _MAKERS:
        raise InputError(f"no CUDA kernels for {name!r}; {did_you_mean(name, APPLICATIONS)}")
    return _MAKERS[name](name, seed)

"""Random applications on random inputs, to train on: the families of the benchmarks, never their inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np

from gpusched_env.games.child_launches.workload.alignment import Species, align_species
from gpusched_env.games.child_launches.workload.bfs import breadth_first_search
from gpusched_env.games.child_launches.workload.colouring import colour_graph
from gpusched_env.games.child_launches.workload.join import Distribution, random_join
from gpusched_env.games.child_launches.workload.launches import Benchmark, Kernels
from gpusched_env.games.child_launches.workload.mandelbrot import Window, render
from gpusched_env.games.child_launches.workload.refinement import random_front, refine
from gpusched_env.games.child_launches.workload.sparse_matrix import multiply, random_pattern
from gpusched_env.games.child_launches.workload.sssp import random_weights, shortest_paths
from gpusched_env.workload.graphs import Graph, citation, kronecker

_VIEWS: Final = (-0.7436 + 0.1318j, -0.16 + 1.035j, -1.25 + 0.02j, 0.28 + 0.01j, -0.5 + 0j)
"""Centres of windows: most on the rim of the Mandelbrot set, one that shows all of it from afar."""


def _between(rng: np.random.Generator, low: float, high: float) -> int:
    """A whole number whose logarithm is uniform."""
    return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))


def _seed(rng: np.random.Generator) -> int:
    return int(rng.integers(1 << 32))


def _graph(rng: np.random.Generator) -> Graph:
    if rng.random() < 0.5:
        return kronecker(int(rng.integers(10, 15)), _between(rng, 8, 64), seed=_seed(rng))
    return citation(_between(rng, 4e3, 1e5), rng.uniform(4, 24), rng.uniform(0.8, 1.6), seed=_seed(rng))


def _bfs(rng: np.random.Generator) -> Kernels:
    graph = _graph(rng)
    return breadth_first_search(graph, graph.random_vertex(rng)).kernels


def _sssp(rng: np.random.Generator) -> Kernels:
    graph = _graph(rng)
    weights = random_weights(graph, _between(rng, 1, 10), seed=_seed(rng))
    return shortest_paths(graph, weights, graph.random_vertex(rng)).kernels


def _gc(rng: np.random.Generator) -> Kernels:
    hashes, fraction, own_work = int(rng.integers(4, 9)), rng.uniform(0.5, 0.85), _between(rng, 1, 512)
    return colour_graph(_graph(rng), hashes, fraction, own_work, seed=_seed(rng)).kernels


def _join(rng: np.random.Generator) -> Kernels:
    buckets = _between(rng, 256, 16384)
    building, probing = buckets * _between(rng, 8, 256), _between(rng, 2e3, 5e4)
    distribution: Distribution = "gaussian" if rng.random() < 0.5 else "uniform"
    sampled = probing // _between(rng, 16, 256) if rng.random() < 0.5 else 0
    return random_join(distribution, probing, building, buckets, sampled, seed=_seed(rng))


def _mandel(rng: np.random.Generator) -> Kernels:
    window = Window(complex(rng.choice(_VIEWS)), float(np.exp(rng.uniform(np.log(0.005), np.log(2)))))
    side = 4 * int(rng.integers(2, 5))
    return render(window, int(rng.integers(48, 129)), (side, side), _between(rng, 64, 512))


def _mm(rng: np.random.Generator) -> Kernels:
    pattern = random_pattern(
        _between(rng, 512, 4096), _between(rng, 512, 4096), rng.uniform(0.02, 0.2), seed=_seed(rng)
    )
    return multiply(pattern, _between(rng, 32, 512), int(rng.integers(1, 9)), rng.uniform(0, 0.2))


def _sa(rng: np.random.Generator) -> Kernels:
    species = Species(
        bases=_between(rng, 5e5, 4e6),
        gc_content=rng.uniform(0.3, 0.6),
        repeat_share=rng.uniform(0, 0.2),
        families=_between(rng, 5, 60),
        unit=_between(rng, 100, 400),
        divergence=rng.uniform(0, 0.05),
    )
    reads, section, seed_length = _between(rng, 512, 4096), _between(rng, 1, 8), int(rng.integers(8, 10))
    return align_species(species, reads, section, seed_length=seed_length, seed=_seed(rng))


def _amr(rng: np.random.Generator) -> Kernels:
    wrinkles, cells, ignitions = _seed(rng), int(rng.integers(64, 385)), int(rng.integers(0, 9))
    radii = np.sort(rng.uniform(0.04, 0.3, int(rng.integers(1, 5))))
    factor, levels = ((16, 2), (8, 2), (4, 3), (16, 1))[rng.integers(4)]
    fronts = [random_front(radius, seed=wrinkles) for radius in radii]
    return refine(fronts, cells, factor, levels, ignitions, seed=wrinkles)


_FAMILIES: Final[dict[str, Callable[[np.random.Generator], Kernels]]] = {
    "AMR": _amr,
    "BFS": _bfs,
    "GC": _gc,
    "JOIN": _join,
    "MM": _mm,
    "Mandel": _mandel,
    "SA": _sa,
    "SSSP": _sssp,
}


def random_benchmark(seed: int) -> Benchmark:
    """A random family, input and size (at most a fraction of the benchmarks' work); equal seeds give equal ones.

    Its threshold offloads a random share of the work, 30 to 98 % where the input allows it; something is launched.
    """
    rng = np.random.default_rng(seed)
    family = sorted(_FAMILIES)[rng.integers(len(_FAMILIES))]
    made = Benchmark(f"{family}-{seed}", _FAMILIES[family](rng), threshold=0)
    largest = int(made.request_work[-1])
    return replace(made, threshold=min(made.threshold_of(rng.uniform(0.3, 0.98)), largest - 1))

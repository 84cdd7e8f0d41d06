"""The thirteen benchmarks of SPAWN (Tang et al., HPCA 2017), and the second genome of its Figure 21.

The paper names applications and kinds of inputs, not sizes. Where its graphs are known, they are generated at full
size; else sizes are chosen so that the benchmark's own threshold offloads the share of the work that the paper's
bars imply with about the child kernels of its Figure 18. No speed-up was looked at. The same holds for
thresholds: each is the one that offloads that share. Registers a thread are assumptions, except BFS's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.workload.dynamic_parallelism.alignment import Species, align_species
from gpusched_env.workload.dynamic_parallelism.bfs import breadth_first_search
from gpusched_env.workload.dynamic_parallelism.colouring import colour_graph
from gpusched_env.workload.dynamic_parallelism.graphs import Graph, citation, kronecker
from gpusched_env.workload.dynamic_parallelism.join import random_join
from gpusched_env.workload.dynamic_parallelism.launches import Benchmark, Kernels
from gpusched_env.workload.dynamic_parallelism.mandelbrot import Window, render
from gpusched_env.workload.dynamic_parallelism.refinement import random_front, refine
from gpusched_env.workload.dynamic_parallelism.sparse_matrix import multiply, random_pattern
from gpusched_env.workload.dynamic_parallelism.sssp import random_weights, shortest_paths

# A. thaliana (135 Mb) and C. elegans (100 Mb) at 1:17, with about their shares of repeats. Tandem repeats of
# A. thaliana's centromeres are 178 bp long.
THALIANA: Final = Species(bases=8_000_000, repeat_share=0.13, families=20, unit=178, divergence=0.02)
ELEGANS: Final = Species(bases=6_000_000, repeat_share=0.17, families=30, unit=150, divergence=0.02)


def _bfs(graph: Callable[..., Graph], seed: int) -> Kernels:
    made = graph(seed=seed)
    return breadth_first_search(made, made.random_vertex(np.random.default_rng([seed, 2]))).kernels


def _sssp(graph: Callable[..., Graph], seed: int) -> Kernels:
    """The graphs have no weights of their own. With 1 and 2 nearly every vertex is relaxed once, as the paper's
    launches for graph500 say: 16,086 and 7,077, where 15.4 k and 6.9 k vertices have degrees above 32 and 128."""
    made = graph(seed=seed)
    return shortest_paths(
        made, random_weights(made, 2, seed=seed), made.random_vertex(np.random.default_rng([seed, 2]))
    ).kernels


def _colouring(graph: Callable[..., Graph], seed: int) -> Kernels:
    """Few rounds, as the paper's launches for graph500 say: about two for each vertex of high degree."""
    return colour_graph(graph(seed=seed), hashes=8, fraction=0.8, seed=seed).kernels


def _amr(seed: int) -> Kernels:
    """Four time steps of a growing flame on 512 × 512 cells, which leave 80 % of the work to two refinements by 16."""
    return refine([random_front(radius, seed=seed) for radius in (0.05, 0.07, 0.095, 0.12)], 512, 16, 2)


def _join_uniform(seed: int) -> Kernels:
    """With nearly equal work, 95 % of it lies in 94 % of the threads: 6,705 children make 7,168 threads. That is a
    single wave of the paper's GPU, at 27 % of its threads, which is the occupancy of its Figure 16."""
    return random_join("uniform", 7168, 1 << 20, 1 << 12, seed=seed)


def _join_gaussian(seed: int) -> Kernels:
    """With normal keys on both sides, 95 % of the work lies in 83 % of the threads."""
    return random_join("gaussian", 30_208, 1 << 20, 1 << 12, seed=seed)


def _mandel(seed: int) -> Kernels:
    """A part of the Seahorse valley with few points inside the set, so that a threshold can divide the work finely;
    65,536 tiles of one warp of pixels. The seed moves it by up to a twentieth of its width."""
    shift = np.random.default_rng(seed).uniform(-0.0005, 0.0005, 2)
    return render(Window(complex(-0.7436 + shift[0], 0.1318 + shift[1]), 0.01), 256, (4, 8), 512)


def _matrix(rows: int, seed: int) -> Kernels:
    """Independent nonzeros, one in ten: rows differ little, as do the paper's child blocks of MM-small (95 % of them
    within 10 % of the mean), so 89 % of the work lies in 88 % of the rows."""
    return multiply(random_pattern(rows, rows, 0.1, seed=seed), rows)


def _alignment(species: Species, seed: int) -> Kernels:
    """5,120 reads, eight a thread: an eighth of them from repeats, with nearly all candidate places."""
    return align_species(species, reads=5120, section=8, seed_length=14, seed=seed)


# The launches of SSSP and GC on the citation network are too few for the whole of it: 6,495 children with 53 % of the
# work and 2,258 with 40 % mean a quarter and an eighth of it (or runs cut short).
_MAKERS: Final[dict[str, tuple[int, Callable[[int], Kernels]]]] = {
    "AMR": (128, _amr),
    "BFS-citation": (16, partial(_bfs, citation)),
    "BFS-graph500": (32, partial(_bfs, kronecker)),
    "SSSP-citation": (16, partial(_sssp, partial(citation, 1 << 16))),
    "SSSP-graph500": (32, partial(_sssp, kronecker)),
    "JOIN-uniform": (231, _join_uniform),
    "JOIN-gaussian": (318, _join_gaussian),
    "Mandel": (4600, _mandel),
    "GC-citation": (25, partial(_colouring, partial(citation, 1 << 15))),
    "GC-graph500": (230, partial(_colouring, kronecker)),
    "MM-small": (103 * 1152, partial(_matrix, 1152)),
    "MM-large": (555 * 5824, partial(_matrix, 5824)),
    "SA-thaliana": (1600, partial(_alignment, THALIANA)),
    "SA-elegans": (1600, partial(_alignment, ELEGANS)),
}

BENCHMARKS: Final = tuple(_MAKERS)
"""Their names, as in the paper's Figure 15; SA-elegans is in Figure 21 alone."""


def benchmark(name: str, seed: int = 0) -> Benchmark:
    """The benchmark ``name`` on a random input of its kind; equal seeds give equal benchmarks.

    Raises:
        InputError: there is no such benchmark.
    """
    if name not in _MAKERS:
        raise InputError(f"no benchmark {name!r} of dynamic parallelism; {did_you_mean(name, BENCHMARKS)}")
    threshold, make = _MAKERS[name]
    return Benchmark(name, make(seed), threshold)

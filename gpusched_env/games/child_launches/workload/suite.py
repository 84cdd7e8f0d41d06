"""The thirteen benchmarks of SPAWN (Tang et al., HPCA 2017), and the second genome of its Figure 21; and random
applications of the same families to train on, never on their inputs.

The paper names applications and kinds of inputs, not sizes. Where its graphs are known, they are generated at full
size. Else sizes are chosen by what its figures show of the inputs' structure, never by a speed-up:

* The share of the work that the benchmark's own threshold offloads (bars of Figure 15 found again in Figure 5) and
  the child kernels that it launches (Figure 18).
* The warps of a child. Where 32 hardware queues bind, about 31 children run at once, so the occupancy with the own
  threshold (Figure 16) is 31 times a child's warps over the 832 of the GPU, and a little more for the parents.

Thresholds are those that offload the share. Registers a thread are assumptions, except those of BFS and AMR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from gpusched_env.errors import InputError, did_you_mean
from gpusched_env.games.child_launches.workload.graph_applications import (
    breadth_first_search,
    colour_graph,
    random_weights,
    shortest_paths,
)
from gpusched_env.games.child_launches.workload.launches import Benchmark, Kernels
from gpusched_env.games.child_launches.workload.planes import Window, ignite, random_front, refine, render
from gpusched_env.games.child_launches.workload.tables import (
    Distribution,
    Species,
    align_species,
    multiply,
    random_join,
    random_pattern,
)
from gpusched_env.workload.graphs import Graph, citation, kronecker

# A. thaliana (135 Mb, 36 % G and C) and C. elegans (100 Mb, 35.4 %) at 1:16, so that seeds of 9 letters have as many
# places as those of 11, BLAST's default, in all of the genome. Repeats are masked, as aligners do.
THALIANA: Final = Species(bases=8_437_500, gc_content=0.36)
ELEGANS: Final = Species(bases=6_250_000, gc_content=0.354)


def _bfs(graph: Callable[..., Graph], seed: int) -> Kernels:
    """A work list in order of discovery: in the time line of BFS-graph500 the first children start A × 32 + b cycles
    after the parents, so all lanes of a warp launch, where 4 in 10 vertices of the large level do.

    Vertices found twice would explain 24,444 launches where 15.4 k vertices are above the threshold. But if a warp's
    32 neighbours are looked at before any is marked, as that number asks, there are 126 k on the citation network
    (paper: 21,650), so each is listed once.
    """
    made = graph(seed=seed)
    return breadth_first_search(made, made.random_vertex(np.random.default_rng([seed, 2])), work_list=True).kernels


def _sssp(graph: Callable[..., Graph], seed: int) -> Kernels:
    """The graphs have no weights of their own. With 1 and 2 nearly every vertex is relaxed once, as the paper's
    launches for graph500 say: 16,086 and 7,077, where 15.4 k and 6.9 k vertices have degrees above 32 and 128."""
    made = graph(seed=seed)
    return shortest_paths(
        made, random_weights(made, 2, seed=seed), made.random_vertex(np.random.default_rng([seed, 2]))
    ).kernels


def _colouring(graph: Callable[..., Graph], seed: int) -> Kernels:
    """Few rounds, as the paper's launches for graph500 say: about two for each vertex of high degree.

    With many launches and with few the paper's occupancy is about 70 %: parents run most of the time, so they have
    work that they cannot hand over. It is taken to be a pass over a table of forbidden colours, of one size in the
    code: 256, the power of two above what first fit by descending degree takes (177 colours for graph500).
    The paper's shares are read as shares of the loops over neighbours.
    """
    return colour_graph(graph(seed=seed), hashes=8, fraction=0.8, own_work=256, seed=seed).kernels


def _amr(seed: int) -> Kernels:
    """A time step on 686 × 686 cells, made from launches and shares alone.

    Fewer than 50 launches have 4 % of the work in the paper, 19,625 have 80 %: a few heavy children and many light
    ones. The figures say no more of these, so they are as equal as chance makes them, and lie anywhere. Children of two
    warps (8 × 8 sub-cells) give the occupancy of 9 %. Cells that launch 64 children of 64 sub-cells take 4,160
    iterations, so 23 of them have the 4 %, and launch 1,472 more; 18,130 light ones take 96 ± 4 and have 76 %; 20 % are
    then left to 470 thousand cells. That sub-cells of the light ones take one or two iterations lets a threshold divide
    these, as the paper's do.

    With few launches the L2 cache hits 0.1 % (Figure 17): nothing is read twice, so there is one step.
    """
    return ignite(686, 8, deep=23, shallow=18_130, seed=seed)


def _join(
    probing: int, building: int, buckets: int, tuples_a_thread: int, deviation: float | None, seed: int
) -> Kernels:
    """Uniform keys, or normal ones of so large a ``deviation``; lists of 64 and 19 tuples in the mean make children of
    two to three warps (uniform; occupancy 7.4 %) and of one (Gaussian; 3.3 %).

    139 launches have 10 % of the work of the Gaussian join, 25,203 have 95 %, so a few lists are twenty times as long
    as the others: those at the ends, where keys go that lie outside. 139 of 30,208 probing tuples do at 2.83
    deviations, and have their 10 % if there are four times as many buckets as of the uniform join.

    With few launches the occupancy is 26.8 % (uniform), as of 7,168 threads, and no more with four times as many tuples
    (Gaussian), so a thread takes four there, with a stride of the whole grid, as in dragon_li.

    That a sample of one tuple in 64 is probed first is an inference from Figure 18 alone: SPAWN launches everything
    until its first child ends, and so it would launch nearly all of these threads, which start at once. It launches
    116 and 535 children, a 62nd and a 56th of the tuples.
    """
    kind: Distribution = "uniform" if deviation is None else "gaussian"
    spread = {} if deviation is None else {"deviation": deviation}
    return random_join(kind, probing, building, buckets, probing // 64, tuples_a_thread, seed=seed, **spread)


def _mandel(seed: int) -> Kernels:
    """A part of the Seahorse valley; the seed moves it by up to a twentieth of its width.

    31 children that fill the 208 block slots, as the occupancy says, have at least 7 warps: tiles of 16 × 16 pixels.
    Few tiles are all inside the set, where work is equal, so that a threshold can divide it from 20 % up, and heavy
    tiles differ little, as the launches with 28 and 78 % of the work say (9,894 and 28,171; here 8.7 k and 30.6 k).
    256 iterations at most fit these best among powers of two.
    """
    shift = np.random.default_rng(seed).uniform(-0.0005, 0.0005, 2)
    return render(Window(complex(-0.7436 + shift[0], 0.1318 + shift[1]), 0.01), 256, (16, 16), 256)


def _matrix(rows_a_thread: int, seed: int) -> Kernels:
    """1,024 threads with one or "a few" rows each: 1,024 and 5,120 launches (paper: 1,024 and 5,121) are all rows, so
    the 11 % that is not offloaded is the parents' own work.

    96 columns make three warps a child (occupancy 11.8 and 10.4 %). 410 nonzeros a row, independent ones, let 96 % of
    the children lie within 10 % of the mean (Figure 12: 95 % of MM-small's).
    """
    rows = 1024 * rows_a_thread
    return multiply(random_pattern(rows, 4096, 0.1, seed=seed), 96, rows_a_thread, own_share=0.11)


def _alignment(species: Species, seed: int) -> Kernels:
    """544 reads, one a thread, of which those with 98 % of the candidates launch about 488.

    Lists are as the composition of the genome makes them: 68 and 51 places in the mean (three and two warps; occupancy
    10 %), with a standard deviation of 0.85 in the logarithm.
    """
    return align_species(species, reads=544, section=1, seed=seed)


# The launches of SSSP and GC on the citation network are too few for the whole of it: 6,495 children with 53 % of the
# work and 2,258 with 40 % mean a quarter and an eighth of it (or runs cut short).
_MAKERS: Final[dict[str, tuple[int, Callable[[int], Kernels]]]] = {
    "AMR": (32, _amr),
    "BFS-citation": (16, partial(_bfs, citation)),
    "BFS-graph500": (32, partial(_bfs, kronecker)),
    "SSSP-citation": (16, partial(_sssp, partial(citation, 1 << 16))),
    "SSSP-graph500": (32, partial(_sssp, kronecker)),
    "JOIN-uniform": (51, partial(_join, 7168, 1 << 18, 1 << 12, 1, None)),
    "JOIN-gaussian": (10, partial(_join, 30_208, 3 << 16, 1 << 14, 4, 0.5 / 2.83)),
    "Mandel": (27_000, _mandel),
    "GC-citation": (25, partial(_colouring, partial(citation, 1 << 15))),
    "GC-graph500": (230, partial(_colouring, kronecker)),
    "MM-small": (0, partial(_matrix, 1)),
    "MM-large": (0, partial(_matrix, 5)),
    "SA-thaliana": (1700, partial(_alignment, THALIANA)),
    "SA-elegans": (1200, partial(_alignment, ELEGANS)),
}

BENCHMARKS: Final = tuple(_MAKERS)
"""Names of the benchmarks, as in the paper's Figure 15; SA-elegans is in Figure 21 alone."""


def benchmark(name: str, seed: int = 0) -> Benchmark:
    """The benchmark ``name`` on a random input of its kind; equal seeds give equal benchmarks.

    Raises:
        InputError: there is no such benchmark.
    """
    if name not in _MAKERS:
        raise InputError(f"no benchmark {name!r} of dynamic parallelism; {did_you_mean(name, BENCHMARKS)}")
    threshold, make = _MAKERS[name]
    return Benchmark(name, make(seed), threshold)


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


def _random_bfs(rng: np.random.Generator) -> Kernels:
    graph = _graph(rng)
    return breadth_first_search(graph, graph.random_vertex(rng)).kernels


def _random_sssp(rng: np.random.Generator) -> Kernels:
    graph = _graph(rng)
    weights = random_weights(graph, _between(rng, 1, 10), seed=_seed(rng))
    return shortest_paths(graph, weights, graph.random_vertex(rng)).kernels


def _gc(rng: np.random.Generator) -> Kernels:
    hashes, fraction, own_work = int(rng.integers(4, 9)), rng.uniform(0.5, 0.85), _between(rng, 1, 512)
    return colour_graph(_graph(rng), hashes, fraction, own_work, seed=_seed(rng)).kernels


def _random_join(rng: np.random.Generator) -> Kernels:
    buckets = _between(rng, 256, 16384)
    building, probing = buckets * _between(rng, 8, 256), _between(rng, 2e3, 5e4)
    distribution: Distribution = "gaussian" if rng.random() < 0.5 else "uniform"
    sampled = probing // _between(rng, 16, 256) if rng.random() < 0.5 else 0
    return random_join(distribution, probing, building, buckets, sampled, seed=_seed(rng))


def _random_mandel(rng: np.random.Generator) -> Kernels:
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


def _random_amr(rng: np.random.Generator) -> Kernels:
    wrinkles, cells, ignitions = _seed(rng), int(rng.integers(64, 385)), int(rng.integers(0, 9))
    radii = np.sort(rng.uniform(0.04, 0.3, int(rng.integers(1, 5))))
    factor, levels = ((16, 2), (8, 2), (4, 3), (16, 1))[rng.integers(4)]
    fronts = [random_front(radius, seed=wrinkles) for radius in radii]
    return refine(fronts, cells, factor, levels, ignitions, seed=wrinkles)


_FAMILIES: Final[dict[str, Callable[[np.random.Generator], Kernels]]] = {
    "AMR": _random_amr,
    "BFS": _random_bfs,
    "GC": _gc,
    "JOIN": _random_join,
    "MM": _mm,
    "Mandel": _random_mandel,
    "SA": _sa,
    "SSSP": _random_sssp,
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

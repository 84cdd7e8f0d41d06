"""The thirteen benchmarks offload the shares and launch about the children that SPAWN's figures show."""

from __future__ import annotations

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.workload.dynamic_parallelism.launches import Benchmark
from gpusched_env.workload.dynamic_parallelism.randomised import random_benchmark
from gpusched_env.workload.dynamic_parallelism.suite import BENCHMARKS, benchmark

# Share of the work (bars of Figure 15 found again in Figure 5) and child kernels (Figure 18) of Baseline-DP.
PAPER = {
    "AMR": (80, 19625),
    "BFS-citation": (53, 21650),
    "BFS-graph500": (91, 24444),
    "SSSP-citation": (53, 6495),
    "SSSP-graph500": (91, 16086),
    "JOIN-uniform": (95, 6705),
    "JOIN-gaussian": (95, 25203),
    "Mandel": (78, 28171),
    "GC-citation": (40, 2258),
    "GC-graph500": (73, 11686),
    "MM-small": (89, 1024),
    "MM-large": (89, 5121),
    "SA-thaliana": (98, 488),
}


def fingerprint(made: Benchmark) -> tuple[object, ...]:
    return made.name, made.threshold, [kernel.threads.work.tolist() for kernel in made.kernels]


def test_names_are_those_of_the_paper() -> None:
    assert (*PAPER, "SA-elegans") == BENCHMARKS


@pytest.mark.parametrize("name", PAPER)
def test_own_threshold_offloads_the_share_and_children_of_the_paper(name: str) -> None:
    made = benchmark(name, seed=11)
    share, children = PAPER[name]
    assert 100 * made.offload_share(made.threshold) == pytest.approx(share, abs=3)
    assert children / 2 <= made.child_launches(made.threshold) <= 2 * children


@pytest.mark.parametrize("name", ["AMR", "SSSP-citation", "JOIN-gaussian", "GC-citation", "MM-small", "SA-elegans"])
def test_seeds_make_benchmarks(name: str) -> None:
    assert fingerprint(benchmark(name, 3)) == fingerprint(benchmark(name, 3))
    assert fingerprint(benchmark(name, 3)) != fingerprint(benchmark(name, 4))


def test_unknown_benchmarks_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'BFS-graph500'"):
        benchmark("BFS-graph50")


def test_random_benchmarks_cover_the_families_and_launch_something() -> None:
    families = set()
    for seed in range(30):
        made = random_benchmark(seed)
        families.add(made.name.split("-")[0])
        assert made.child_launches(made.threshold) > 0
        assert 0 < made.offload_share(made.threshold) <= 1
        assert made.total_work > 0
    assert families == {"AMR", "BFS", "GC", "JOIN", "MM", "Mandel", "SA", "SSSP"}


@pytest.mark.parametrize("seed", range(8))
def test_random_benchmarks_repeat_themselves(seed: int) -> None:
    first, second = random_benchmark(seed), random_benchmark(seed)
    assert fingerprint(first) == fingerprint(second)
    assert all(
        np.array_equal(a.threads.base, b.threads.base) for a, b in zip(first.kernels, second.kernels, strict=True)
    )

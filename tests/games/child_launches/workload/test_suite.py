"""The thirteen benchmarks offload the shares and launch about the children that SPAWN's figures show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.workload.catalogue import PUBLISHED, SHARES_OF_LOOPS, document
from gpusched_env.games.child_launches.workload.launches import Benchmark
from gpusched_env.games.child_launches.workload.suite import BENCHMARKS, benchmark, random_benchmark
from tests.refusals import refused


def fingerprint(made: Benchmark) -> tuple[object, ...]:
    return made.name, made.threshold, [kernel.threads.work.tolist() for kernel in made.kernels]


def test_names_are_those_of_the_paper() -> None:
    assert (*PUBLISHED, "SA-elegans") == BENCHMARKS


@pytest.mark.long
@pytest.mark.parametrize("name", PUBLISHED)
def test_own_threshold_offloads_the_share_and_children_of_the_paper(name: str) -> None:
    made = benchmark(name, seed=11)
    share, children = PUBLISHED[name]
    possible = made.offloadable if name.startswith(SHARES_OF_LOOPS) else 1
    assert 100 * made.offload_share(made.threshold) / possible == pytest.approx(share, abs=3)
    assert children / 2 <= made.child_launches(made.threshold) <= 2 * children


# Child kernels (Figure 18) at a second share of the work, that of Offline-Search.
@pytest.mark.parametrize(
    ("name", "share", "children", "points"), [("AMR", 4, 23, 1), ("JOIN-gaussian", 10, 139, 2), ("Mandel", 28, 9894, 1)]
)
def test_few_children_have_the_share_of_the_paper(name: str, share: int, children: int, points: int) -> None:
    made = benchmark(name, seed=11)
    threshold = made.threshold_of(share / 100)
    assert 100 * made.offload_share(threshold) == pytest.approx(share, abs=points)
    assert children / 2 <= made.child_launches(threshold) <= 2 * children


# 31 children at once, by their warps and the occupancy (Figure 16) of the paper's GPU of 832 warps with Baseline-DP.
@pytest.mark.parametrize(
    ("name", "occupancy"),
    [
        ("AMR", 8.8),
        ("JOIN-uniform", 7.4),
        ("JOIN-gaussian", 3.3),
        ("MM-small", 11.8),
        ("MM-large", 10.4),
        ("SA-thaliana", 10.1),
    ],
)
def test_children_have_the_warps_of_the_papers_occupancy(name: str, occupancy: float) -> None:
    made = benchmark(name, seed=11)
    items = [
        requests.items[requests.work > made.threshold]
        for kernel in made.kernels
        if (requests := kernel.threads.requests) is not None
    ]
    warps = np.ceil(np.concatenate(items) / 32).mean()
    assert 100 * 31 * warps / 832 == pytest.approx(occupancy, rel=0.3)


@pytest.mark.parametrize("name", ["AMR", "SSSP-citation", "JOIN-gaussian", "GC-citation", "MM-small", "SA-elegans"])
def test_seeds_make_benchmarks(name: str) -> None:
    assert fingerprint(benchmark(name, 3)) == fingerprint(benchmark(name, 3))
    assert fingerprint(benchmark(name, 3)) != fingerprint(benchmark(name, 4))


def test_unknown_benchmarks_are_refused() -> None:
    with refused(InputError, "did you mean 'BFS-graph500'"):
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


@pytest.mark.slow
def test_the_published_page_is_up_to_date() -> None:
    page = Path(__file__).parents[4] / "docs" / "dynamic-parallelism.md"
    assert page.read_text(encoding="utf-8") == document()

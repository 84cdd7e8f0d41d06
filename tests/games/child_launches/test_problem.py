"""Problems of dynamic parallelism: the flat tables say what the nested objects do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.experiments.fuzz_cases import draw_launches
from gpusched_env.games.child_launches.hardware.warp_machine import FREE, SPAWN_KEPLER
from gpusched_env.games.child_launches.problem import LaunchProblem, launch_problem
from gpusched_env.games.child_launches.workload.launches import (
    BODIES,
    L2_HITS,
    Benchmark,
    BlockShape,
    LaunchRequests,
    ParentKernel,
    Threads,
    body_of,
    threads_with_loops,
)
from gpusched_env.games.child_launches.workload.suite import BENCHMARKS
from tests.refusals import refused

BLOCK = BlockShape(64, 10)


def array(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def benchmark(*threads: Threads, block: BlockShape = BLOCK) -> Benchmark:
    return Benchmark("BFS-made", tuple(ParentKernel(f"k{i}", block, BLOCK, t) for i, t in enumerate(threads)), 1)


NESTED = Threads(
    array(1, 0),
    # The second thread makes two requests; the first of them has a thread that makes one of 4 times 2 iterations.
    LaunchRequests(
        array(1, 1),
        array(2, 1),
        children=Threads(array(5, 6, 7), LaunchRequests(array(1), array(4), iterations=array(2))),
    ),
)


def test_tables_of_nested_requests() -> None:
    tables = launch_problem(benchmark(NESTED, threads_with_loops(array(0, 3)))).tables
    assert tables.base.tolist() == [1, 0, 5, 6, 7, 0, 0]
    assert tables.first_request.tolist() == [0, 0, 2, 2, 3, 3, 3, 4]
    assert tables.items.tolist() == [2, 1, 4, 3]
    assert tables.work.tolist() == [5 + 6 + 8, 7, 8, 3]
    assert tables.iterations.tolist() == [0, 0, 2, 1]
    assert tables.first_child.tolist() == [2, 4, -1, -1]
    assert tables.kernels["first_thread"].tolist() == [0, 5]
    assert tables.kernels["threads"].tolist() == [2, 2]
    # 10 registers a thread are 512 a warp; two warps.
    assert tables.kernels[0].tolist()[2:] == (64, 2, 1024, 0) * 2


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_tables_count_what_the_objects_do(seed: int) -> None:
    problem = draw_launches(seed, 0).problem()
    tables, made = problem.tables, problem.benchmark
    assert made.child_launches(problem.threshold) == problem.asking
    tops = np.concatenate(
        [np.arange(row["first_thread"], row["first_thread"] + row["threads"]) for row in tables.kernels]
    )

    def work(thread: int) -> int:
        requests = range(tables.first_request[thread], tables.first_request[thread + 1])
        for request in requests:
            first, items = tables.first_child[request], tables.items[request]
            below = items * tables.iterations[request] if first < 0 else sum(map(work, range(first, first + items)))
            assert below == tables.work[request]
        return int(tables.base[thread] + tables.work[list(requests)].sum())

    assert sum(map(work, tops.tolist())) == made.total_work


def test_changes_leave_the_rest_as_it_was() -> None:
    problem = launch_problem(benchmark(NESTED))
    assert problem.asking == 3
    assert problem.with_threshold(7).asking == 2
    assert problem.flat().asking == 0
    changed = problem.with_threshold(7).with_launches(FREE).changed(aggregated=True)
    assert (changed.threshold, changed.machine.launches, changed.aggregated) == (7, FREE, True)
    assert changed.tables is problem.tables
    assert (problem.threshold, problem.aggregated, problem.machine) == (1, False, SPAWN_KEPLER)


def test_applications_that_cannot_run() -> None:
    with refused(InputError, "kernels"):
        launch_problem(benchmark())
    with refused(InputError, "k0", "threads"):
        launch_problem(benchmark(Threads(array())))
    with refused(InputError, "request"):
        launch_problem(benchmark(Threads(array(1), LaunchRequests(array(0), array(0), iterations=array(1)))))
    with refused(InputError, "iterations"):
        launch_problem(benchmark(Threads(array(-1))))
    with refused(InputError, "k0", "k20m"):
        launch_problem(benchmark(NESTED, block=BlockShape(1024, 255)))


def test_every_benchmark_has_a_loop() -> None:
    assert {name.partition("-")[0] for name in BENCHMARKS} == set(BODIES)
    assert set(BENCHMARKS) == set(L2_HITS)
    for name in BENCHMARKS:
        assert SPAWN_KEPLER.costs(body_of(name)).iteration_cycles > 0
    assert body_of("BFS-citation") == replace(BODIES["BFS"], miss=1 - 0.813)
    # Another graph has the mean of both.
    assert body_of("BFS-random").miss == pytest.approx(1 - (0.813 + 0.739) / 2)
    with refused(InputError, "'BSF-citation'", "did you mean"):
        body_of("BSF-citation")


def test_a_problem_is_what_it_is_of() -> None:
    problem = launch_problem(benchmark(NESTED))
    assert isinstance(problem, LaunchProblem)
    assert (problem.name, problem.threshold) == ("BFS-made", 1)
    assert problem.costs == SPAWN_KEPLER.costs(body_of("BFS-made"))

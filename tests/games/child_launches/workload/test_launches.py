"""Work, shares and child kernels of threads that launch, solved by hand; which warps count as equal."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from gpusched_env.errors import InputError
from gpusched_env.games.child_launches.workload.launches import (
    Benchmark,
    BlockShape,
    Counts,
    LaunchRequests,
    ParentKernel,
    Threads,
    threads_with_loops,
)
from tests.games.child_launches.workload.warps import warp_classes
from tests.refusals import refused

BLOCK = BlockShape(64, 32)


def counts(values: ArrayLike) -> Counts:
    return np.array(values, np.int64)


def bench(*threads: Threads) -> Benchmark:
    return Benchmark("b", tuple(ParentKernel("k", BLOCK, BlockShape(32, 32), each) for each in threads), 0)


def nested() -> Threads:
    """Thread 1 asks for 3 and then 2 child threads; the first child thread asks for 4 threads of 5 iterations."""
    inner = Threads(counts([1, 1, 1, 2, 2]), LaunchRequests(counts([0]), counts([4]), counts([5])))
    return Threads(counts([10, 0]), LaunchRequests(counts([1, 1]), counts([3, 2]), children=inner))


def test_work_of_a_thread_counts_all_that_it_could_launch() -> None:
    threads = nested()
    assert threads.requests is not None
    assert threads.requests.work.tolist() == [23, 4]
    assert threads.work.tolist() == [10, 27]
    assert threads.first_request.tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("threshold", "share", "children"), [(0, 27, 3), (3, 27, 3), (4, 23, 2), (19, 23, 2), (20, 23, 1), (23, 0, 0)]
)
def test_a_threshold_launches_what_is_above_it_and_nested_requests_too(
    threshold: int, share: int, children: int
) -> None:
    made = bench(nested())
    assert made.offload_share(threshold) == pytest.approx(share / 37)
    assert made.offloadable == pytest.approx(27 / 37)
    assert made.child_launches(threshold) == children


def test_threshold_of_a_share_is_the_nearest_possible() -> None:
    made = bench(threads_with_loops(counts([0, 10, 30, 10])), threads_with_loops(counts([50])))
    assert made.total_work == 100
    assert [made.threshold_of(share) for share in (1.0, 0.85, 0.6, 0.3, 0.0)] == [0, 10, 30, 30, 50]
    assert made.kernels[0].blocks == 1


def test_threads_without_work_ask_for_nothing() -> None:
    threads = threads_with_loops(counts([0, 3, 0]))
    assert threads.requests is not None
    assert (threads.requests.thread.tolist(), threads.requests.items.tolist()) == ([1], [3])
    assert threads_with_loops(counts([0, 0])).work.tolist() == [0, 0]


def test_warps_are_equal_if_their_lanes_are_in_some_order() -> None:
    first = np.arange(32)
    other = np.where(first == 5, 6, first)
    classes = warp_classes(threads_with_loops(np.concatenate([first, first[::-1], other, first, [1, 2]])))
    assert classes.kind[0] == classes.kind[1] == classes.kind[3]
    assert sorted(classes.count.tolist()) == [1, 1, 3]
    assert classes.example[classes.kind[[0, 2, 4]]].tolist() == [0, 2, 4]


def test_warps_differ_by_the_order_of_requests_and_by_what_child_threads_do() -> None:
    def one_warp(items: list[int], children: list[int]) -> tuple[Counts, LaunchRequests]:
        return counts(items), LaunchRequests(counts([0, 0]), counts(items), children=Threads(counts(children)))

    def kinds(*warps: LaunchRequests) -> list[int]:
        """Kinds of warps of which only the first lane asks for something."""
        children = np.concatenate([each.children.base for each in warps if each.children is not None])
        joined = LaunchRequests(
            np.concatenate([32 * place + each.thread for place, each in enumerate(warps)]),
            np.concatenate([each.items for each in warps]),
            children=Threads(children),
        )
        return [int(kind) for kind in warp_classes(Threads(np.zeros(32 * len(warps), np.int64), joined)).kind]

    small_first, large_first = one_warp([1, 2], [7, 7, 7])[1], one_warp([2, 1], [7, 7, 7])[1]
    uneven, turned = one_warp([1, 2], [7, 6, 8])[1], one_warp([1, 2], [7, 8, 6])[1]
    a, b, c, d, e = kinds(small_first, large_first, uneven, turned, small_first)
    assert a == e
    assert c == d
    assert len({a, b, c}) == 3


def test_impossible_shapes_are_refused() -> None:
    with refused(InputError, "48 threads", "warps"):
        BlockShape(48, 32)
    with refused(InputError, "iterations"):
        LaunchRequests(counts([0]), counts([1]))

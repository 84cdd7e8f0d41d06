"""Pods arrive shuffled until they have asked for enough; the generator is Go's."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.arrivals import draw_arrivals
from gpusched_env.games.fleet.cluster.go_random import GoRandom
from gpusched_env.games.fleet.cluster.problem import ClusterProblem, Node, PodKind, Workload
from gpusched_env.games.fleet.cluster.shipped import shipped_problem
from tests.games.fleet.cluster.toys import HALF, NODES, ONE, TWO
from tests.refusals import refused


def test_numbers_are_those_of_go() -> None:
    """The first of seeds 1 and 0; and ``rand.Intn(100)``, as every tour of the language shows it."""
    one, zero = GoRandom(1), GoRandom(0)
    assert [one.next63() for _ in range(3)] == [5577006791947779410, 8674665223082153551, 6129484611666145821]
    assert zero.next63() == 8717895732742165505
    again = GoRandom(1)
    assert [again.below(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]
    assert GoRandom(3).below(1) == 0


def test_orders_are_permutations_with_equal_chances() -> None:
    random, firsts = GoRandom(5), Counter[int]()
    for _ in range(600):
        shuffled = list(range(6))
        random.shuffle(shuffled)
        assert sorted(shuffled) == sorted(random.permutation(6).tolist()) == list(range(6))
        firsts[shuffled[0]] += 1
    assert max(firsts.values()) - min(firsts.values()) < 60


def asked(problem: ClusterProblem, kinds: np.ndarray) -> int:
    return sum(problem.workload.kinds[kind].asked_milli for kind in kinds)


@pytest.mark.parametrize("pods", [10, 1000])
def test_pods_are_added_or_left_out(pods: int) -> None:
    problem = ClusterProblem(NODES * 20, Workload.of_pods("toy", [HALF, ONE, TWO] * pods))
    drawn = draw_arrivals(problem, 1)
    room = 1.3 * problem.capacity_milli
    assert room - 2000 <= asked(problem, drawn.kinds) <= room + 1000, "of two GPUs, one may be too much"
    counts = Counter(drawn.kinds.tolist())
    if pods == 10:
        assert min(counts.values()) >= pods, "all of them come"
    else:
        assert max(counts.values()) < pods
    assert sorted(drawn.node_order.tolist()) == list(range(40))
    assert drawn.draws.shape == (len(drawn.kinds), 2)


def test_draws_are_seeded() -> None:
    problem = shipped_problem("cpu050")
    one, same, other = (draw_arrivals(problem, seed) for seed in (7, 7, 8))
    for name in one._fields:
        np.testing.assert_array_equal(getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.kinds[:100], other.kinds[:100])


def test_wrong_ratios_are_refused() -> None:
    problem = ClusterProblem(NODES, Workload.of_pods("toy", [HALF]))
    for ratio in (0.0, -1.0, 11.0, float("nan")):
        with refused(InputError, f"{ratio:g}", "at most 10"):
            draw_arrivals(problem, 0, ratio)
    with refused(InputError, "toy", "more than 0.05 times"):
        draw_arrivals(problem, 0, 0.05)
    crumbs = Workload.of_pods("crumbs", [PodKind(1, 1, 1, 1, "")])
    with refused(InputError, "crumbs", "pods would arrive on 1000 nodes", "must be at most 1000000"):
        draw_arrivals(ClusterProblem((Node(1, 1, 1, "A"),) * 1000, crumbs), 0)


def test_wrong_clusters_are_refused() -> None:
    pods = Workload.of_pods("toy", [HALF])
    for nodes, workload, named in (
        ((), pods, "0 nodes"),
        (NODES, Workload.of_pods("none", []), "0 pods"),
        ((Node(1, 1, 0, ""),), pods, "no node has a GPU"),
        (NODES, Workload.of_pods("toy", [PodKind(1, 1, 0, 0, "")]), "no pod asks for a GPU"),
        (NODES, Workload.of_pods("toy", [PodKind(1, 1, 1, 5, "P10")]), "did you mean 'P100'"),
    ):
        with refused(InputError, named):
            ClusterProblem(nodes, workload)

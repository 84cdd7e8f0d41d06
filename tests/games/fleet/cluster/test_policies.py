"""Scores and GPUs of each policy on a node of two GPUs, solved by hand."""

from __future__ import annotations

import math

import pytest

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.fragmentation import node_fragmentation
from gpusched_env.games.fleet.cluster.gpus import drawn_gpu, first_free_gpus, fits, tightest_gpu
from gpusched_env.games.fleet.cluster.placing import NOWHERE, choose_gpus, choose_node, node_score, place_pod
from gpusched_env.games.fleet.cluster.policies.fgd import fgd_score
from gpusched_env.games.fleet.cluster.policies.random import drawn_node
from gpusched_env.games.fleet.cluster.policies.registry import POLICIES, Policy, policy_named
from gpusched_env.games.fleet.cluster.problem import PodKind
from tests.games.fleet.cluster.toys import HALF, LARGE, NO_GPU, ON_P100, ONE, TWO, Toy, toy
from tests.refusals import refused

T4, P100 = 0, 1


@pytest.fixture
def used() -> Toy:
    """The first node has 5 of 8 cores left, 0.6 of its first GPU and all of the second; a pod shares the first."""
    made = toy([HALF, ONE, TWO, NO_GPU, ON_P100, LARGE], allowed=("V100",))
    made.state.cpu_left[T4] = 5000
    made.state.gpu_left[T4, 0] = 600
    made.state.classes[T4, 0] = 1
    made.state.fragmentation[T4] = node_fragmentation(made.state, made.typical, T4)
    return made


def score(policy: Policy, of: Toy, node: int, kind: PodKind) -> int:
    return node_score(policy, of.state, of.pods, of.typical, node, of.kinds[kind])


def test_a_pod_fits_where_everything_that_it_asks_for_is_free(used: Toy) -> None:
    fit = {
        kind: [fits(used.state, used.pods, node, place) for node in (T4, P100)] for kind, place in used.kinds.items()
    }
    assert fit == {
        HALF: [True, True],
        ONE: [True, True],
        TWO: [False, True],
        NO_GPU: [True, True],
        ON_P100: [False, True],
        LARGE: [False, False],
    }
    assert score(Policy.BEST_FIT, used, T4, TWO) == NOWHERE


def test_best_fit_adds_what_is_left() -> None:
    """(4000 / 16000 + 1100 / 4000) / 2 is left on the one, (15000 / 16000 + 3500 / 4000) / 2 on the other."""
    made = toy([HALF])
    made.state.cpu_left[T4], made.state.gpu_left[T4, 0] = 5000, 600
    assert score(Policy.BEST_FIT, made, T4, HALF) == math.floor(100 * (1 - 0.2625)) == 73
    assert score(Policy.BEST_FIT, made, P100, HALF) == math.floor(100 * (1 - 0.90625)) == 9


def test_dot_product_multiplies_what_is_free_and_asked_for(used: Toy) -> None:
    """5/16 x 1/16 + 1.6/4 x 0.5/4 on the one, 1 x 1/16 + 1 x 0.5/4 on the other; half of it is taken off."""
    assert score(Policy.DOT_PRODUCT, used, T4, HALF) == math.floor(100 * (1 - (5 / 256 + 0.05) / 2)) == 96
    assert score(Policy.DOT_PRODUCT, used, P100, HALF) == math.floor(100 * (1 - 0.09375)) == 90


def test_clustering_puts_equal_requests_together(used: Toy) -> None:
    """A quarter for the group of a node, of which the part of the largest node's GPUs that is not free here."""
    assert score(Policy.CLUSTERING, used, T4, HALF) == 75 + 25 * (4000 - 1600) // 4000 == 90
    assert score(Policy.CLUSTERING, used, T4, ONE) == 0 + 15, "others only"
    assert score(Policy.CLUSTERING, used, P100, HALF) == 25 + 0, "empty"
    used.state.classes[T4, 1] = 1
    assert score(Policy.CLUSTERING, used, T4, HALF) == 50 + 15, "also others"
    assert score(Policy.CLUSTERING, used, T4, NO_GPU) == score(Policy.CLUSTERING, used, P100, NO_GPU) == 0


def test_packing_prefers_gpus_in_use_then_nodes_in_use(used: Toy) -> None:
    """60 % is left on the GPU in use; the empty node has four free GPUs."""
    assert score(Policy.PACKING, used, T4, HALF) == 100 - 60 // 10 == 94
    assert score(Policy.PACKING, used, T4, ONE) == 50 - 1
    assert score(Policy.PACKING, used, P100, ONE) == 33 - 4
    used.state.gpu_left[P100, 3] = 0
    assert score(Policy.PACKING, used, P100, TWO) == 50 - 2
    assert score(Policy.PACKING, used, T4, NO_GPU) == 0


def test_fgd_takes_the_gpu_that_leaves_least_of_no_use() -> None:
    """All pods need 0.7 of a GPU, and 0.7 and 1 are left: 0.3 on the tightest would leave 0.4 of no use to them."""
    typical, small = PodKind(1000, 10, 1, 700, ""), PodKind(1000, 10, 1, 300, "")
    made = toy([typical] * 99 + [small])
    made.state.gpu_left[T4, 0] = 700
    place = made.kinds[small]
    assert fgd_score(made.state, made.pods, made.typical, T4, place) == (50, 0b10)
    assert tightest_gpu(made.state, made.pods, T4, place) == 0b01
    made.state.gpu_left[T4, 1] = 0
    assert fgd_score(made.state, made.pods, made.typical, T4, place) == (math.floor(100 / (1 + math.exp(0.4))), 0b01)
    assert made.state.gpu_left[T4].tolist() == [700, 0, 0, 0], "it only tries"
    assert made.state.cpu_left[T4] == 8000


def test_fgd_with_three_kinds_of_pods() -> None:
    """Fragmentation of a node: 550 before, 350 with the pod on the first GPU, 550 on the second (see the measure)."""
    made = toy([HALF, HALF, ONE, TWO])
    made.state.cpu_left[T4], made.state.gpu_left[T4, 0] = 5000, 600
    made.state.fragmentation[T4] = node_fragmentation(made.state, made.typical, T4)
    place = made.kinds[HALF]
    assert fgd_score(made.state, made.pods, made.typical, T4, place) == (math.floor(100 / (1 + math.exp(-0.2))), 0b01)
    made.state.gpu_left[T4, 0] = 400
    made.state.fragmentation[T4] = node_fragmentation(made.state, made.typical, T4)
    after_one = made.state.fragmentation[T4]
    assert after_one == pytest.approx(0.5 * 400 + 0.25 * 400 + 0.25 * 1400)


def test_random_draws_nodes_and_gpus_with_equal_chances(used: Toy) -> None:
    scores = used.kept.score[0]
    scores[:] = [0, -1, 0]
    assert [drawn_node(scores, draw) for draw in (0.0, 0.49, 0.5, 0.99)] == [0, 0, 2, 2]
    scores[:] = -1
    assert drawn_node(scores, 0.5) == NOWHERE
    place = used.kinds[HALF]
    assert [drawn_gpu(used.state, used.pods, T4, place, draw) for draw in (0.0, 0.49, 0.5, 0.99)] == [1, 1, 2, 2]


@pytest.mark.parametrize("policy", set(Policy) - {Policy.RANDOM, Policy.FGD})
def test_shared_gpus_are_the_tightest_and_whole_ones_the_first(policy: Policy, used: Toy) -> None:
    chosen = [
        choose_gpus(policy, used.state, used.pods, used.typical, node, used.kinds[kind], 0.9)
        for node, kind in ((T4, HALF), (T4, ONE), (P100, TWO), (P100, NO_GPU))
    ]
    assert chosen == [0b01, 0b10, 0b11, 0]
    used.state.gpu_left[P100, 0] = 999
    assert first_free_gpus(used.state, used.pods, P100, used.kinds[TWO]) == 0b110


def test_the_first_of_equal_nodes_is_taken_and_what_fits_nowhere_is_dropped(used: Toy) -> None:
    def choose(kind: PodKind) -> int:
        return choose_node(Policy.PACKING, used.state, used.pods, used.typical, used.kept, used.kinds[kind], 0.0)

    assert choose(NO_GPU) == T4
    assert choose(LARGE) == NOWHERE
    place_pod(used.state, used.pods, used.typical, used.kept, P100, used.kinds[TWO], 0b11)
    assert used.state.gpu_left[P100].tolist() == [0, 0, 1000, 1000]
    assert used.state.classes[P100].tolist() == [0, 0, 1, 0, 0]
    assert (used.state.cpu_left[P100], used.state.memory_left[P100], used.state.totals[0]) == (10000, 990, 2000)
    assert choose(TWO) == P100, "its kept score is reckoned anew"
    assert used.kept.score[used.kinds[TWO]].tolist() == [NOWHERE, 48, NOWHERE]


def test_policies_have_names() -> None:
    assert list(POLICIES.values()) == list(Policy)
    with refused(InputError, "'fgdd'", "did you mean 'fgd'"):
        policy_named("fgdd")

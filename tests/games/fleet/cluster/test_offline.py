"""What a scheduler that knows all pods can have in use: hand-solved, and beside policies."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.games.fleet.cluster.offline import bound_milli, packed_milli
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem, Node, PodKind, Workload
from gpusched_env.games.fleet.cluster.run import run_cluster

NODE = Node(8_000, 1_000, 2, "A")


def problem(*pods: PodKind, nodes: tuple[Node, ...] = (NODE,)) -> ClusterProblem:
    return ClusterProblem(nodes, Workload.of_pods("made", pods))


def pod(gpu_milli: int, gpus: int = 1, cpu_milli: int = 1_000, models: str = "") -> PodKind:
    return PodKind(cpu_milli, 10, gpus, gpu_milli, models)


@pytest.mark.parametrize(
    ("pods", "packed", "bound"),
    [
        # 600 fits beside none of the others; two halves fill a GPU.
        ([pod(600), pod(500), pod(500), pod(1000)], 2_000, 2_000),
        # Three of 600 need three GPUs: a mixture holds one.
        ([pod(600)] * 3, 1_200, 1_200),
        # The CPU holds four of them.
        ([pod(250, cpu_milli=2_000)] * 8, 1_000, 1_000),
        # Of two whole GPUs nothing can be shared out; the pod of the other model has no node.
        ([pod(1000, gpus=2), pod(400)], 2_000, 2_000),
        ([pod(700), pod(400)], 1_100, 1_100),
    ],
)
def test_small_clusters_by_hand(pods: list[PodKind], packed: float, bound: float) -> None:
    made = problem(*pods)
    assert packed_milli(made, made.workload.submitted) == packed
    assert bound_milli(made, made.workload.submitted) == pytest.approx(bound)


def test_a_model_that_a_pod_cannot_run_on_is_left_alone() -> None:
    made = problem(pod(1000, models="B"), pod(300), nodes=(NODE, Node(8_000, 1_000, 1, "B")))
    assert packed_milli(made, made.workload.submitted) == 1_300
    only = problem(pod(1000, models="B"), pod(1000, models="B"), nodes=(NODE, Node(8_000, 1_000, 1, "B")))
    assert bound_milli(only, only.workload.submitted) == pytest.approx(1_000)


@settings(max_examples=15)
@given(
    st.lists(
        st.sampled_from([pod(200), pod(350), pod(600), pod(1000), pod(1000, 2), pod(500, 1, 4_000)]),
        min_size=1,
        max_size=25,
    )
)
def test_no_policy_has_more_than_the_bound(pods: list[PodKind]) -> None:
    made = problem(*pods, nodes=(NODE, NODE, Node(6_000, 1_000, 4, "B")))
    run = run_cluster(made, Policy.FGD, 0)
    arrived = run.arrivals.kinds.tolist()
    bound = bound_milli(made, arrived)
    assert float(run.after.used_milli[-1]) <= bound + 1e-6
    assert packed_milli(made, arrived) <= bound + 1e-6

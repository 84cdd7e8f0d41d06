"""Fragmentation, solved by hand; and what is kept while pods are placed, against all of it reckoned from scratch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpusched_env.games.fleet.cluster.fragmentation import node_fragmentation, typical_pods
from gpusched_env.games.fleet.cluster.placing import NOWHERE, choose_gpus, node_score, place_pod
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem, Node, PodKind, Workload
from gpusched_env.games.fleet.cluster.run import new_cluster, run_cluster
from gpusched_env.games.fleet.cluster.state import FRAGMENTED_MILLI, USED_MILLI
from tests.games.fleet.cluster.toys import HALF, NO_GPU, ON_P100, ONE, TWO, toy


def test_what_typical_pods_cannot_use_is_fragmented() -> None:
    """Left: 5 cores, 0.6 and 1 GPU. Half of the pods need 0.5 of a GPU: none of it is too little. A quarter needs one:
    0.6 is too little. A quarter needs two and 6 cores: all is of no use."""
    made = toy([HALF, HALF, ONE, TWO])
    made.state.cpu_left[0], made.state.gpu_left[0, 0] = 5000, 600
    assert node_fragmentation(made.state, made.typical, 0) == 0.5 * 0 + 0.25 * 600 + 0.25 * 1600 == 550
    made.state.cpu_left[0] = 3000
    assert node_fragmentation(made.state, made.typical, 0) == 0.25 * 1600 + 0.25 * 1600, "too few cores for one GPU"
    made.state.cpu_left[0] = 0
    assert node_fragmentation(made.state, made.typical, 0) == 1600
    made.state.gpu_left[0] = 0
    assert node_fragmentation(made.state, made.typical, 0) == 0


def test_gpus_are_of_no_use_to_pods_without_and_to_those_of_other_models() -> None:
    made = toy([HALF, HALF, NO_GPU, ON_P100], allowed=("V100",))
    assert node_fragmentation(made.state, made.typical, 0) == 0.25 * 2000 + 0.25 * 2000
    assert node_fragmentation(made.state, made.typical, 1) == 0.25 * 4000


def test_typical_pods_are_the_most_frequent_until_they_are_95_percent() -> None:
    """93 and 4 of 100 reach 95; memory does not tell requests apart; of equal ones the larger comes first."""
    other_memory = HALF._replace(memory_mib=20)
    pods = [HALF] * 50 + [other_memory] * 43 + [ONE] * 4 + [TWO] * 2 + [NO_GPU]
    found = typical_pods(Workload.of_pods("toy", pods), ("T4",))
    assert found.gpu_milli.tolist() == [500, 1000]
    assert found.share == pytest.approx([93 / 97, 4 / 97])
    every = typical_pods(Workload.of_pods("toy", pods), ("T4",), popularity=1.0)
    assert every.share == pytest.approx([0.93, 0.04, 0.02, 0.01])
    equal = typical_pods(Workload.of_pods("toy", [HALF, ONE, TWO, NO_GPU]), ("T4",))
    assert equal.cpu_milli.tolist() == [6000, 4000, 1000, 1000]
    assert equal.gpu_milli.tolist() == [1000, 1000, 500, 0]


requests = st.builds(
    lambda cpu, memory, gpus, milli, models: PodKind(
        cpu, memory, gpus, 0 if gpus == 0 else 1000 if gpus > 1 else milli, models if gpus else ""
    ),
    st.sampled_from([500, 1000, 3000, 7000]),
    st.sampled_from([10, 300]),
    st.integers(0, 4),
    st.sampled_from([50, 330, 500, 990, 1000]),
    st.sampled_from(["", "A", "B", "A|B"]),
)
machines = st.builds(
    lambda cpu, memory, gpus, model: Node(cpu, memory, gpus, model if gpus else ""),
    st.sampled_from([4000, 16000, 32000]),
    st.sampled_from([1000, 3000]),
    st.integers(0, 4),
    st.sampled_from("AB"),
)
problems = st.builds(
    lambda nodes, pods: ClusterProblem((Node(8000, 500, 2, "A"), Node(8000, 500, 3, "B"), *nodes), pods),
    st.lists(machines, max_size=6),
    st.lists(requests, max_size=30).map(lambda pods: Workload.of_pods("drawn", [*pods, HALF])),
)


@given(problem=problems, policy=st.sampled_from(list(Policy)), seed=st.integers(0, 100))
@settings(max_examples=60, deadline=None)
def test_what_is_kept_is_what_is_reckoned_from_scratch(problem: ClusterProblem, policy: Policy, seed: int) -> None:
    """Compiled, with kept scores; beside plain Python that scores every node for every pod."""
    run = run_cluster(problem, policy, seed)
    state, pods, typical = new_cluster(problem, run.arrivals)
    kept = toy([HALF]).kept._replace(changed_at=np.zeros(len(problem.nodes), np.int64))
    for pod, kind in enumerate(run.arrivals.kinds):
        scores = [node_score(policy, state, pods, typical, node, kind) for node in range(len(problem.nodes))]
        node, draws = int(np.argmax(scores)), run.arrivals.draws[pod]
        if policy == Policy.RANDOM and max(scores) > NOWHERE:
            fitting = np.flatnonzero(np.array(scores) > NOWHERE)
            node = int(fitting[int(draws[0] * len(fitting))])
        assert run.after.node[pod] == (NOWHERE if max(scores) == NOWHERE else node)
        if max(scores) > NOWHERE:
            mask = choose_gpus(policy, state, pods, typical, node, kind, draws[1])
            assert mask == run.after.gpus[pod]
            place_pod(state, pods, typical, kept, node, kind, mask)
    for name in ("cpu_left", "memory_left", "gpu_left", "classes", "fragmentation", "totals"):
        np.testing.assert_array_equal(getattr(run.state, name), getattr(state, name))
    assert min(state.cpu_left.min(), state.memory_left.min(), state.gpu_left.min()) >= 0
    whole = [node_fragmentation(state, typical, node) for node in range(len(problem.nodes))]
    np.testing.assert_array_equal(run.state.fragmentation, whole)
    assert run.state.totals[FRAGMENTED_MILLI] == pytest.approx(sum(whole), abs=1e-6)
    free = run.state.gpu_left.sum()
    assert run.state.totals[USED_MILLI] == problem.capacity_milli - free
    assert run.after.fragmented_milli[-1] <= free + 1e-6

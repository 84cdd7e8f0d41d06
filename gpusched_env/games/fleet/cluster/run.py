"""A run: all pods that arrive, placed by a policy, and what is in use and fragmented by what has been asked for."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.games.fleet.cluster.arrivals import RATIO, Arrivals, draw_arrivals
from gpusched_env.games.fleet.cluster.fragmentation import TypicalPods, measure_nodes, typical_pods
from gpusched_env.games.fleet.cluster.placing import NOWHERE, no_scores, place_all
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.problem import ClusterProblem
from gpusched_env.games.fleet.cluster.state import ClusterState, PodTable, empty_cluster, pod_table

LAST_PERCENT: Final = 130


class Placements(NamedTuple):
    """What became of each pod, (pods,) each."""

    node: Any
    """Its row in the state of the cluster, or :data:`~gpusched_env.games.fleet.cluster.placing.NOWHERE`."""
    gpus: Any
    """The mask of its GPUs."""
    used_milli: Any
    fragmented_milli: Any
    """Thousandths of GPUs of the cluster, after it."""


class ClusterRun(NamedTuple):
    """A run of a policy."""

    problem: ClusterProblem
    arrivals: Arrivals
    state: ClusterState
    """At the end."""
    after: Placements

    @property
    def dropped(self) -> int:
        """Pods that fitted nowhere."""
        return int((self.after.node == NOWHERE).sum())

    def by_percent(self, milli: NDArray[np.float64], last: int = LAST_PERCENT) -> NDArray[np.float64]:
        """A curve, per cent of the cluster's GPUs, (last + 1,), by per cent of them that arrived pods asked for.

        At a per cent stands the mean after all pods whose demand rounds to it; where there is none, that of those one
        per cent around (``merge_alloc_discrete.py``).

        Args:
            milli: (pods,) thousandths of GPUs after each pod.
            last: per cent; NaN where no pod came.
        """
        asked = np.array([kind.asked_milli for kind in self.problem.workload.kinds])[self.arrivals.kinds]
        hundredth = self.problem.capacity_milli / 100.0
        at = np.rint(np.cumsum(asked) / hundredth).astype(np.int64)
        pods = np.bincount(at, minlength=last + 2).astype(float)
        sums = np.bincount(at, milli / hundredth, minlength=last + 2)
        around = [np.convolve(values, np.ones(3), "same") for values in (sums, pods)]
        with np.errstate(invalid="ignore"):
            return np.where(pods > 0, sums / pods, around[0] / around[1])[: last + 1]

    @property
    def allocation(self) -> NDArray[np.float64]:
        """Per cent of the GPUs that are in use, by per cent that was asked for."""
        return self.by_percent(self.after.used_milli)

    @property
    def fragmentation(self) -> NDArray[np.float64]:
        """Per cent of the GPUs that are fragmented, by per cent that was asked for."""
        return self.by_percent(self.after.fragmented_milli)


def new_cluster(problem: ClusterProblem, arrivals: Arrivals) -> tuple[ClusterState, PodTable, TypicalPods]:
    """Empty nodes in their drawn order, measured; what kinds of pods ask for; and the typical pods."""
    state = empty_cluster(problem, arrivals.node_order)
    typical = typical_pods(problem.workload, problem.models)
    measure_nodes(state, typical)
    return state, pod_table(problem.workload.kinds, problem.models), typical


def run_cluster(problem: ClusterProblem, policy: Policy, seed: int, ratio: float = RATIO) -> ClusterRun:
    """Place all pods that arrive.

    Args:
        problem: nodes and workload.
        policy: that places them.
        seed: of arrivals, of the order of nodes, and of what the policy draws.
        ratio: as of :func:`~gpusched_env.games.fleet.cluster.arrivals.draw_arrivals`.
    """
    arrivals = draw_arrivals(problem, seed, ratio)
    state, pods, typical = new_cluster(problem, arrivals)
    count = len(arrivals.kinds)
    after = Placements(np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count), np.zeros(count))
    kept = no_scores(len(problem.workload.kinds), len(problem.nodes))
    place_all(int(policy), state, pods, typical, kept, arrivals.kinds, arrivals.draws, after)
    return ClusterRun(problem, arrivals, state, after)

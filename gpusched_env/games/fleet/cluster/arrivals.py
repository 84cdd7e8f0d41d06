"""In which order pods arrive, until they have asked for a given part of the cluster's GPUs, and the order of nodes.

As the published simulator has it (``simulator.go``: ``SortClusterPods``, ``TunePodsByNodeTotalResource``). All pods of
the workload are shuffled. If together they ask for more than the part, single ones are left out at random, until they
do not; if for less, pods are drawn from the workload with replacement and come behind, until the next one would be too
much. Then nodes get a random order, the same for the whole run, in which the first of equally good ones is taken.

For the last pod, the simulator compares what it asks for of *one* GPU with what is left. So do we.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.problem import MOST_PODS, ClusterProblem

RATIO: Final = 1.3
"""What pods ask for in the paper's figures, over the GPUs of the cluster."""
MOST_RATIO: Final = 10.0
DRAWN_AT_ONCE: Final = 1024


class Arrivals(NamedTuple):
    """What is drawn for a run."""

    kinds: NDArray[np.int64]
    """(pods,) the kind of each pod, in order of arrival."""
    node_order: NDArray[np.int64]
    """(nodes,) the node of each row of a cluster's state."""
    draws: NDArray[np.float64]
    """(pods, 2) numbers from 0 to below 1, for policies that draw."""


def draw_arrivals(problem: ClusterProblem, seed: int, ratio: float = RATIO) -> Arrivals:
    """Draw a run; the same for every policy.

    Args:
        problem: nodes and workload.
        seed: at least 0.
        ratio: what the pods ask for in the end, over the GPUs of the cluster, above 0 to 10.

    Raises:
        InputError: the ratio is none, or too many pods would arrive.
    """
    if not 0.0 < ratio <= MOST_RATIO:
        raise InputError(f"the ratio is {ratio:g}, must be above 0 and at most {MOST_RATIO:g}")
    workload, room = problem.workload, ratio * problem.capacity_milli
    submitted = np.repeat(np.arange(len(workload.kinds)), workload.counts)
    if (expected := len(submitted) * room / workload.asked_milli) > MOST_PODS:
        raise InputError(
            f"{workload.name}: about {expected:.0f} pods would arrive until they have asked for {ratio:g} times the "
            f"GPUs, must be at most {MOST_PODS}"
        )
    one = np.array([kind.gpu_milli for kind in workload.kinds])
    asked = np.array([kind.asked_milli for kind in workload.kinds])
    rng = np.random.default_rng(seed)
    kinds, total = rng.permutation(submitted).tolist(), workload.asked_milli
    if total > room:
        while total > room:
            total -= int(asked[kinds.pop(int(rng.integers(len(kinds))))])
    elif total < room:
        full = False
        while not full:
            for kind in submitted[rng.integers(len(submitted), size=DRAWN_AT_ONCE)].tolist():
                full = total + int(one[kind]) > room
                if full:
                    break
                total += int(asked[kind])
                kinds.append(kind)
    order = rng.permutation(len(problem.nodes))
    return Arrivals(np.array(kinds, np.int64), order, rng.random((len(kinds), 2)))

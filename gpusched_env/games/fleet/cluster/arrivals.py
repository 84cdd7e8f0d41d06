"""In which order pods arrive, until they have asked for a given part of the cluster's GPUs, and the order of nodes.

As the published simulator has it (``simulator.go``: ``SortClusterPods``, ``TunePodsByNodeTotalResource``). All pods of
the workload are shuffled. If together they ask for more than the part, single ones are left out at random, until they
do not; if for less, pods are drawn from the workload with replacement and come behind, until the next one would be too
much; of that one, only what it asks for of *one* GPU counts. Then nodes get a random order, the same for the whole run,
in which the first of equally good ones is taken.

Numbers are those of the simulator's generator and of the published seeds, so that a run is the published one, but for a
policy that draws: it does so in an order that threads decide.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.go_random import GoRandom
from gpusched_env.games.fleet.cluster.problem import MOST_PODS, ClusterProblem

RATIO: Final = 1.3
"""What pods ask for in the paper's figures, over the GPUs of the cluster."""
MOST_RATIO: Final = 10.0
MOST_CHOICES: Final = 2_000_000_000
"""Pods times nodes, at most: seconds of a policy."""
LOGGED: Final = 1
"""Numbers that the simulator draws for its log before it shuffles pods (``core.go``)."""
WATCHES: Final = 10
"""Numbers that it draws between pods and nodes. Ten watches of Kubernetes start there, each of which draws how long it
stays open (client-go, ``reflector.go``). The count was found by trying 0 to 39 on sixteen of the published runs: with
10 all agree to the last digit, and with no other does any."""


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
        seed: 0 to 2^63 - 1.
        ratio: what the pods ask for in the end, over the GPUs of the cluster, above 0 to 10.

    Raises:
        InputError: the ratio is none, or too many pods would arrive.
    """
    if not 0.0 < ratio <= MOST_RATIO:
        raise InputError(f"the ratio is {ratio:g}, must be above 0 and at most {MOST_RATIO:g}")
    workload, room = problem.workload, ratio * problem.capacity_milli
    pods = len(workload.submitted)
    most = min(MOST_PODS, MOST_CHOICES // len(problem.nodes))
    if (expected := pods * room / workload.asked_milli) > most:
        raise InputError(
            f"{workload.name}: about {expected:.0f} pods would arrive on {len(problem.nodes)} nodes until they have "
            f"asked for {ratio:g} times the GPUs, must be at most {most}"
        )
    asked = [kind.asked_milli for kind in workload.kinds]
    kinds, total, random = list(workload.submitted), workload.asked_milli, GoRandom(seed)
    for _ in range(LOGGED):
        random.next63()
    random.shuffle(kinds)
    if total > room:
        while total > room:
            total -= asked[kinds.pop(random.below(len(kinds)))]
    elif total < room:
        while total + workload.kinds[kind := workload.submitted[random.below(pods)]].gpu_milli <= room:
            total += asked[kind]
            kinds.append(kind)
    if not kinds:
        raise InputError(f"{workload.name}: every pod asks for more than {ratio:g} times the GPUs of the cluster")
    for _ in range(WATCHES):
        random.next63()
    order = np.argsort(random.permutation(len(problem.nodes)))
    draws = np.random.default_rng(seed).random((len(kinds), 2))
    return Arrivals(np.array(kinds, np.int64), order, draws)

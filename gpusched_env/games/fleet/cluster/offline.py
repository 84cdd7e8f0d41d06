"""What could be in use at best if all pods were known beforehand, and some of them refused: a bound, and a packing.

* **The bound** is a linear programme over classes of equal nodes. Pods of each kind are dealt out to classes, within
  the CPU, the memory and the GPUs of a class together. Shared GPUs are filled by *mixtures* of shares that fit on one
  GPU, found one by one as the stock's cuts are (Gilmore and Gomory, Operations Research 1961).
* **The packing** fills node after node, those with the least CPU a GPU first, each with what is worth most of the pods
  that are left: an integer programme of one node. Where many equal nodes are left and pods suffice, a quarter of them
  is filled alike.

Pods that ask for no GPU are left out, so that none takes a CPU away. So both are for a scheduler that may refuse; a
policy must place each pod that fits, in the order of arrival.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, lil_array

from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU, ClusterProblem, Node, PodKind

Floats = NDArray[np.float64]
NODE_LIMIT_S: Final = 3.0
"""Longest search for what one node holds; then the best that was found counts."""
ENOUGH: Final = 1e-3
"""Share by which the content of a node may be worth less than the best."""
LARGER_FIRST: Final = 0.01
"""By so much more a GPU of a pod counts that asks for another whole one: what is large finds no room later."""
ALIKE: Final = 4
"""One in so many of the equal nodes that are left gets the same content."""


class Demand(NamedTuple):
    """Pods that ask for a GPU, by kind."""

    kinds: tuple[PodKind, ...]
    pods: Floats
    """(kinds,) how many have arrived."""

    @classmethod
    def of(cls, problem: ClusterProblem, arrived: Sequence[int]) -> Demand:
        """Of pods that have arrived, each by its kind in the workload."""
        counts = Counter(kind for kind in arrived if problem.workload.kinds[kind].gpus)
        return cls(tuple(problem.workload.kinds[kind] for kind in counts), np.array(list(counts.values()), float))

    @property
    def milli(self) -> Floats:
        """(kinds,) thousandths of GPUs that a pod takes."""
        return np.array([kind.asked_milli for kind in self.kinds], float)

    @property
    def shares(self) -> list[int]:
        """Thousandths of one GPU that pods ask for that share it, ascending."""
        return sorted({kind.gpu_milli for kind in self.kinds if kind.gpu_milli < WHOLE_GPU})


def fits_on(kind: PodKind, node: Node) -> bool:
    """Whether an empty node can hold a pod of the kind."""
    return (
        (not kind.allowed or node.model in kind.allowed)
        and kind.gpus <= node.gpus
        and kind.cpu_milli <= node.cpu_milli
        and kind.memory_mib <= node.memory_mib
    )


def bound_milli(problem: ClusterProblem, arrived: Sequence[int]) -> float:
    """What no policy can have more of in use, thousandths of GPUs.

    Args:
        problem: nodes and workload.
        arrived: the kind of each pod, as of :attr:`Workload.kinds <.problem.Workload.kinds>`.
    """
    demand = Demand.of(problem, arrived)
    classes = Counter(node for node in problem.nodes if node.gpus)
    mixtures = [
        tuple(int(s == t) * (WHOLE_GPU // share) for t in demand.shares) for s, share in enumerate(demand.shares)
    ]
    while True:
        found, prices = _dealt(classes, demand, mixtures)
        known = len(mixtures)
        for of_gpu, of_shares in prices:
            worth, mixture = _mixture(demand.shares, of_shares)
            if worth > of_gpu + 1e-6 * WHOLE_GPU and mixture not in mixtures:
                mixtures.append(mixture)
        if len(mixtures) == known:
            return found


def _dealt(
    classes: Counter[Node], demand: Demand, mixtures: Sequence[tuple[int, ...]]
) -> tuple[float, list[tuple[float, Floats]]]:
    """The most in use by mixtures that are known; by class, the price of a GPU and of each share on it."""
    shares, kinds = demand.shares, len(demand.kinds)
    width, height = kinds + len(mixtures), 3 + len(shares)
    rows = lil_array((len(classes) * height + kinds, len(classes) * width))
    have, most, worth = [], [], []
    for c, (node, nodes) in enumerate(classes.items()):
        at, first = c * height, c * width
        for k, kind in enumerate(demand.kinds):
            rows[at, first + k], rows[at + 1, first + k] = kind.cpu_milli, kind.memory_mib
            if kind.gpu_milli == WHOLE_GPU:
                rows[at + 2, first + k] = kind.gpus
            else:
                rows[at + 3 + shares.index(kind.gpu_milli), first + k] = 1.0
            rows[len(classes) * height + k, first + k] = 1.0
            most.append(np.inf if fits_on(kind, node) else 0.0)
        for m, mixture in enumerate(mixtures):
            rows[at + 2, first + kinds + m] = 1.0
            for s, times in enumerate(mixture):
                rows[at + 3 + s, first + kinds + m] = -times
            most.append(np.inf)
        worth += [*demand.milli, *[0.0] * len(mixtures)]
        have += [nodes * node.cpu_milli, nodes * node.memory_mib, nodes * node.gpus, *[0.0] * len(shares)]
    found = linprog(
        -np.array(worth), A_ub=csr_array(rows), b_ub=[*have, *demand.pods],
        bounds=list(zip([0.0] * len(most), most, strict=True)), method="highs",
    )  # fmt: skip
    prices = -found.ineqlin.marginals[: len(classes) * height].reshape(len(classes), height)
    return -float(found.fun), [(float(row[2]), row[3:]) for row in prices]


def _mixture(shares: Sequence[int], prices: Floats) -> tuple[float, tuple[int, ...]]:
    """The shares that fit on one GPU and are worth most, and what they are worth."""
    worth, last = np.zeros(WHOLE_GPU + 1), np.full(WHOLE_GPU + 1, -1)
    for room in range(1, WHOLE_GPU + 1):
        worth[room] = worth[room - 1]
        for s, share in enumerate(shares):
            if share <= room and worth[room - share] + prices[s] > worth[room] + 1e-9:
                worth[room], last[room] = worth[room - share] + prices[s], s
    times, room = [0] * len(shares), WHOLE_GPU
    while room > 0:
        s = int(last[room])
        if s >= 0:
            times[s] += 1
        room -= shares[s] if s >= 0 else 1
    return float(worth[WHOLE_GPU]), tuple(times)


class NodeProgramme:
    """What one node can hold, as an integer programme: pods by kind, and pods by share on each GPU."""

    def __init__(self, node: Node, demand: Demand) -> None:
        shares, kinds, gpus = demand.shares, len(demand.kinds), node.gpus
        rows = lil_array((3 + len(shares) + gpus, kinds + gpus * (len(shares) + 1)))
        for k, kind in enumerate(demand.kinds):
            rows[0, k], rows[1, k] = kind.cpu_milli, kind.memory_mib
            if kind.gpu_milli == WHOLE_GPU:
                rows[2, k] = kind.gpus
            else:
                rows[3 + shares.index(kind.gpu_milli), k] = 1.0
        for gpu in range(gpus):
            # Whether the GPU is shared, and what shares it.
            first, of_gpu = kinds + gpu * (len(shares) + 1), 3 + len(shares) + gpu
            rows[2, first], rows[of_gpu, first] = 1.0, -WHOLE_GPU
            for s, share in enumerate(shares):
                rows[3 + s, first + 1 + s], rows[of_gpu, first + 1 + s] = -1.0, share
        high = [float(node.cpu_milli), float(node.memory_mib), float(gpus), *[0.0] * (len(shares) + gpus)]
        low = [-np.inf] * 3 + [0.0] * len(shares) + [-np.inf] * gpus
        self._fits = np.array([fits_on(kind, node) for kind in demand.kinds])
        self._within = LinearConstraint(csr_array(rows), low, high)
        self._most_shared = [1.0, *(float(WHOLE_GPU // share) for share in shares)] * gpus

    def best(self, worth: Floats, left: Floats) -> Floats:
        """The pods of each kind, (kinds,), that are worth most together.

        Args:
            worth: (kinds,) of a pod.
            left: (kinds,) pods that there are.
        """
        cost = np.zeros(len(worth) + len(self._most_shared))
        cost[: len(worth)] = -worth
        most = np.concatenate([np.where(self._fits, left, 0.0), self._most_shared])
        found = milp(
            cost, constraints=self._within, bounds=Bounds(0.0, most), integrality=np.ones_like(cost),
            options={"time_limit": NODE_LIMIT_S, "mip_rel_gap": ENOUGH},
        )  # fmt: skip
        return np.zeros(len(worth)) if found.x is None else np.rint(found.x[: len(worth)])


def packed_milli(problem: ClusterProblem, arrived: Sequence[int]) -> float:
    """What a packing has in use that knows all pods, thousandths of GPUs.

    Args:
        problem: nodes and workload.
        arrived: the kind of each pod, as of :attr:`Workload.kinds <.problem.Workload.kinds>`.
    """
    demand = Demand.of(problem, arrived)
    worth = demand.milli * (1.0 + LARGER_FIRST * demand.milli / WHOLE_GPU)
    left, used = demand.pods.copy(), 0.0
    classes = Counter(node for node in problem.nodes if node.gpus)
    for node, empty in sorted(classes.items(), key=lambda item: item[0].cpu_milli / item[0].gpus):
        programme = NodeProgramme(node, demand)
        while empty:
            content = programme.best(worth, left)
            if not content.any():
                break
            suffice = int((left[content > 0] // content[content > 0]).min())
            nodes = max(1, min(suffice, empty // ALIKE))
            left -= nodes * content
            empty -= nodes
            used += nodes * float(content @ demand.milli)
    return used

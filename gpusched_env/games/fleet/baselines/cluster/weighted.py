"""FGD with its knobs: how many typical pods it looks at, and scores of other policies that are added to its own.

With the options at 0 and all typical pods it is FGD as published. Scores are those of the published simulator, 0 to
100; the GPUs of a node are FGD's. All nodes are looked at.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

import numpy as np

from gpusched_env.baselines.ranges import Choice, Range, Ranges
from gpusched_env.compiling import native
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.arrivals import draw_arrivals
from gpusched_env.games.fleet.cluster.fragmentation import POPULARITY, TypicalPods, measure_nodes
from gpusched_env.games.fleet.cluster.placing import NOWHERE, KeptScores, choose_gpus, place_pod, refresh_scores
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.run import new_cluster
from gpusched_env.games.fleet.cluster.state import USED_MILLI
from gpusched_env.games.fleet.environment.cluster.problems import HUNDRED, cluster_problem

ADDED: Final = (Policy.BEST_FIT, Policy.DOT_PRODUCT, Policy.PACKING)
"""Policies whose scores are added."""


def most_typical(typical: TypicalPods, share: float) -> TypicalPods:
    """The first typical pods until they are a share of all pods, at most those that there are."""
    reached = np.cumsum(typical.share) * POPULARITY
    count = min(len(reached), 1 + int(np.searchsorted(reached, share - 1e-9)))
    first = TypicalPods(*(np.ascontiguousarray(column[:count]) for column in typical))
    return first._replace(share=first.share / first.share.sum())


@native()
def place_weighted(state: Any, pods: Any, typical: Any, fgd: Any, others: Any, weights: Any, arrivals: Any) -> None:
    """Place pods one after the other; what fits nowhere is dropped.

    Args:
        state: of the cluster, measured by the typical pods.
        pods: what kinds ask for.
        typical: pods by which fragmentation is measured.
        fgd: kept scores.
        others: those of :data:`ADDED`, which share ``changed_at`` and ``placed`` with it.
        weights: (3,) of these.
        arrivals: (pods,) kind of each.
    """
    best_fit, dot_product, packing = others
    for pod in range(len(arrivals)):
        kind = arrivals[pod]
        refresh_scores(Policy.FGD, state, pods, typical, fgd, kind)
        refresh_scores(Policy.BEST_FIT, state, pods, typical, best_fit, kind)
        refresh_scores(Policy.DOT_PRODUCT, state, pods, typical, dot_product, kind)
        refresh_scores(Policy.PACKING, state, pods, typical, packing, kind)
        found, best = NOWHERE, -np.inf
        for node in range(len(state.gpus)):
            if fgd.score[kind, node] == NOWHERE:
                continue
            score = (
                fgd.score[kind, node]
                + weights[0] * best_fit.score[kind, node]
                + weights[1] * dot_product.score[kind, node]
                + weights[2] * packing.score[kind, node]
            )
            if score > best:
                found, best = node, score
        if found != NOWHERE:
            mask = choose_gpus(Policy.FGD, state, pods, typical, found, kind, 0.0)
            place_pod(state, pods, typical, fgd, found, kind, mask)


class WeightedDescent:
    """FGD with fewer typical pods, and with weighted scores of BestFit, DotProd and Packing added to its own."""

    ranges: ClassVar[Ranges] = {
        "typical": Choice((0.3, 0.5, 0.7, 0.8, 0.9, POPULARITY)),
        "best_fit": Range(-1.0, 1.0),
        "dot_product": Range(-1.0, 1.0),
        "packing": Range(-1.0, 1.0),
    }

    def __init__(
        self, typical: float = POPULARITY, best_fit: float = 0.0, dot_product: float = 0.0, packing: float = 0.0
    ) -> None:
        """
        Args:
            typical: share of the pods that typical ones are, above 0 to 0.95.
            best_fit: weight of BestFit's score beside FGD's.
            dot_product: of DotProd's.
            packing: of Packing's.

        Raises:
            InputError: no such share, or a weight that is no number.
        """
        if not 0.0 < typical <= POPULARITY:
            raise InputError(f"weighted-fgd: typical is {typical}, must be above 0 and at most {POPULARITY}")
        self.weights = np.array([best_fit, dot_product, packing], float)
        if not np.isfinite(self.weights).all():
            raise InputError(f"weighted-fgd: weights are {self.weights.tolist()}, must be numbers")
        self.typical = typical

    def allocation(self, problem: str, seed: int) -> float:
        """Per cent of the GPUs that are in use at the end."""
        cluster = cluster_problem(problem, seed)
        arrivals = draw_arrivals(cluster, seed)
        state, pods, usual = new_cluster(cluster, arrivals)
        typical = most_typical(usual, self.typical)
        measure_nodes(state, typical)
        shape = len(cluster.workload.kinds), len(cluster.nodes)
        changed_at, placed = np.zeros(shape[1], np.int64), np.zeros(1, np.int64)
        fgd, *others = (
            KeptScores(np.zeros(shape, np.int16), np.full(shape[0], -1), changed_at, placed)
            for _ in (Policy.FGD, *ADDED)
        )
        place_weighted(state, pods, typical, fgd, tuple(others), self.weights, arrivals.kinds)
        return float(HUNDRED * state.totals[USED_MILLI] / cluster.capacity_milli)

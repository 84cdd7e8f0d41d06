"""A pod arrives, a policy chooses a node and GPUs, and the pod is placed there.

A score depends on the kind of pod and on what is free on the node, and on nothing else. So it is kept, and reckoned
anew where pods were placed or went since a pod of the kind was there last.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from gpusched_env.compiling import native, procedure
from gpusched_env.games.fleet.cluster.fragmentation import node_fragmentation
from gpusched_env.games.fleet.cluster.gpus import (
    drawn_gpu,
    first_free_gpus,
    fits,
    give_back,
    shares_gpu,
    take,
    tightest_gpu,
)
from gpusched_env.games.fleet.cluster.policies.best_fit import best_fit_score
from gpusched_env.games.fleet.cluster.policies.clustering import clustering_score
from gpusched_env.games.fleet.cluster.policies.dot_product import dot_product_score
from gpusched_env.games.fleet.cluster.policies.fgd import fgd_score
from gpusched_env.games.fleet.cluster.policies.packing import packing_score
from gpusched_env.games.fleet.cluster.policies.random import EQUAL, drawn_node
from gpusched_env.games.fleet.cluster.policies.registry import Policy
from gpusched_env.games.fleet.cluster.state import FRAGMENTED_MILLI, SHARED, USED_MILLI

NOWHERE: Final = -1
"""In place of a node, and of a score: the pod does not fit."""


class KeptScores(NamedTuple):
    """Scores by kind of pod and node, and when each is from."""

    score: Any
    """(kinds, nodes) int16; :data:`NOWHERE`: it does not fit."""
    looked_at: Any
    """(kinds,) number of changes that there had been when the row was reckoned; -1: it was not."""
    changed_at: Any
    """(nodes,) number of the last change of a node."""
    placed: Any
    """(1,) number of changes so far: pods that were placed, and pods that went since."""


def no_scores(kinds: int, nodes: int) -> KeptScores:
    """Nothing is reckoned yet."""
    return KeptScores(
        np.zeros((kinds, nodes), np.int16), np.full(kinds, -1), np.zeros(nodes, np.int64), np.zeros(1, np.int64)
    )


@procedure
def node_score(policy: int, state: Any, pods: Any, typical: Any, node: int, kind: int) -> int:
    """A node's score for a kind of pod, 0 to 100; :data:`NOWHERE`: it does not fit."""
    if not fits(state, pods, node, kind):
        return NOWHERE
    if policy == Policy.DOT_PRODUCT:
        return dot_product_score(state, pods, node, kind)
    if policy == Policy.CLUSTERING:
        return clustering_score(state, pods, node, kind)
    if policy == Policy.PACKING:
        return packing_score(state, pods, node, kind)
    if policy == Policy.BEST_FIT:
        return best_fit_score(state, pods, node, kind)
    if policy == Policy.FGD:
        return fgd_score(state, pods, typical, node, kind)[0]
    return EQUAL


@procedure
def refresh_scores(policy: int, state: Any, pods: Any, typical: Any, kept: Any, kind: int) -> None:
    """Reckon the scores of a kind anew where something has changed since."""
    last = kept.looked_at[kind]
    for node in range(len(state.gpus)):
        if kept.changed_at[node] > last:
            kept.score[kind, node] = node_score(policy, state, pods, typical, node, kind)
    kept.looked_at[kind] = kept.placed[0]


@procedure
def choose_node(policy: int, state: Any, pods: Any, typical: Any, kept: Any, kind: int, draw: float) -> int:
    """The node of a pod; :data:`NOWHERE`: it fits on none. ``draw``, 0 to below 1, is for the policy Random."""
    refresh_scores(policy, state, pods, typical, kept, kind)
    if policy == Policy.RANDOM:
        return drawn_node(kept.score[kind], draw)
    found, best = NOWHERE, NOWHERE
    for node in range(len(state.gpus)):
        if kept.score[kind, node] > best:
            found, best = node, kept.score[kind, node]
    return found


@procedure
def choose_gpus(policy: int, state: Any, pods: Any, typical: Any, node: int, kind: int, draw: float) -> int:
    """The mask of the GPUs that a pod gets on a node on which it fits."""
    if not shares_gpu(pods, kind):
        return first_free_gpus(state, pods, node, kind)
    if policy == Policy.RANDOM:
        return drawn_gpu(state, pods, node, kind, draw)
    if policy == Policy.FGD:
        return fgd_score(state, pods, typical, node, kind)[1]
    return tightest_gpu(state, pods, node, kind)


@procedure
def place_pod(state: Any, pods: Any, typical: Any, kept: Any, node: int, kind: int, mask: int) -> None:
    """Place a pod on a node, which can take it, and on these of its GPUs."""
    take(state, pods, node, kind, mask)
    count_pod(state, pods, typical, kept, node, kind, 1)


@procedure
def remove_pod(state: Any, pods: Any, typical: Any, kept: Any, node: int, kind: int, mask: int) -> None:
    """A pod that was placed on a node and these of its GPUs goes."""
    give_back(state, pods, node, kind, mask)
    count_pod(state, pods, typical, kept, node, kind, -1)


@procedure
def count_pod(state: Any, pods: Any, typical: Any, kept: Any, node: int, kind: int, more: int) -> None:
    """Classes, totals, fragmentation and kept scores after a pod was placed on a node (``more`` is 1) or went (-1)."""
    if pods.gpus[kind] > 0:
        state.classes[node, SHARED if shares_gpu(pods, kind) else pods.gpus[kind]] += more
    state.totals[USED_MILLI] += more * pods.gpus[kind] * pods.gpu_milli[kind]
    before: float = state.fragmentation[node]
    state.fragmentation[node] = node_fragmentation(state, typical, node)
    state.totals[FRAGMENTED_MILLI] += state.fragmentation[node] - before
    kept.placed[0] += 1
    kept.changed_at[node] = kept.placed[0]


@native()
def place_all(
    policy: int, state: Any, pods: Any, typical: Any, kept: Any, arrivals: Any, draws: Any, after: Any
) -> None:
    """Place pods one after the other; what fits nowhere is dropped.

    Args:
        policy: a :class:`Policy`.
        state: of the cluster, measured.
        pods: what kinds ask for.
        typical: pods by which fragmentation is measured.
        kept: scores.
        arrivals: (pods,) kind of each.
        draws: (pods, 2) numbers from 0 to below 1, for node and GPU.
        after: the :class:`~gpusched_env.games.fleet.cluster.run.Placements` to fill.
    """
    for pod in range(len(arrivals)):
        kind = arrivals[pod]
        node = choose_node(policy, state, pods, typical, kept, kind, draws[pod, 0])
        after.node[pod] = node
        if node != NOWHERE:
            mask = choose_gpus(policy, state, pods, typical, node, kind, draws[pod, 1])
            after.gpus[pod] = mask
            place_pod(state, pods, typical, kept, node, kind, mask)
        after.used_milli[pod] = state.totals[USED_MILLI]
        after.fragmented_milli[pod] = state.totals[FRAGMENTED_MILLI]

"""The nodes that are offered for a pod: the best by several scores, and of each GPU model.

Of nodes that are equal, the first by any score stands for all. First comes the node that FGD takes as published; then,
in turn, the next best by each score, up to :data:`DEPTH` of each; then the best of each of the first
:data:`MOST_MODELS` models by how little fragmentation grows. For a pod that shares a GPU, the same nodes follow with
their tightest GPU, where that is another.
"""

from __future__ import annotations

import enum
from typing import Any, Final, NamedTuple

import numpy as np

from gpusched_env.compiling import procedure
from gpusched_env.games.fleet.cluster.gpus import first_free_gpus, fits, give_back, shares_gpu, take, tightest_gpu
from gpusched_env.games.fleet.cluster.placing import NOWHERE
from gpusched_env.games.fleet.cluster.policies.best_fit import best_fit_score
from gpusched_env.games.fleet.cluster.policies.dot_product import dot_product_score
from gpusched_env.games.fleet.cluster.policies.fgd import growth_with, published_score
from gpusched_env.games.fleet.cluster.policies.packing import packing_score
from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU
from gpusched_env.games.fleet.environment.cluster.demand import stranded_milli, unfillable_milli

CANDIDATES: Final = 32
"""Offered at most."""
DEPTH: Final = 3
"""Nodes that each score proposes."""
MOST_MODELS: Final = 8
NO_FIT: Final = -1e9
"""In place of a score: the pod does not fit."""
MOST_PAIRS: Final = 20_000_000
"""Nodes times kinds of pods, at most: each pair has all scores in memory."""


class Score(enum.IntEnum):
    """By what nodes are proposed; the larger the better."""

    PUBLISHED = 0
    """FGD's: 0 to 100, a whole number."""
    DESCENT = enum.auto()
    """GPUs by which fragmentation shrinks."""
    FILL = enum.auto()
    """GPUs by which what is unfillable shrinks."""
    BALANCE = enum.auto()
    """GPUs by which those shrink for which CPU or memory lacks."""
    BEST_FIT = enum.auto()
    DOT_PRODUCT = enum.auto()
    PACKING = enum.auto()
    """0 to 100, whole numbers."""


class NodeScores(NamedTuple):
    """Scores by kind of pod and node, kept as in :class:`gpusched_env.games.fleet.cluster.placing.KeptScores`."""

    score: Any
    """(kinds, scores, nodes) float32."""
    mask: Any
    """(kinds, 2, nodes) GPUs that FGD takes as published, and those by which fragmentation grows least."""
    looked_at: Any
    """(kinds,)"""


class Shortlist(NamedTuple):
    """Candidates, and what they are chosen with."""

    node: Any
    mask: Any
    """(CANDIDATES,) row of the node and its GPUs; ``NOWHERE`` where there is none."""
    count: Any
    """(1,) number of candidates."""
    best: Any
    """(scores, DEPTH) nodes, the best first."""
    of_model: Any
    """(MOST_MODELS,) nodes."""


def no_node_scores(kinds: int, nodes: int) -> NodeScores:
    """Nothing is reckoned yet."""
    return NodeScores(
        np.zeros((kinds, len(Score), nodes), np.float32), np.zeros((kinds, 2, nodes), np.int16), np.full(kinds, -1)
    )


def no_shortlist(candidates: int = CANDIDATES, depth: int = DEPTH) -> Shortlist:
    """Nothing is offered; there is room for so many candidates, of which each score proposes ``depth``."""
    return Shortlist(
        np.full(candidates, NOWHERE),
        np.zeros(candidates, np.int64),
        np.zeros(1, np.int64),
        np.full((len(Score), depth), NOWHERE),
        np.full(MOST_MODELS, NOWHERE),
    )


@procedure
def unfillable_growth(state: Any, pods: Any, demand: Any, node: int, kind: int, mask: int) -> float:
    """GPUs by which what is unfillable on a node grows."""
    take(state, pods, node, kind, mask)
    after = unfillable_milli(state, pods, demand, node)
    give_back(state, pods, node, kind, mask)
    return float((after - demand.unfillable[node]) / WHOLE_GPU)


@procedure
def stranded_growth(state: Any, pods: Any, demand: Any, node: int, kind: int, mask: int, resource: int) -> float:
    """GPUs by which those of a node grow for which CPU (0) or memory (1) lacks."""
    before = stranded_milli(state, demand, node, resource)
    take(state, pods, node, kind, mask)
    after = stranded_milli(state, demand, node, resource)
    give_back(state, pods, node, kind, mask)
    return (after - before) / WHOLE_GPU


@procedure
def score_node(state: Any, pods: Any, typical: Any, demand: Any, scores: Any, node: int, kind: int) -> None:
    """Fill in all scores of a node for a kind of pod."""
    row = scores.score[kind]
    if not fits(state, pods, node, kind):
        for each in range(row.shape[0]):
            row[each, node] = NO_FIT
        return
    least, mask, best, published = 1e9, 0, -1, 0
    if not shares_gpu(pods, kind):
        mask = published = first_free_gpus(state, pods, node, kind)
        least = growth_with(state, pods, typical, node, kind, mask)
        best = published_score(least)
    else:
        for gpu in range(state.gpus[node]):
            left = state.gpu_left[node, gpu]
            tried = left < pods.gpu_milli[kind]
            for other in range(gpu):
                if state.gpu_left[node, other] == left:
                    tried = True
            if tried:
                continue
            growth = growth_with(state, pods, typical, node, kind, 1 << gpu)
            score = published_score(growth)
            if score > best:
                best, published = score, 1 << gpu
            if growth < least:
                least, mask = growth, 1 << gpu
    scores.mask[kind, 0, node], scores.mask[kind, 1, node] = published, mask
    row[Score.PUBLISHED, node] = best
    row[Score.DESCENT, node] = -least
    row[Score.FILL, node] = -unfillable_growth(state, pods, demand, node, kind, mask)
    cpu = stranded_growth(state, pods, demand, node, kind, mask, 0)
    memory = stranded_growth(state, pods, demand, node, kind, mask, 1)
    row[Score.BALANCE, node] = -max(cpu, memory)
    row[Score.BEST_FIT, node] = best_fit_score(state, pods, node, kind)
    row[Score.DOT_PRODUCT, node] = dot_product_score(state, pods, node, kind)
    row[Score.PACKING, node] = packing_score(state, pods, node, kind)


@procedure
def equal_nodes(state: Any, one: int, other: int) -> bool:
    """Whether two nodes have the same model, and the same free."""
    if (
        state.model[one] != state.model[other]
        or state.gpus[one] != state.gpus[other]
        or state.cpu_left[one] != state.cpu_left[other]
        or state.memory_left[one] != state.memory_left[other]
    ):
        return False
    unequal = 0
    for gpu in range(state.gpus[one]):
        if state.gpu_left[one, gpu] != state.gpu_left[other, gpu]:
            unequal += 1
    return unequal == 0


@procedure
def rank_node(state: Any, row: Any, best: Any, score: int, node: int) -> None:
    """Insert a node among the best by a score, the first of equal scores first; not if an equal node is there."""
    value = row[score, node]
    depth = best.shape[1]
    at = depth
    while at > 0 and (best[score, at - 1] == NOWHERE or row[score, best[score, at - 1]] < value):
        at -= 1
    if at == depth:
        return
    # Equal nodes have equal scores, and stand right before.
    before = at - 1
    while before >= 0 and row[score, best[score, before]] == value:
        if equal_nodes(state, best[score, before], node):
            return
        before -= 1
    for place in range(depth - 1, at, -1):
        best[score, place] = best[score, place - 1]
    best[score, at] = node


@procedure
def offer(state: Any, shortlist: Any, node: int, mask: int) -> None:
    """Add a candidate, unless it or an equal one is there, or the list is full."""
    count = shortlist.count[0]
    if node == NOWHERE or count == len(shortlist.node):
        return
    for place in range(count):
        if shortlist.mask[place] == mask and equal_nodes(state, shortlist.node[place], node):
            return
    shortlist.node[count], shortlist.mask[count] = node, mask
    shortlist.count[0] = count + 1


@procedure
def list_candidates(
    state: Any, pods: Any, typical: Any, demand: Any, kept: Any, scores: Any, shortlist: Any, kind: int
) -> None:
    """Fill in the shortlist for a pod of a kind; it is empty if the pod fits nowhere.

    Args:
        kept: when nodes have changed, as :class:`gpusched_env.games.fleet.cluster.placing.KeptScores`.
    """
    best, of_model, row = shortlist.best, shortlist.of_model, scores.score[kind]
    best[:] = NOWHERE
    of_model[:] = NOWHERE
    shortlist.count[0] = 0
    last = scores.looked_at[kind]
    for node in range(len(state.gpus)):
        if kept.changed_at[node] > last:
            score_node(state, pods, typical, demand, scores, node, kind)
        if row[0, node] == NO_FIT:
            continue
        for score in range(row.shape[0]):
            tail = best[score, best.shape[1] - 1]
            if tail == NOWHERE or row[score, node] > row[score, tail]:
                rank_node(state, row, best, score, node)
        model = state.model[node]
        if model < len(of_model):
            leader = of_model[model]
            if leader == NOWHERE or row[Score.DESCENT, node] > row[Score.DESCENT, leader]:
                of_model[model] = node
    scores.looked_at[kind] = kept.placed[0]
    if best[Score.PUBLISHED, 0] != NOWHERE:
        offer(state, shortlist, best[Score.PUBLISHED, 0], scores.mask[kind, 0, best[Score.PUBLISHED, 0]])
    for depth in range(best.shape[1]):
        for score in range(Score.DESCENT, row.shape[0]):
            node = best[score, depth]
            if node != NOWHERE:
                offer(state, shortlist, node, scores.mask[kind, 1, node])
    for model in range(len(of_model)):
        node = of_model[model]
        if node != NOWHERE:
            offer(state, shortlist, node, scores.mask[kind, 1, node])
    if shares_gpu(pods, kind):
        for place in range(shortlist.count[0]):
            node = shortlist.node[place]
            offer(state, shortlist, node, tightest_gpu(state, pods, node, kind))
    for place in range(shortlist.count[0], len(shortlist.node)):
        shortlist.node[place] = NOWHERE

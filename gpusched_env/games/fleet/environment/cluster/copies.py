"""Copies of the game, each with a cluster and arrivals of its own, side by side in arrays.

Every array has one row more than what it holds for one copy: its number. Arrays are as large as the largest cluster and
the largest workload need; a copy sees its own part of them.
"""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import numpy as np

from gpusched_env.compiling import procedure
from gpusched_env.errors import InputError
from gpusched_env.games.fleet.cluster.arrivals import Arrivals
from gpusched_env.games.fleet.cluster.fragmentation import TypicalPods
from gpusched_env.games.fleet.cluster.placing import KeptScores
from gpusched_env.games.fleet.cluster.problem import ClusterProblem
from gpusched_env.games.fleet.cluster.run import new_cluster
from gpusched_env.games.fleet.cluster.state import ClusterState, PodTable
from gpusched_env.games.fleet.environment.cluster.demand import Demand, demand_of, measure_unfillable
from gpusched_env.games.fleet.environment.cluster.shortlist import (
    MOST_PAIRS,
    NodeScores,
    Shortlist,
    no_node_scores,
    no_shortlist,
)


class Size(enum.IntEnum):
    """Of a copy's cluster and workload."""

    NODES = 0
    KINDS = enum.auto()
    TYPICAL = enum.auto()
    COMMON = enum.auto()
    MODELS = enum.auto()
    """With one more, for nodes without GPUs."""
    PODS = enum.auto()


class At(enum.IntEnum):
    """Where an episode is."""

    POD = 0
    """The number of the next pod."""
    DECISIONS = enum.auto()
    ILLEGAL = enum.auto()
    DROPPED = enum.auto()
    """Pods that fitted nowhere."""


class Total(enum.IntEnum):
    """Of the whole cluster."""

    CPU_LEFT = 0
    MEMORY_LEFT = enum.auto()
    CPU = enum.auto()
    MEMORY = enum.auto()
    GPU = enum.auto()
    """Thousandths of a core, MiB, and thousandths of a GPU."""


class Copies(NamedTuple):
    """The arrays of all copies; of :func:`copy_of`: those of one."""

    state: Any
    pods: Any
    typical: Any
    demand: Any
    kept: Any
    scores: Any
    shortlist: Any
    totals: Any
    """(copies, totals) as :class:`Total`."""
    arrivals: Any
    """(copies, pods) kind of each."""
    at: Any
    """(copies, 4) as :class:`At`."""
    sizes: Any
    """(copies, sizes) as :class:`Size`."""


def single_copy(problem: ClusterProblem, arrivals: Arrivals, shortlist: Shortlist | None = None) -> Copies:
    """The arrays of a cluster without pods, one copy, without the row of its number.

    Args:
        problem: its nodes and workload.
        arrivals: which pods come.
        shortlist: an empty one; ``None``: of the usual length.

    Raises:
        InputError: the problem is too large to keep all scores.
    """
    nodes, kinds = len(problem.nodes), len(problem.workload.kinds)
    if nodes * kinds > MOST_PAIRS:
        raise InputError(
            f"{problem.workload.name}: {kinds} kinds of pods on {nodes} nodes are {nodes * kinds} pairs, "
            f"must be at most {MOST_PAIRS}"
        )
    state, pods, typical = new_cluster(problem, arrivals)
    demand = demand_of(problem, state, pods)
    measure_unfillable(state, pods, demand)
    cpu, memory = float(state.cpu_left.sum()), float(state.memory_left.sum())
    return Copies(
        state=state,
        pods=pods,
        typical=typical,
        demand=demand,
        kept=KeptScores(np.zeros((1, 1), np.int16), np.zeros(1, np.int64), np.zeros(nodes, np.int64), np.zeros(1, int)),
        scores=no_node_scores(kinds, nodes),
        shortlist=no_shortlist() if shortlist is None else shortlist,
        totals=np.array([cpu, memory, cpu, memory, float(problem.capacity_milli)]),
        arrivals=arrivals.kinds,
        at=np.zeros(len(At), np.int64),
        sizes=np.array(
            [nodes, kinds, len(typical.share), len(demand.kinds), len(demand.model_gpus), len(arrivals.kinds)]
        ),
    )


def with_room(copies: Copies | None, number: int, count: int, one: Copies) -> Copies:
    """``copies`` with ``one`` in the place of a number; new arrays where those at hand are too small.

    Args:
        copies: ``None``: there are none yet.
        number: of the place.
        count: of places.
        one: as of :func:`single_copy`.
    """
    return Copies(*(_placed(None if copies is None else copies[at], number, count, one[at]) for at in range(len(one))))


def _placed(many: Any, number: int, count: int, one: Any) -> Any:
    if isinstance(one, np.ndarray):
        if many is None or any(have < want for have, want in zip(many.shape[1:], one.shape, strict=True)):
            shape = one.shape if many is None else tuple(map(max, many.shape[1:], one.shape))
            larger = np.zeros((count, *shape), one.dtype)
            if many is not None:
                larger[tuple(slice(size) for size in many.shape)] = many
            many = larger
        many[(number, *(slice(size) for size in one.shape))] = one
        return many
    parts = (_placed(None if many is None else many[at], number, count, part) for at, part in enumerate(one))
    return type(one)(*parts)


@procedure
def copy_of(copies: Any, number: int) -> Any:
    """The arrays of one copy, which are its own parts of those of all."""
    size = copies.sizes[number]
    nodes, kinds, models = size[Size.NODES], size[Size.KINDS], size[Size.MODELS]
    typical, common = size[Size.TYPICAL], size[Size.COMMON]
    state, pods, each, demand = copies.state, copies.pods, copies.typical, copies.demand
    return Copies(
        ClusterState(
            state.cpu_left[number, :nodes],
            state.memory_left[number, :nodes],
            state.gpu_left[number, :nodes],
            state.gpus[number, :nodes],
            state.model[number, :nodes],
            state.classes[number, :nodes],
            state.fragmentation[number, :nodes],
            state.totals[number],
            state.largest[number],
        ),
        PodTable(
            pods.cpu_milli[number, :kinds],
            pods.memory_mib[number, :kinds],
            pods.gpus[number, :kinds],
            pods.gpu_milli[number, :kinds],
            pods.allowed[number, :kinds, :models],
        ),
        TypicalPods(
            each.cpu_milli[number, :typical],
            each.gpus[number, :typical],
            each.gpu_milli[number, :typical],
            each.allowed[number, :typical, :models],
            each.share[number, :typical],
        ),
        Demand(
            demand.kinds[number, :common],
            demand.share[number, :common],
            demand.a_whole[number, :common],
            demand.a_gpu[number],
            demand.parts[number],
            demand.waste[number],
            demand.coming[number],
            demand.holes[number],
            demand.cpu_milli[number, :nodes],
            demand.memory_mib[number, :nodes],
            demand.unfillable[number, :nodes],
            demand.model_gpus[number, :models],
            demand.model_pinned[number, :models],
            demand.model_used[number, :models],
        ),
        KeptScores(
            copies.kept.score[number],
            copies.kept.looked_at[number],
            copies.kept.changed_at[number, :nodes],
            copies.kept.placed[number],
        ),
        NodeScores(
            copies.scores.score[number, :kinds, :, :nodes],
            copies.scores.mask[number, :kinds, :, :nodes],
            copies.scores.looked_at[number, :kinds],
        ),
        Shortlist(
            copies.shortlist.node[number],
            copies.shortlist.mask[number],
            copies.shortlist.count[number],
            copies.shortlist.best[number],
            copies.shortlist.of_model[number],
        ),
        copies.totals[number],
        copies.arrivals[number, : size[Size.PODS]],
        copies.at[number],
        size,
    )

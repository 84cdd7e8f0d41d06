"""What a workload asks for in the mean, and what of a node's GPUs its pods could still fill.

Fragmentation as FGD measures it asks whether one more pod fits. Here each kind of pod fills a node until no more of it
fits, by CPU, memory and GPUs: what that leaves free is unfillable. The expectation over kinds counts, each by its share
of the demand for GPUs. So CPU and memory that will be short count before they are.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpusched_env.compiling import native, procedure
from gpusched_env.games.fleet.cluster.problem import WHOLE_GPU, ClusterProblem
from gpusched_env.games.fleet.cluster.state import ClusterState, PodTable

STEP: Final = 20
"""Thousandths of a GPU."""
LEFT_OUT: Final = 0.02
"""Share of the demand for GPUs of the rarest kinds, which are not looked at."""


class Demand(NamedTuple):
    """A workload in the mean, and what its cluster had at first."""

    kinds: Any
    """(common,) kinds of pods with GPUs, those that ask for most together first."""
    share: Any
    """(common,) of the demand for GPUs; their sum is 1."""
    a_whole: Any
    """(common,) pods on a whole GPU."""
    a_gpu: Any
    """(2,) thousandths of a core, and MiB, that pods with GPUs ask for a thousandth of a GPU."""
    parts: Any
    """(1001,) share of the demand of shared GPUs that asks for at most so many thousandths."""
    waste: Any
    """(1001,) thousandths that pods are expected to leave free of so many that are free of a GPU: those that fit come
    in any order, each by its share, until none fits."""
    coming: Any
    """(1001,) share of all pods that share a GPU and ask for at most so many thousandths."""
    holes: Any
    """(51,) GPUs that are in use in part, by what is free of them, in steps of :data:`STEP`."""
    cpu_milli: Any
    memory_mib: Any
    """(nodes,) of an empty node."""
    unfillable: Any
    """(nodes,) thousandths of GPUs."""
    model_gpus: Any
    """(models + 1,) GPUs of each model; the last is of nodes without."""
    model_pinned: Any
    """(models + 1,) GPUs that pods ask for that cannot run on every model, shared out among those they can run on,
    over the model's."""
    model_used: Any
    """(models + 1,) thousandths of GPUs in use."""


def demand_of(problem: ClusterProblem, state: ClusterState, pods: PodTable) -> Demand:
    """Of a workload, on a cluster without pods."""
    count = np.bincount(problem.workload.submitted, minlength=len(problem.workload.kinds)).astype(float)
    asked = count * pods.gpus * pods.gpu_milli
    order = np.argsort(-asked, kind="stable")
    common = order[: 1 + int(np.searchsorted(np.cumsum(asked[order]), (1.0 - LEFT_OUT) * asked.sum()))]
    common = common[asked[common] > 0]
    with_gpu = pods.gpus > 0
    a_gpu = [float((count * column)[with_gpu].sum() / asked.sum()) for column in (pods.cpu_milli, pods.memory_mib)]
    shared = (pods.gpus == 1) & (pods.gpu_milli < WHOLE_GPU)
    parts = np.cumsum(np.bincount(pods.gpu_milli[shared], asked[shared], minlength=WHOLE_GPU + 1))
    sizes = np.bincount(pods.gpu_milli[shared], count[shared], minlength=WHOLE_GPU + 1).astype(float)
    models = len(problem.models)
    gpus = np.bincount(state.model, state.gpus, minlength=models + 1)
    allowed = pods.allowed[:, :models] & with_gpu[:, None]
    pinned = allowed & ~allowed.all(axis=1)[:, None]
    weight = pinned * gpus[None, :models]
    total = weight.sum(axis=1, keepdims=True)
    wanted = (np.divide(weight, total, out=np.zeros_like(weight), where=total > 0) * asked[:, None]).sum(axis=0)
    wanted *= problem.capacity_milli / asked.sum() / WHOLE_GPU
    over = np.zeros(models + 1)
    over[:models] = wanted / np.maximum(1.0, gpus[:models])
    return Demand(
        kinds=common,
        share=asked[common] / asked[common].sum(),
        a_whole=WHOLE_GPU // pods.gpu_milli[common],
        a_gpu=np.array(a_gpu),
        parts=parts / max(1.0, parts[-1]),
        waste=expected_waste(sizes),
        coming=np.cumsum(sizes) / count.sum(),
        holes=np.zeros(WHOLE_GPU // STEP + 1, np.int64),
        cpu_milli=state.cpu_left.copy(),
        memory_mib=state.memory_left.copy(),
        unfillable=np.zeros(len(state.gpus)),
        model_gpus=gpus.astype(np.int64),
        model_pinned=over,
        model_used=np.zeros(models + 1, np.int64),
    )


def expected_waste(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """:attr:`Demand.waste`; ``sizes``: (1001,) how many pods ask for so many thousandths."""
    waste = np.arange(len(sizes), dtype=float)
    asked = np.flatnonzero(sizes)
    for left in range(len(sizes)):
        fitting = asked[asked <= left]
        if len(fitting):
            waste[left] = sizes[fitting] @ waste[left - fitting] / sizes[fitting].sum()
    return waste


@procedure
def has_hole(left: int) -> bool:
    """Whether a GPU with so many thousandths free is in use in part."""
    return 0 < left < WHOLE_GPU


@procedure
def note_holes(state: Any, demand: Any, node: int, mask: int, change: int) -> None:
    """Count the GPUs of a mask that are in use in part once more (1), or once less (-1)."""
    for gpu in range(state.gpus[node]):
        left = state.gpu_left[node, gpu]
        if (mask >> gpu) & 1 and has_hole(left):
            demand.holes[left // STEP] += change


@procedure
def chance_of_use(demand: Any, left: int, pods_to_come: float) -> float:
    """Pods to come that fit into what is left of a GPU, over them and the GPUs with at most as much left.

    From 0, there are none, to 1, there is no other GPU for them.
    """
    coming = demand.coming[left] * pods_to_come
    others = 1
    for step in range(left // STEP + 1):
        others += demand.holes[step]
    return float(coming / (coming + others))


@procedure
def unfillable_milli(state: Any, pods: Any, demand: Any, node: int) -> float:
    """Thousandths of a node's free GPUs that pods of one kind leave free, in the mean over kinds."""
    total, whole = 0, 0
    for gpu in range(state.gpus[node]):
        total += state.gpu_left[node, gpu]
        whole += 1 if state.gpu_left[node, gpu] == WHOLE_GPU else 0
    if total == 0:
        return 0.0
    filled = 0.0
    for place in range(len(demand.kinds)):
        kind = demand.kinds[place]
        if not pods.allowed[kind, state.model[node]]:
            continue
        milli = pods.gpu_milli[kind]
        room = whole * demand.a_whole[place]
        if whole * WHOLE_GPU < total:
            for gpu in range(state.gpus[node]):
                left = state.gpu_left[node, gpu]
                if milli <= left < WHOLE_GPU:
                    room += left // milli
        if room == 0:
            continue
        if pods.gpus[kind] > 1:
            room //= pods.gpus[kind]
        if pods.cpu_milli[kind] * room > state.cpu_left[node]:
            room = state.cpu_left[node] // pods.cpu_milli[kind]
        if pods.memory_mib[kind] * room > state.memory_left[node]:
            room = state.memory_left[node] // pods.memory_mib[kind]
        filled += demand.share[place] * room * milli * pods.gpus[kind]
    return float(total - filled)


@procedure
def stranded_milli(state: Any, demand: Any, node: int, resource: int) -> float:
    """Thousandths of a node's free GPUs for which CPU (0) or memory (1) lacks, if pods were all as in the mean."""
    total = 0
    for gpu in range(state.gpus[node]):
        total += state.gpu_left[node, gpu]
    left = state.cpu_left[node] if resource == 0 else state.memory_left[node]
    return float(max(0.0, total - left / max(1e-9, demand.a_gpu[resource])))


@native()
def measure_unfillable(state: Any, pods: Any, demand: Any) -> None:
    """Fill in what is unfillable on all nodes."""
    for node in range(len(state.gpus)):
        demand.unfillable[node] = unfillable_milli(state, pods, demand, node)

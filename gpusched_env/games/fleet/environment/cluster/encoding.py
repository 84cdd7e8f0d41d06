"""The columns of an observation: a row for each candidate, with the node as it would be after the pod."""

from __future__ import annotations

from typing import Any, Final

from gpusched_env.compiling import procedure
from gpusched_env.envs.features import FLAG, RATIO, SHARE, SIGNED_RATIO, Feature
from gpusched_env.games.fleet.cluster.gpus import give_back, shares_gpu, take
from gpusched_env.games.fleet.cluster.policies.fgd import growth_with, published_score
from gpusched_env.games.fleet.cluster.problem import MOST_GPUS, WHOLE_GPU
from gpusched_env.games.fleet.cluster.state import FRAGMENTED_MILLI, USED_MILLI
from gpusched_env.games.fleet.environment.cluster.demand import chance_of_use
from gpusched_env.games.fleet.environment.cluster.shortlist import (
    Score,
    stranded_growth,
    unfillable_growth,
)

GROWTH: Final = "growth"
COLUMNS_NOTE: Final = """\
### Columns
Of the node, all but scores are after the pod. `growth`: GPUs, cut to -1 to 1. Sources are fields
of `gpusched_env.games.fleet.cluster.state.ClusterState` and
`gpusched_env.games.fleet.environment.cluster.demand.Demand`.
"""
HUNDRED: Final = 100.0
NEAR: Final = 0.1
"""GPUs of growth at which :attr:`PlacementFeature.DESCENT_NEAR` is a half."""


class PlacementFeature(Feature):
    """A candidate, the pod, and the cluster in all."""

    PRESENT = ("1 if there is such a candidate", FLAG, 0, 1, "shortlist")
    GPU = ("free GPUs of the node, of its GPUs", SHARE, 0, 1, "gpu_left")
    CPU = ("free CPU, of its CPU", SHARE, 0, 1, "cpu_left")
    MEMORY = ("free memory, of its memory", SHARE, 0, 1, "memory_left")
    GPUS = ("its GPUs, of 16", SHARE, 0, 1, "gpus")
    WHOLE = ("GPUs of it that are entirely free, of its GPUs", SHARE, 0, 1, "gpu_left")
    UNUSED = ("1 if no pod is there yet", FLAG, 0, 1, "cpu_left")
    PART = ("free of the GPU that the pod shares; 0 if it shares none", SHARE, 0, 1, "gpu_left")
    EXACT = ("1 if the pod shares a GPU and nothing of it is left", FLAG, 0, 1, "gpu_left")
    OPENS = ("1 if the pod shares a GPU that is entirely free before", FLAG, 0, 1, "gpu_left")
    PART_USE = ("of the demand of shared GPUs: what would fit on what is left of that GPU", SHARE, 0, 1, "parts")
    WASTE = ("what pods are expected to leave free of that GPU", GROWTH, -1, 1, "waste")
    CHANCE = ("pods to come that fit there, over them and the GPUs with at most as much left", SHARE, 0, 1, "holes")
    UNUSED_PART = ("what is left of that GPU, times 1 less that", SHARE, 0, 1, "holes")
    DESCENT = ("fragmentation", GROWTH, -1, 1, "fragmentation")
    DESCENT_NEAR = ("fragmentation, in tenths of a GPU", SIGNED_RATIO, -1, 1, "fragmentation")
    PUBLISHED = ("FGD's score, of 100", SHARE, 0, 1, "fragmentation")
    UNFILLABLE = ("what is unfillable", GROWTH, -1, 1, "unfillable")
    UNFILLABLE_NEAR = ("what is unfillable, in tenths of a GPU", SIGNED_RATIO, -1, 1, "unfillable")
    BEST_FIT = ("BestFit's score, of 100", SHARE, 0, 1, "cpu_left, gpu_left")
    DOT_PRODUCT = ("DotProd's score, of 100", SHARE, 0, 1, "cpu_left, gpu_left")
    PACKING = ("Packing's score, of 100", SHARE, 0, 1, "gpu_left")
    LACKS_CPU = ("GPUs for which CPU lacks", GROWTH, -1, 1, "a_gpu")
    LACKS_MEMORY = ("GPUs for which memory lacks", GROWTH, -1, 1, "a_gpu")
    CPU_A_GPU = ("free CPU a free GPU, over that of pods; 1: no GPU is free", RATIO, 0, 1, "a_gpu")
    MEMORY_A_GPU = ("free memory a free GPU, over that of pods; 1: no GPU is free", RATIO, 0, 1, "a_gpu")
    FULL = ("1 if no GPU of the node has anything free", FLAG, 0, 1, "gpu_left")
    MODEL_LEFT = ("free GPUs of the node's model, of its GPUs", SHARE, 0, 1, "model_used")
    MODEL_PINNED = ("demand that cannot run on every model, over the model's GPUs", RATIO, 0, 1, "model_pinned")
    MODEL_CPU = ("CPU a GPU of the empty node, over that of pods", RATIO, 0, 1, "a_gpu")
    POD_CPU = ("CPU of the pod, over that of pods with one GPU", RATIO, 0, 1, "cpu_milli")
    POD_MEMORY = ("memory of the pod, over that of pods with one GPU", RATIO, 0, 1, "memory_mib")
    POD_GPUS = ("GPUs of the pod, of 16", SHARE, 0, 1, "gpus")
    POD_PART = ("thousandths of each of its GPUs", SHARE, 0, 1, "gpu_milli")
    SHARES = ("1 if the pod shares a GPU", FLAG, 0, 1, "gpu_milli")
    NO_GPU = ("1 if it needs no GPU", FLAG, 0, 1, "gpus")
    PINNED = ("1 if it cannot run on every model", FLAG, 0, 1, "allowed")
    ARRIVED = ("pods that have arrived, of all", SHARE, 0, 1, "arrivals")
    GPU_LEFT = ("free GPUs of the cluster, of its GPUs", SHARE, 0, 1, "totals")
    CPU_LEFT = ("free CPU of the cluster, of its CPU", SHARE, 0, 1, "cpu_left")
    MEMORY_LEFT = ("free memory of the cluster, of its memory", SHARE, 0, 1, "memory_left")
    CPU_TIGHT = ("CPU that pods with GPUs want for all that are free, over the free CPU", RATIO, 0, 1, "a_gpu")
    FRAGMENTED = ("fragmented GPUs of the cluster, of its GPUs", SHARE, 0, 1, "totals")


WIDTH: Final = len(PlacementFeature)


@procedure
def ratio_of(value: float) -> float:
    """``x / (1 + x)``."""
    return value / (1.0 + value)


@procedure
def cut(value: float) -> float:
    """Within -1 to 1."""
    return min(1.0, max(-1.0, value))


@procedure
def encode_candidate(
    state: Any,
    pods: Any,
    typical: Any,
    demand: Any,
    scores: Any,
    node: int,
    kind: int,
    mask: int,
    to_come: int,
    row: Any,
) -> None:
    """Fill in what belongs to a candidate: the columns up to ``MODEL_CPU``; ``to_come``: pods."""
    gpus = state.gpus[node]
    shares = shares_gpu(pods, kind)
    own = scores.score[kind]
    if mask == scores.mask[kind, 1, node]:
        growth, unfillable = -own[Score.DESCENT, node], -own[Score.FILL, node]
    else:
        growth = growth_with(state, pods, typical, node, kind, mask)
        unfillable = unfillable_growth(state, pods, demand, node, kind, mask)
    row[PlacementFeature.PRESENT] = 1.0
    row[PlacementFeature.GPUS] = gpus / MOST_GPUS
    unused = state.cpu_left[node] == demand.cpu_milli[node] and state.memory_left[node] == demand.memory_mib[node]
    row[PlacementFeature.UNUSED] = 1.0 if unused else 0.0
    row[PlacementFeature.DESCENT] = cut(growth)
    row[PlacementFeature.DESCENT_NEAR] = growth / (NEAR + abs(growth))
    row[PlacementFeature.PUBLISHED] = published_score(growth) / HUNDRED
    row[PlacementFeature.UNFILLABLE] = cut(unfillable)
    row[PlacementFeature.UNFILLABLE_NEAR] = unfillable / (NEAR + abs(unfillable))
    row[PlacementFeature.BEST_FIT] = own[Score.BEST_FIT, node] / HUNDRED
    row[PlacementFeature.DOT_PRODUCT] = own[Score.DOT_PRODUCT, node] / HUNDRED
    row[PlacementFeature.PACKING] = own[Score.PACKING, node] / HUNDRED
    row[PlacementFeature.LACKS_CPU] = cut(stranded_growth(state, pods, demand, node, kind, mask, 0))
    row[PlacementFeature.LACKS_MEMORY] = cut(stranded_growth(state, pods, demand, node, kind, mask, 1))
    take(state, pods, node, kind, mask)
    free, whole, part = 0, 0, 0
    for gpu in range(gpus):
        left = state.gpu_left[node, gpu]
        free += left
        whole += 1 if left == WHOLE_GPU else 0
        if shares and (mask >> gpu) & 1:
            part = left
    cpu, memory = float(state.cpu_left[node]), float(state.memory_left[node])
    give_back(state, pods, node, kind, mask)
    row[PlacementFeature.GPU] = free / (WHOLE_GPU * max(1, gpus))
    row[PlacementFeature.CPU] = cpu / demand.cpu_milli[node]
    row[PlacementFeature.MEMORY] = memory / max(1, demand.memory_mib[node])
    row[PlacementFeature.WHOLE] = whole / max(1, gpus)
    row[PlacementFeature.PART] = part / WHOLE_GPU
    row[PlacementFeature.EXACT] = 1.0 if shares and part == 0 else 0.0
    row[PlacementFeature.OPENS] = 1.0 if shares and part + pods.gpu_milli[kind] == WHOLE_GPU else 0.0
    if shares:
        row[PlacementFeature.PART_USE] = demand.parts[part]
        grows = demand.waste[part] - demand.waste[part + pods.gpu_milli[kind]]
        row[PlacementFeature.WASTE] = cut(grows / WHOLE_GPU)
        chance = chance_of_use(demand, part, to_come) if part > 0 else 1.0
        row[PlacementFeature.CHANCE] = chance
        row[PlacementFeature.UNUSED_PART] = part * (1.0 - chance) / WHOLE_GPU
    wanted_cpu, wanted_memory = max(1e-9, demand.a_gpu[0]), max(1e-9, demand.a_gpu[1])
    row[PlacementFeature.CPU_A_GPU] = ratio_of(cpu / (free * wanted_cpu)) if free > 0 else 1.0
    row[PlacementFeature.MEMORY_A_GPU] = ratio_of(memory / (free * wanted_memory)) if free > 0 else 1.0
    row[PlacementFeature.FULL] = 1.0 if free == 0 else 0.0
    model = state.model[node]
    most = WHOLE_GPU * max(1, demand.model_gpus[model])
    row[PlacementFeature.MODEL_LEFT] = 1.0 - demand.model_used[model] / most
    row[PlacementFeature.MODEL_PINNED] = ratio_of(demand.model_pinned[model])
    row[PlacementFeature.MODEL_CPU] = ratio_of(demand.cpu_milli[node] / (WHOLE_GPU * max(1, gpus) * wanted_cpu))


@procedure
def encode_pod(state: Any, pods: Any, demand: Any, totals: Any, kind: int, arrived: float, row: Any) -> None:
    """Fill in what is the same for all candidates: the columns from ``POD_CPU``.

    Args:
        totals: of the cluster, CPU and memory that are free, and all CPU, memory and thousandths of GPUs.
        arrived: share of the pods.
    """
    row[PlacementFeature.POD_CPU] = ratio_of(pods.cpu_milli[kind] / max(1e-9, demand.a_gpu[0] * WHOLE_GPU))
    row[PlacementFeature.POD_MEMORY] = ratio_of(pods.memory_mib[kind] / max(1e-9, demand.a_gpu[1] * WHOLE_GPU))
    row[PlacementFeature.POD_GPUS] = pods.gpus[kind] / MOST_GPUS
    row[PlacementFeature.POD_PART] = pods.gpu_milli[kind] / WHOLE_GPU
    row[PlacementFeature.SHARES] = 1.0 if shares_gpu(pods, kind) else 0.0
    row[PlacementFeature.NO_GPU] = 1.0 if pods.gpus[kind] == 0 else 0.0
    everywhere = True
    for model in range(pods.allowed.shape[1] - 1):
        everywhere = everywhere and pods.allowed[kind, model]
    row[PlacementFeature.PINNED] = 0.0 if everywhere else 1.0
    row[PlacementFeature.ARRIVED] = arrived
    row[PlacementFeature.GPU_LEFT] = 1.0 - state.totals[USED_MILLI] / totals[4]
    row[PlacementFeature.CPU_LEFT] = totals[0] / totals[2]
    row[PlacementFeature.MEMORY_LEFT] = totals[1] / max(1.0, totals[3])
    wanted = totals[4] - state.totals[USED_MILLI]
    row[PlacementFeature.CPU_TIGHT] = ratio_of(demand.a_gpu[0] * wanted / max(1.0, totals[0]))
    row[PlacementFeature.FRAGMENTED] = state.totals[FRAGMENTED_MILLI] / totals[4]


@procedure
def encode(
    state: Any,
    pods: Any,
    typical: Any,
    demand: Any,
    scores: Any,
    shortlist: Any,
    totals: Any,
    kind: int,
    arrived: int,
    pods_in_all: int,
    rows: Any,
) -> None:
    """Fill in the observation, float32 of shape ``(CANDIDATES, WIDTH)``."""
    rows[:] = 0.0
    for place in range(shortlist.count[0]):
        node, mask = shortlist.node[place], shortlist.mask[place]
        to_come = pods_in_all - arrived
        encode_candidate(state, pods, typical, demand, scores, node, kind, mask, to_come, rows[place])
        if place == 0:
            encode_pod(state, pods, demand, totals, kind, arrived / pods_in_all, rows[0])
        else:
            for column in range(PlacementFeature.POD_CPU, WIDTH):
                rows[place, column] = rows[0, column]
